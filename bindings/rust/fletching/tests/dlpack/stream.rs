// SPDX-License-Identifier: Apache-2.0

//! The stream argument of `__dlpack__`, and nulls.

use std::ptr;

use crate::support::*;
use fletching::dlpack::{from_dlpack, ConsumerStream, ImportOptions, Nulls, Ordering};
use fletching::{ArrowDeviceType, Error};
use libc::{EINVAL, ENOTSUP};

const WITH_STREAMS: [ArrowDeviceType; 5] = [
    ArrowDeviceType::CUDA,
    ArrowDeviceType::CUDA_HOST,
    ArrowDeviceType::CUDA_MANAGED,
    ArrowDeviceType::ROCM,
    ArrowDeviceType::ROCM_HOST,
];

fn read(device: ArrowDeviceType, stream: Option<i64>) -> Result<ConsumerStream, Error> {
    // SAFETY: the tests do not wait on streams.
    unsafe { ConsumerStream::read(device, stream) }
}

#[track_caller]
fn ordered(device: ArrowDeviceType, stream: Option<i64>, ordering: Ordering) {
    assert_eq!(
        read(device, stream).unwrap().ordering(),
        ordering,
        "{device}"
    );
}

#[track_caller]
fn refused(device: ArrowDeviceType, stream: i64) {
    let error = read(device, Some(stream)).unwrap_err();
    assert_eq!(error.code(), EINVAL, "{device} takes {stream}");
    mentions(&error, &format!("invalid on {device}"));
}

#[test]
fn read_accepts_stream_handles() {
    // On 32-bit machines, the handle is the lower half.
    let handle = 0x7f00_1234_5678_u64 as usize;
    for device in WITH_STREAMS {
        ordered(device, Some(3), Ordering::Stream(3));
        ordered(device, Some(handle as i64), Ordering::Stream(handle));
    }
}

#[test]
fn host_readable_memory_orders_host() {
    ordered(ArrowDeviceType::CUDA_HOST, None, Ordering::Host);
    ordered(ArrowDeviceType::CUDA_MANAGED, None, Ordering::Host);
    ordered(ArrowDeviceType::ROCM_HOST, None, Ordering::Host);
}

#[test]
fn rule_dlpack_stream_range() {
    for device in WITH_STREAMS {
        refused(device, -2);
        refused(device, i64::MIN);
    }
}

#[test]
fn rule_dlpack_stream_minus_one() {
    for device in WITH_STREAMS {
        ordered(device, Some(-1), Ordering::Nothing);
    }
}

#[test]
fn rule_dlpack_stream_none_is_legacy() {
    ordered(ArrowDeviceType::CUDA, None, Ordering::Stream(1));
    ordered(ArrowDeviceType::ROCM, None, Ordering::Stream(0));
}

#[test]
fn rule_dlpack_stream_cuda_not_zero() {
    for device in &WITH_STREAMS[..3] {
        refused(*device, 0);
        ordered(*device, Some(1), Ordering::Stream(1));
        ordered(*device, Some(2), Ordering::Stream(2));
    }
}

#[test]
fn rule_dlpack_stream_rocm_not_one_or_two() {
    for device in &WITH_STREAMS[3..] {
        refused(*device, 1);
        refused(*device, 2);
        ordered(*device, Some(0), Ordering::Stream(0));
    }
}

#[test]
fn rule_dlpack_stream_none_elsewhere() {
    for device in [
        ArrowDeviceType::CPU,
        ArrowDeviceType::OPENCL,
        ArrowDeviceType::ONEAPI,
        ArrowDeviceType::METAL,
        ArrowDeviceType(9999),
    ] {
        ordered(device, None, Ordering::Host);
        for stream in [-1, 0, 1, 2, 99] {
            refused(device, stream);
        }
    }
}

#[test]
fn vulkan_event_is_rejected_with_hint() {
    let data = Data::new("i", 3).on(ArrowDeviceType::VULKAN, 0).event();
    let stream = read(ArrowDeviceType::VULKAN, None).unwrap();
    let error = data.refused(options().stream(stream));
    assert_eq!(error.code(), ENOTSUP);
    mentions(
        &error,
        "to_dlpack: VkEvent without its VkDevice and VkQueue; hint: ",
    );
}

// --- Nulls --------------------------------------------------------------------------------------

#[test]
fn to_dlpack_rejects_nulls() {
    mentions(
        &Data::new("i", 3).nulls(1, [5].as_ptr()).refused(counting()),
        "has nulls",
    );
    mentions(
        &Data::new("i", 3).nulls(1, [5].as_ptr()).refused(options()),
        "has nulls",
    );
    let uncounted = Data::new("i", 3).nulls(-1, [5].as_ptr());
    mentions(&uncounted.refused(counting()), "has nulls");
    mentions(&uncounted.refused(options()), "may have nulls");
    uncounted.exported(options().nulls(Nulls::Ignore));
}

#[test]
fn device_bitmaps_are_not_read() {
    // Reading the bitmap would access an invalid address.
    let elsewhere = ptr::without_provenance(16);
    let data = Data::new("i", 3).nulls(-1, elsewhere);
    let device = data.clone().on(ArrowDeviceType::CUDA, 0);
    mentions(&device.refused(counting()), "may have nulls");
    mentions(&data.clone().refused(options()), "may have nulls");
    let pending = data.on(ArrowDeviceType::CUDA_HOST, 0).event();
    let error = pending.refused(event_handled().nulls(Nulls::Count(readable())));
    assert_eq!(error.code(), ENOTSUP);
}

/// A handle of one runtime is never passed to another.
#[test]
fn stream_of_other_runtime_is_rejected() {
    let stream = Some(read(ArrowDeviceType::CUDA, Some(4096)).unwrap());
    for device in [ArrowDeviceType::ROCM, ArrowDeviceType::OPENCL] {
        let error = Data::new("i", 1)
            .on(device, 0)
            .event()
            .refused(options().stream(stream));
        assert_eq!(error.code(), EINVAL, "{error}");
        mentions(&error, "stream of another runtime");
        let tensor = ForeignTensor::int32(&[1], &[1]).on(device.0, 0).versioned();
        let import = ImportOptions::default().stream(stream);
        let error = from_dlpack(tensor, &import).unwrap_err();
        assert_eq!(error.code(), EINVAL, "{error}");
        mentions(&error, "stream of another runtime");
    }
}

// SPDX-License-Identifier: Apache-2.0

//! The stream argument of `__dlpack__`, and nulls.

use std::ptr;

use crate::support::*;
#[cfg(not(feature = "runtime"))]
use fletching::dlpack::{from_dlpack, ImportOptions};
use fletching::dlpack::{ConsumerStream, Nulls, Ordering};
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
    // SAFETY: no test waits on a stream.
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
fn handles_are_accepted() {
    // Where a handle has 32 bits, the lower half.
    let handle = 0x7f00_1234_5678_u64 as usize;
    for device in WITH_STREAMS {
        ordered(device, Some(3), Ordering::Stream(3));
        ordered(device, Some(handle as i64), Ordering::Stream(handle));
    }
}

#[test]
fn the_host_is_ordered_before_memory_that_it_reads() {
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

// --- Without the feature `runtime` --------------------------------------------------------------

#[cfg(not(feature = "runtime"))]
#[test]
fn an_event_is_never_skipped() {
    for (device, stream) in [
        (ArrowDeviceType::CUDA, Some(1)),
        (ArrowDeviceType::CUDA_HOST, None),
    ] {
        let on_stream = |stream| options().stream(read(device, stream).unwrap());
        let data = Data::new("i", 3).on(device, 0).event();
        let error = data.refused(on_stream(stream));
        assert_eq!(error.code(), ENOTSUP);
        mentions(&error, "feature runtime");
        // The consumer synchronizes itself.
        data.exported(on_stream(Some(-1)));
        // There is nothing to wait for.
        Data::new("i", 3).on(device, 0).exported(on_stream(stream));
    }
}

#[cfg(not(feature = "runtime"))]
#[test]
fn an_event_that_cannot_be_recorded_is_an_error() {
    let with =
        |stream| ImportOptions::default().stream(read(ArrowDeviceType::CUDA, stream).unwrap());
    let tensor = Foreign::int32(&[3], &[]).on(ArrowDeviceType::CUDA.0, 0);
    let error = from_dlpack(tensor.versioned(), &with(None)).unwrap_err();
    assert_eq!(error.code(), ENOTSUP);
    mentions(&error, "feature runtime");
    assert_eq!(tensor.deleted(), 1);
    from_dlpack(tensor.versioned(), &with(Some(-1))).unwrap();
}

// --- Nulls --------------------------------------------------------------------------------------

#[test]
fn nulls_are_refused() {
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
fn nulls_count_in_the_range_alone() {
    let none = Data::new("i", 3).nulls(-1, [0x7f, 0x1f].as_ptr()).offset(8);
    none.exported(counting());
    let later = Data::new("i", 4).nulls(-1, [0xff, 0x17].as_ptr()).offset(8);
    assert_eq!(later.refused(counting()).code(), ENOTSUP);
    Data::new("i", 3).nulls(-1, ptr::null()).exported(options());
    Data::new("i", 0)
        .nulls(-1, [0].as_ptr())
        .exported(options());
    let malformed = Data::new("i", 3).nulls(1, ptr::null());
    assert_eq!(malformed.refused(counting()).code(), EINVAL);
}

#[test]
fn bitmaps_are_not_read_on_a_device() {
    // A read of the bitmap here is a read of an invalid address.
    let elsewhere = ptr::without_provenance(16);
    let data = Data::new("i", 3).nulls(-1, elsewhere);
    let device = data.clone().on(ArrowDeviceType::CUDA, 0);
    mentions(&device.refused(counting()), "may have nulls");
    mentions(&data.clone().refused(options()), "may have nulls");
    let pending = data.on(ArrowDeviceType::CUDA_HOST, 0).event();
    let error = pending.refused(event_handled().nulls(Nulls::Count(readable())));
    assert_eq!(error.code(), ENOTSUP);
}

/// Every element is valid but one.
fn all_but(element: i64) -> [u8; 8] {
    (u64::MAX ^ 1 << element).to_le_bytes()
}

// Three lists of two around the values: `first` to `last` are those of the slice.
#[test]
fn nulls_of_a_sliced_list_are_those_of_its_elements() {
    // An interpreter takes its time.
    let step = if cfg!(miri) { 9 } else { 1 };
    for lists_offset in (0..4).step_by(step) {
        for values_offset in (0..10).step_by(step) {
            let first = values_offset + 2 * lists_offset;
            for null in (0..48).step_by(step) {
                let bits = all_but(null);
                let child = Data::new("c", 24)
                    .offset(values_offset)
                    .nulls(-1, bits.as_ptr());
                let data = Data::list(2, 3, child).offset(lists_offset);
                if (first..first + 6).contains(&null) {
                    mentions(&data.refused(counting()), "has nulls");
                } else {
                    data.exported(counting());
                }
            }
        }
    }
}

// The lists between the outer ones and the values have a range of their own.
#[test]
fn nulls_of_inner_lists_are_found() {
    for null in 0..16 {
        let bits = all_but(null);
        let inner = Data::list(3, 15, Data::new("c", 48)).offset(1);
        let outer = Data::list(2, 2, inner.nulls(-1, bits.as_ptr())).offset(2);
        if (5..9).contains(&null) {
            mentions(&outer.refused(counting()), "has nulls");
        } else {
            outer.exported(counting());
        }
    }
}

// Its bits are not looked at: the sum has no place in 64 bits.
#[test]
fn nulls_are_not_looked_for_beyond_the_range_of_numbers() {
    for offset in [i64::MAX, i64::MAX - 4] {
        let data = Data::new("c", 5).offset(offset).nulls(-1, [0].as_ptr());
        let error = data.refused(counting());
        assert_eq!(error.code(), EINVAL);
        mentions(&error, "offset plus length");
        let lists = Data::list(2, 5, Data::new("c", 10)).offset(offset);
        assert_eq!(lists.refused(counting()).code(), EINVAL);
        let shifted = Data::new("c", 10).offset(offset).nulls(-1, [0].as_ptr());
        assert_eq!(Data::list(2, 5, shifted).refused(counting()).code(), EINVAL);
    }
}

/// A handle of one runtime never gets to another one.
#[cfg(feature = "runtime")]
#[test]
fn a_stream_of_another_runtime_is_refused() {
    use fletching::dlpack::{from_dlpack, ImportOptions};
    let stream = Some(read(ArrowDeviceType::CUDA, Some(4096)).unwrap());
    for device in [ArrowDeviceType::ROCM, ArrowDeviceType::OPENCL] {
        let error = Data::new("i", 1)
            .on(device, 0)
            .event()
            .refused(options().stream(stream));
        assert_eq!(error.code(), EINVAL, "{error}");
        mentions(&error, "stream of another runtime");
        let tensor = Foreign::int32(&[1], &[1]).on(device.0, 0).versioned();
        let import = ImportOptions::default().stream(stream);
        let error = from_dlpack(tensor, &import).unwrap_err();
        assert_eq!(error.code(), EINVAL, "{error}");
        mentions(&error, "stream of another runtime");
    }
}

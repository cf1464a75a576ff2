// SPDX-License-Identifier: Apache-2.0

//! The stream of `__dlpack__` and the events of arrays, on the CUDA and HIP stand-ins.

#![cfg(all(
    feature = "runtime",
    feature = "dlpack",
    target_pointer_width = "64",
    unix,
    not(miri)
))]

mod gpu;

use std::ffi::{c_int, c_void};
use std::ptr::{self, null_mut};

use fletching::abi::{DLDevice, DLDeviceType, DLPackExchangeAPI};
use fletching::dlpack::exchange::{with_allocator, ExchangeApi};
use fletching::dlpack::{
    from_dlpack, to_dlpack, ConsumerStream, DlpackTensor, ExportOptions, HostReadable,
    ImportOptions, Nulls, Strided,
};
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Node, Schema,
    SchemaBuilder,
};
use gpu::alone;
use gpu::api::{Api, Cuda, Gated, Handle, Hip};

fn column(device_type: ArrowDeviceType) -> (Schema, DeviceArray) {
    let mut raw = DeviceArray::from(Array::from(vec![1i32, 2, 3])).into_raw();
    (raw.device_type, raw.device_id) = (device_type, 0);
    // SAFETY: the buffers are not read.
    let array = unsafe { DeviceArray::from_raw(raw) };
    (SchemaBuilder::new("i").build().unwrap(), array)
}

fn read(device_type: ArrowDeviceType, handle: Handle) -> Option<ConsumerStream> {
    // SAFETY: the streams live until the end of the test.
    Some(unsafe { ConsumerStream::read(device_type, Some(handle as i64)) }.unwrap())
}

fn consumer_stream_waits_for_event<A: Api>() {
    let _alone = alone();
    let gated = Gated::<A>::new(0);
    gated.shut();
    let (schema, mut array) = column(A::TYPE);
    array.export_with_event(&gated.producer()).unwrap();
    let on = |handle| ExportOptions::default().stream(read(A::TYPE, handle));
    let wait = A::NAMES.wait_event;
    gated.control.set_fault(&format!("{wait}:1:{}", A::ERROR));
    let error = to_dlpack(&schema, &mut array, &on(gated.consumer)).unwrap_err();
    gated.control.reset_faults();
    assert!(error.message().contains(A::ERROR), "{error}");
    assert!(!array.is_released() && !gated.is_blocked(gated.consumer));
    // No synchronization is requested, so none happens.
    let tensor = to_dlpack(&schema, &mut array, &on(-1_isize as Handle)).unwrap();
    assert!(!gated.is_blocked(gated.consumer));
    drop(tensor);
    let (schema, mut array) = column(A::TYPE);
    array.export_with_event(&gated.producer()).unwrap();
    let tensor = to_dlpack(&schema, &mut array, &on(gated.consumer)).unwrap();
    assert!(gated.is_blocked(gated.consumer));
    gated.open();
    A::synchronize_stream(gated.consumer);
    drop(tensor);
    gated.end();
}

fn import_records_event<A: Api>() {
    let _alone = alone();
    let gated = Gated::<A>::new(0);
    gated.shut();
    let tensor = || {
        let (schema, mut array) = column(A::TYPE);
        to_dlpack(&schema, &mut array, &ExportOptions::default()).unwrap()
    };
    let options = ImportOptions::default().stream(read(A::TYPE, gated.producer));
    gated
        .control
        .set_fault(&format!("{}:1:{}", A::NAMES.record, A::ERROR));
    let error = from_dlpack(tensor(), &options).unwrap_err();
    gated.control.reset_faults();
    assert!(error.message().contains(A::ERROR), "{error}");
    let imported = from_dlpack(tensor(), &options).unwrap();
    assert_ne!(imported.array.sync_event(), null_mut());
    assert!(!imported.array.is_ready().unwrap());
    gated.open();
    imported.array.synchronize().unwrap();
    assert!(imported.array.is_ready().unwrap());
    drop(imported);
    gated.end();
}

// The core's event lives as long as the structs that were moved out of the array.
#[test]
fn moved_child_keeps_event() {
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    gated.shut();
    let values = vec![1i32, 2, 3, 4, 5, 6];
    let host = DlpackTensor::from_vec(values, &[2, 3]).unwrap().into_raw();
    // SAFETY: the test owns the tensor, and its memory is not read.
    let tensor = unsafe {
        (*host).dl_tensor.device.device_type = ArrowDeviceType::CUDA.into();
        DlpackTensor::from_raw(host).unwrap()
    };
    let options = ImportOptions::default().stream(read(ArrowDeviceType::CUDA, gated.producer));
    let mut imported = from_dlpack(tensor, &options).unwrap();
    let child = imported.array.take_child(0).unwrap();
    assert_eq!(child.sync_event(), imported.array.sync_event());
    drop(imported);
    assert!(!child.is_ready().unwrap());
    gated.open();
    child.synchronize().unwrap();
    assert!(child.is_ready().unwrap());
    drop(child);
    gated.end();
}

#[test]
fn cuda_consumer_stream_waits_for_event() {
    consumer_stream_waits_for_event::<Cuda>();
}

#[test]
fn hip_consumer_stream_waits_for_event() {
    consumer_stream_waits_for_event::<Hip>();
}

#[test]
fn cuda_import_records_event() {
    import_records_event::<Cuda>();
}

#[test]
fn hip_import_records_event() {
    import_records_event::<Hip>();
}

// Pinned memory without a stream: the host waits.
#[test]
fn host_waits_without_stream() {
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    let (schema, mut array) = column(ArrowDeviceType::CUDA_HOST);
    gated.shut();
    array.export_with_event(&gated.producer()).unwrap();
    // SAFETY: there is no handle.
    let stream = unsafe { ConsumerStream::read(ArrowDeviceType::CUDA_HOST, None) };
    let options = ExportOptions::default().stream(stream.unwrap());
    let before = gated.control.calls(Cuda::NAMES.synchronize);
    gated.open();
    let tensor = to_dlpack(&schema, &mut array, &options).unwrap();
    assert_eq!(gated.control.calls(Cuda::NAMES.synchronize), before + 1);
    drop(tensor);
    gated.end();
}

unsafe extern "C" fn legacy_stream(_: DLDeviceType, _: i32, out: *mut *mut c_void) -> c_int {
    // SAFETY: the core passes an address for the result.
    unsafe { *out = null_mut() };
    0
}

static TABLE: DLPackExchangeAPI = with_allocator(DLPackExchangeAPI {
    current_work_stream: Some(legacy_stream),
    ..DLPackExchangeAPI::zeroed()
});

// A default stream, which has no context, belongs to the device for which the framework was
// queried.
#[test]
fn work_stream_keeps_device_id() {
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    let (schema, mut array) = column(ArrowDeviceType::CUDA);
    array.export_with_event(&gated.producer()).unwrap();
    // SAFETY: the table and its streams are valid until the process exits.
    let stream = |device_id| unsafe {
        let device = DLDevice {
            device_type: ArrowDeviceType::CUDA.into(),
            device_id,
        };
        let api = ExchangeApi::find(&TABLE.header).unwrap();
        Some(api.work_stream(device).unwrap())
    };
    let options = |device_id| ExportOptions::default().stream(stream(device_id));
    let error = to_dlpack(&schema, &mut array, &options(1)).unwrap_err();
    assert!(error.message().contains("device 1"), "{error}");
    drop(to_dlpack(&schema, &mut array, &options(0)).unwrap());
    gated.end();
}

// The stream must write the values before the host gathers them.
#[test]
fn copy_waits_for_stream() {
    const WAIT: &str = Cuda::NAMES.synchronize;
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    let strided = |device_id| {
        let (schema, mut array) = column(ArrowDeviceType::CUDA_HOST);
        let tensor = to_dlpack(&schema, &mut array, &ExportOptions::default()).unwrap();
        let raw = tensor.into_raw();
        // SAFETY: the first and the last of three values.
        unsafe {
            (*(*raw).dl_tensor.shape, *(*raw).dl_tensor.strides) = (2, 2);
            (*raw).dl_tensor.device.device_id = device_id;
            DlpackTensor::from_raw(raw).unwrap()
        }
    };
    // SAFETY: the memory is host memory.
    let readable = unsafe { HostReadable::new() };
    let options = ImportOptions::default()
        .strided(Strided::Copy(readable))
        .stream(read(ArrowDeviceType::CUDA_HOST, gated.producer));
    let fault = format!("{WAIT}:*:{}", Cuda::ERROR); // the core tries twice
    gated.control.set_fault(&fault);
    let error = from_dlpack(strided(0), &options).unwrap_err();
    gated.control.reset_faults();
    assert!(error.message().contains(WAIT), "{error}");
    let before = gated.control.calls(WAIT);
    let imported = from_dlpack(strided(0), &options).unwrap();
    assert!(imported.copied && imported.array.sync_event().is_null());
    assert_eq!(gated.control.calls(WAIT), before + 1);
    let options = options.stream(read(ArrowDeviceType::ROCM_HOST, gated.producer));
    let error = from_dlpack(strided(0), &options).unwrap_err();
    let text = "from_dlpack: stream of another runtime: expected one of cuda_host, got one of HIP";
    assert_eq!((error.code(), error.message()), (libc::EINVAL, text));
    // The default stream belongs to the current device: the id of pinned memory identifies no
    // device.
    let options = options.stream(read(ArrowDeviceType::CUDA_HOST, 1 as Handle));
    assert!(from_dlpack(strided(1), &options).unwrap().copied);
    gated.end();
}

// A waiting stream says nothing about the host.
#[test]
fn nulls_are_counted_after_host_wait() {
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    let device_type = ArrowDeviceType::CUDA_HOST;
    // SAFETY: the memory is host memory, and nobody writes to it.
    let nulls = Nulls::Count(unsafe { HostReadable::new() });
    // SAFETY: there is no handle.
    let host = unsafe { ConsumerStream::read(device_type, None) }.unwrap();
    let streams = [
        (host, true),
        (read(device_type, gated.consumer).unwrap(), false),
    ];
    for (stream, is_counted) in streams {
        let capacity = ArrayCapacity {
            arrays: 0,
            buffers: 2,
        };
        let mut builder = ArrayBuilder::new(capacity, (vec![0b111_u8], [1, 2, 3])).unwrap();
        let (bitmap, values) = builder.object();
        let buffers = [bitmap.as_ptr().cast(), ptr::from_ref(values).cast()];
        let unknown = ArrayValues {
            null_count: -1,
            ..ArrayValues::of(3)
        };
        builder.set(Node::ROOT, unknown, &buffers);
        let mut array = builder.finish_on(device_type, 0).unwrap();
        array.export_with_event(&gated.producer()).unwrap();
        let schema = SchemaBuilder::new("i").build().unwrap();
        let options = ExportOptions::default().stream(stream).nulls(nulls);
        match to_dlpack(&schema, &mut array, &options) {
            Ok(_) => assert!(is_counted),
            Err(error) => {
                assert!(
                    !is_counted && error.message().contains("may have nulls"),
                    "{error}"
                );
            }
        }
    }
    gated.end();
}

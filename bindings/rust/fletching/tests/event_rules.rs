// SPDX-License-Identifier: Apache-2.0

//! The rules of spec/rules/ about events, on the stand-in of CUDA.

#![cfg(all(feature = "dlpack", feature = "runtime", unix, not(miri)))]

mod gpu;

use std::ptr;

use fletching::dlpack::{from_dlpack, to_dlpack, ConsumerStream, ImportOptions};
use fletching::runtime::Stream;
use fletching::{
    ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Node, SchemaBuilder,
};

use gpu::api::{Api, Cuda, Gated, Handle};
use gpu::released::empty;
use gpu::{alone, error};

/// Three values at an address that is not read.
fn on_cuda() -> DeviceArray {
    let capacity = ArrayCapacity {
        arrays: 0,
        buffers: 2,
    };
    let mut builder = ArrayBuilder::new(capacity, [1i32, 2, 3]).unwrap();
    let values = builder.object().as_ptr().cast();
    builder.set(Node::ROOT, ArrayValues::of(3), &[ptr::null(), values]);
    builder.finish_on(ArrowDeviceType::CUDA, 0).unwrap()
}

fn with_event(device_type: ArrowDeviceType, event: *mut Handle) -> DeviceArray {
    let mut raw = empty(device_type);
    raw.sync_event = event.cast();
    // SAFETY: an event that breaks a rule, which has to be noticed.
    unsafe { DeviceArray::from_raw(raw) }
}

#[test]
fn rule_sync_event_waited_before_access() {
    let mut object: Handle = ptr::null_mut();
    for device_type in [
        ArrowDeviceType::CPU,
        ArrowDeviceType::METAL,
        ArrowDeviceType::VULKAN,
        ArrowDeviceType::ONEAPI,
        ArrowDeviceType(99),
    ] {
        let array = with_event(device_type, &mut object);
        // SAFETY: the stream is not looked at.
        let stream = unsafe { Stream::from_raw(device_type, ptr::null_mut()) };
        for error in [
            array.synchronize().unwrap_err(),
            array.wait_on(&stream).unwrap_err(),
            array.is_ready().unwrap_err(),
        ] {
            assert_eq!(error.code(), libc::ENOTSUP, "{device_type}: {error}");
        }
    }
}

#[test]
fn rule_sync_event_type_of_table() {
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    for handle in [42, 0x0007_0000_0000_0001] {
        let array = with_event(ArrowDeviceType::CUDA, ptr::without_provenance_mut(handle));
        assert_eq!(error(array.is_ready()).code(), libc::EINVAL);
    }
    let mut handle: Handle = ptr::null_mut();
    let array = with_event(ArrowDeviceType::CUDA, &mut handle);
    let error = array.wait_on(&gated.consumer()).unwrap_err();
    assert!(error.message().contains("the handle is NULL"), "{error}");
    gated.end();
}

#[test]
fn rule_sync_event_data_ready_when_triggered() {
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    gated.shut();
    let mut array = on_cuda();
    array.export_with_event(&gated.producer()).unwrap();
    assert!(!array.sync_event().is_null() && !array.is_ready().unwrap());
    array.wait_on(&gated.consumer()).unwrap();
    assert!(gated.is_blocked(gated.consumer));
    gated.open();
    array.synchronize().unwrap();
    assert!(Cuda::is_idle(gated.producer), "the work is done");
    drop(array);
    gated.end();
}

#[test]
fn rule_sync_event_null_means_ready() {
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    let schema = SchemaBuilder::new("i").build().unwrap();
    let imported = |stream: Option<i64>| {
        let tensor = to_dlpack(&schema, &mut on_cuda(), &Default::default()).unwrap();
        // SAFETY: the stream of the gate, which lives longer.
        let stream = unsafe { ConsumerStream::read(ArrowDeviceType::CUDA, stream) };
        let options = ImportOptions::default().stream(stream.unwrap());
        from_dlpack(tensor, &options).unwrap().array
    };
    gated.shut();
    let pending = imported(Some(gated.producer as i64));
    assert!(!pending.sync_event().is_null() && !pending.is_ready().unwrap());
    gated.open();
    pending.synchronize().unwrap();
    // -1: the producer has nothing on its way.
    let ready = imported(Some(-1));
    assert!(ready.sync_event().is_null() && ready.is_ready().unwrap());
    drop((pending, ready));
    gated.end();
}

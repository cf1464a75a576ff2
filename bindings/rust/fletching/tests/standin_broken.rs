// SPDX-License-Identifier: Apache-2.0

//! A library that lacks a function that every consumer needs. In a process of its own: a library
//! that is loaded already is preferred.

#![cfg(all(feature = "runtime", unix, not(miri)))]

mod gpu;

use fletching::abi::ArrowDeviceArray;
use fletching::runtime::Stream;
use fletching::{ArrowDeviceType, DeviceArray, Error};
use gpu::released::empty;
use gpu::{alone, preload};

fn with_event(device_type: ArrowDeviceType) -> (DeviceArray, Box<usize>) {
    let mut handle = Box::new(0x1000);
    let raw = ArrowDeviceArray {
        sync_event: (&raw mut *handle).cast(),
        ..empty(device_type)
    };
    // SAFETY: the array is as the texts ask for it, but for the handle, which nothing gets to.
    (unsafe { DeviceArray::from_raw(raw) }, handle)
}

/// The error of every operation.
fn errors(device_type: ArrowDeviceType) -> Vec<Error> {
    let (array, _handle) = with_event(device_type);
    let stream = Stream::legacy(device_type);
    // SAFETY: an array without an event.
    let mut plain = unsafe { DeviceArray::from_raw(empty(device_type)) };
    vec![
        array.synchronize().unwrap_err(),
        array.wait_on(&stream).unwrap_err(),
        array.is_ready().unwrap_err(),
        plain.export_with_event(&stream).unwrap_err(),
        plain.release_after(&stream).unwrap_err().into(),
    ]
}

#[test]
fn a_missing_symbol_is_named_with_its_library() {
    let _alone = alone();
    preload("standin-broken/libcuda.so.1");
    for error in errors(ArrowDeviceType::CUDA) {
        assert_eq!(error.code(), libc::ENOSYS, "{error}");
        let text = error.message();
        assert!(
            text.contains("libcuda.so.1 has no cuStreamWaitEvent"),
            "{text}"
        );
    }
}

#[test]
fn no_runtime_records_events_of_other_devices() {
    for (device_type, why) in [
        (ArrowDeviceType::VULKAN, "set by a command buffer"),
        (ArrowDeviceType::ONEAPI, "C++ object"),
        (ArrowDeviceType::METAL, "signaled by a command buffer"),
        (
            ArrowDeviceType(9999),
            "export_with_event on unknown(9999): no runtime",
        ),
    ] {
        // SAFETY: an array without an event.
        let mut array = unsafe { DeviceArray::from_raw(empty(device_type)) };
        let error = array
            .export_with_event(&Stream::legacy(device_type))
            .unwrap_err();
        assert_eq!(error.code(), libc::ENOTSUP);
        assert!(error.message().contains(why), "{error}");
        let error = array
            .release_after(&Stream::legacy(device_type))
            .unwrap_err();
        assert_eq!(error.error().code(), libc::ENOTSUP);
        let text = error.error().to_string();
        assert!(text.contains("release_after"), "{text}");
    }
}

// SPDX-License-Identifier: Apache-2.0

//! Rules about declarations for which the pages and headers of the interfaces differ: the types of
//! fields and arguments, which a layout does not show, and the device numbers.

use std::ffi::{c_char, c_int};

use fletching::abi::{
    ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask, ArrowDeviceArray, DEVICES,
};
use fletching::ArrowDeviceType;

/// Five adjacent members and nothing after them: no release.
#[test]
fn rule_async_header_producer_fields() {
    let ArrowAsyncProducer {
        device_type,
        request,
        cancel,
        additional_metadata,
        private_data,
    } = ArrowAsyncProducer::zeroed();
    assert_eq!(device_type, ArrowDeviceType(0));
    assert!(request.is_none() && cancel.is_none());
    assert!(additional_metadata.is_null() && private_data.is_null());
    assert_eq!(size_of::<ArrowAsyncProducer>(), 5 * size_of::<*const u8>());
}

#[test]
fn rule_async_header_task_self() {
    type Extract = unsafe extern "C" fn(*mut ArrowAsyncTask, *mut ArrowDeviceArray) -> c_int;
    let extract: Option<Extract> = ArrowAsyncTask::zeroed().extract_data;
    assert!(extract.is_none());
}

#[test]
fn rule_async_header_request_signed() {
    let request: Option<unsafe extern "C" fn(*mut ArrowAsyncProducer, i64)> =
        ArrowAsyncProducer::zeroed().request;
    assert!(request.is_none());
}

#[test]
fn rule_async_header_on_error_pointer() {
    type Handler = ArrowAsyncDeviceStreamHandler;
    type OnError = unsafe extern "C" fn(*mut Handler, c_int, *const c_char, *const c_char);
    let on_error: Option<OnError> = Handler::zeroed().on_error;
    assert!(on_error.is_none());
}

#[test]
fn rule_async_header_producer_pointer() {
    let producer: *mut ArrowAsyncProducer = ArrowAsyncDeviceStreamHandler::zeroed().producer;
    assert!(producer.is_null());
}

#[test]
fn rule_device_header_type_is_int32() {
    let ArrowDeviceType(number): ArrowDeviceType = ArrowDeviceArray::zeroed().device_type;
    let number: i32 = number;
    assert_eq!((number, size_of::<ArrowDeviceType>()), (0, 4));
}

/// The numbers of DLDeviceType in dlpack.h 1.3.
const OF_DLPACK: [(i32, &str); 16] = [
    (1, "kDLCPU"),
    (2, "kDLCUDA"),
    (3, "kDLCUDAHost"),
    (4, "kDLOpenCL"),
    (7, "kDLVulkan"),
    (8, "kDLMetal"),
    (9, "kDLVPI"),
    (10, "kDLROCM"),
    (11, "kDLROCMHost"),
    (12, "kDLExtDev"),
    (13, "kDLCUDAManaged"),
    (14, "kDLOneAPI"),
    (15, "kDLWebGPU"),
    (16, "kDLHexagon"),
    (17, "kDLMAIA"),
    (18, "kDLTrn"),
];

#[test]
fn rule_device_type_values_of_dlpack() {
    for (number, name) in OF_DLPACK {
        assert_eq!(ArrowDeviceType(number).info().unwrap().dlpack_name, name);
    }
    assert_eq!((ArrowDeviceType::CPU.0, ArrowDeviceType::TRN.0), (1, 18));
}

#[test]
fn rule_device_type_dlpack_first() {
    let numbers: Vec<_> = DEVICES.iter().map(|device| device.device_type.0).collect();
    assert_eq!(numbers, OF_DLPACK.map(|device| device.0));
}

// SPDX-License-Identifier: Apache-2.0

//! The declarations of `core/fletching_core.h` that this crate uses. `bindgen-check` compares them
//! with the header.

#![allow(non_snake_case, reason = "the names of the core")]
#![allow(dead_code, reason = "not every set of features calls every function")]

use std::ffi::{c_char, c_int, c_void};

use fletching_abi::{
    ArrowDeviceArray, ArrowDeviceType, ArrowSchema, DLDevice, DLManagedTensor,
    DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader, DLTensor,
};

pub const FLETCHING_CAPTURE_REFUSE: c_int = 0;
pub const FLETCHING_CAPTURE_EXTERNAL_EVENT: c_int = 1;
pub const FLETCHING_CAPTURE_KEEP: c_int = 2;

#[repr(C)]
#[derive(Debug)]
pub struct FletchingMessage {
    pub text: [c_char; 1024],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FletchingStream {
    pub handle: *mut c_void,
    pub device_id: i64,
    pub context: *mut c_void,
    pub runtime: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FletchingVulkanWaitContext {
    pub device: *mut c_void,
    pub producer_queue: *mut c_void,
    pub queue: *mut c_void,
    pub set_stages: u32,
    pub get_device_proc_addr: Option<unsafe extern "C" fn()>,
}

#[repr(C)]
#[derive(Default)]
pub struct FletchingReleaseCounts {
    pub pending: i64,
    pub refused: i64,
    pub running: i64,
    pub leaked: i64,
    pub inherited_events: i64,
}

#[repr(C)]
pub struct FletchingWaiter {
    pub synchronize:
        Option<unsafe extern "C" fn(*mut c_void, *mut c_void, i64, *mut FletchingMessage) -> c_int>,
    pub wait_on: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            i64,
            *mut c_void,
            *mut FletchingMessage,
        ) -> c_int,
    >,
    pub ready: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            i64,
            *mut c_int,
            *mut FletchingMessage,
        ) -> c_int,
    >,
    pub context: *mut c_void,
}

pub const FLETCHING_ORDER_NOTHING: i32 = 1;
pub const FLETCHING_ORDER_HOST: i32 = 2;
pub const FLETCHING_ORDER_STREAM: i32 = 3;

pub const FLETCHING_TENSOR_DIMENSIONS: usize = 64;
pub const FLETCHING_TENSOR_AS_STORAGE: u32 = 1;
pub const FLETCHING_TENSOR_WRITABLE: u32 = 2;
pub const FLETCHING_TENSOR_COPIED: u32 = 4;
pub const FLETCHING_TENSOR_IGNORE_NULLS: u32 = 8;
pub const FLETCHING_TENSOR_EVENT_HANDLED: u32 = 16;
pub const FLETCHING_TENSOR_ALIGNED: u32 = 32;
pub const FLETCHING_TENSOR_LISTS: u32 = 64;
pub const FLETCHING_TENSOR_COPY: u32 = 128;
pub const FLETCHING_TENSOR_NO_READS: u32 = 2048;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FletchingTensorStream {
    pub stream: FletchingStream,
    pub ordering: i32,
}

/// Declares functions of the core. build.rs compiles them with this prefix instead of "Fletching".
macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        extern "C" {
            $(
                #[link_name = concat!(env!("FLETCHING_PREFIX"), stringify!($name))]
                pub fn $name($(_: $argument),*) $(-> $result)?;
            )*
        }
    };
}

functions! {
    DeviceArraySynchronize(*const ArrowDeviceArray, *mut FletchingMessage) -> c_int;
    DeviceArrayWaitOn(
        *const ArrowDeviceArray, FletchingStream, c_int, *mut FletchingMessage
    ) -> c_int;
    DeviceArrayReady(*const ArrowDeviceArray, *mut c_int, *mut FletchingMessage) -> c_int;
    DeviceArraySynchronizeVulkan(
        *const ArrowDeviceArray, *const FletchingVulkanWaitContext, *mut FletchingMessage
    ) -> c_int;
    DeviceArrayWaitOnVulkan(
        *const ArrowDeviceArray, *const FletchingVulkanWaitContext, *mut c_void,
        *mut FletchingMessage
    ) -> c_int;
    DeviceArrayReadyVulkan(
        *const ArrowDeviceArray, *const FletchingVulkanWaitContext, *mut c_int,
        *mut FletchingMessage
    ) -> c_int;
    DeviceArrayExportWithEvent(
        *mut ArrowDeviceArray, FletchingStream, c_int, *mut FletchingMessage
    ) -> c_int;
    DeviceArrayReleaseAfter(
        *mut ArrowDeviceArray, FletchingStream, c_int, *mut FletchingMessage
    ) -> c_int;
    PendingReleases(*mut FletchingReleaseCounts, *mut FletchingMessage);
    RegisterWaiter(ArrowDeviceType, *const FletchingWaiter, *mut FletchingMessage) -> c_int;
    UnregisterWaiter(ArrowDeviceType) -> c_int;

    TensorStreamRead(
        ArrowDeviceType, *const i64, *mut FletchingTensorStream, *mut FletchingMessage
    ) -> c_int;
    TensorExport(
        *const ArrowSchema, *mut ArrowDeviceArray, *const FletchingTensorStream, u32,
        *mut *mut DLManagedTensorVersioned, *mut FletchingMessage
    ) -> c_int;
    LegacyTensorExport(
        *const ArrowSchema, *mut ArrowDeviceArray, *const FletchingTensorStream, u32,
        *mut *mut DLManagedTensor, *mut FletchingMessage
    ) -> c_int;
    TensorImport(
        *mut DLManagedTensorVersioned, *const FletchingTensorStream, u32, *mut ArrowSchema,
        *mut ArrowDeviceArray, *mut u64, *mut FletchingMessage
    ) -> c_int;
    LegacyTensorImport(
        *mut DLManagedTensor, *const FletchingTensorStream, u32, *mut ArrowSchema,
        *mut ArrowDeviceArray, *mut u64, *mut FletchingMessage
    ) -> c_int;
    TensorCreate(
        *const DLTensor, u64, *mut c_void, Option<unsafe extern "C" fn(*mut c_void)>,
        *mut *mut DLManagedTensorVersioned, *mut FletchingMessage
    ) -> c_int;
    TensorAllocate(
        *mut DLTensor, *mut *mut DLManagedTensorVersioned, *mut c_void,
        Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char)>
    ) -> c_int;
    ExchangeFind(*const DLPackExchangeAPIHeader) -> *const DLPackExchangeAPI;
    ExchangeAllocate(
        *const DLPackExchangeAPI, *const DLTensor, *mut *mut DLManagedTensorVersioned,
        *mut FletchingMessage
    ) -> c_int;
    ExchangeWorkStream(
        *const DLPackExchangeAPI, DLDevice, *mut FletchingTensorStream, *mut FletchingMessage
    ) -> c_int;
}

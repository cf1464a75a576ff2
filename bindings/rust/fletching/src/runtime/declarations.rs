// SPDX-License-Identifier: Apache-2.0

//! The declarations of `core/fletching_core.h` that this crate uses. `bindgen-check` compares them
//! with the header.

#![allow(non_snake_case, reason = "the names of the core")]
#![allow(dead_code, reason = "not every set of features calls every function")]

use std::ffi::{c_char, c_int, c_void};

use fletching_abi::{ArrowDeviceArray, ArrowDeviceType};

pub const FLETCHING_CAPTURE_REFUSE: c_int = 0;
pub const FLETCHING_CAPTURE_EXTERNAL_EVENT: c_int = 1;

#[repr(C)]
pub struct FletchingMessage {
    pub text: [c_char; 1024],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct FletchingStream {
    pub handle: *mut c_void,
    pub device_id: i64,
    pub context: *mut c_void,
    pub runtime: i32,
}

#[repr(C)]
pub struct FletchingEvent {
    pub sync_event: *mut c_void,
    pub device_id: i64,
    pub context: *mut c_void,
    pub device_type: ArrowDeviceType,
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

#[repr(C)]
pub struct FletchingRecordedEvent {
    opaque: [u8; 0],
}

/// Declares functions of the core, which build.rs compiles with this prefix in place of "Fletching".
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        extern "C" {
            $(
                #[link_name = concat!(env!("FLETCHING_PREFIX"), stringify!($name))]
                pub fn $name($($argument: $type),*) $(-> $result)?;
            )*
        }
    };
}

functions! {
    EventSynchronize(event: *const FletchingEvent, message: *mut FletchingMessage) -> c_int;
    EventWaitOn(
        event: *const FletchingEvent,
        stream: FletchingStream,
        on_capture: c_int,
        message: *mut FletchingMessage,
    ) -> c_int;
    EventReady(
        event: *const FletchingEvent,
        ready: *mut c_int,
        message: *mut FletchingMessage,
    ) -> c_int;
    EventSynchronizeVulkan(
        event: *const FletchingEvent,
        context: *const FletchingVulkanWaitContext,
        message: *mut FletchingMessage,
    ) -> c_int;
    EventWaitOnVulkan(
        event: *const FletchingEvent,
        context: *const FletchingVulkanWaitContext,
        command_buffer: *mut c_void,
        message: *mut FletchingMessage,
    ) -> c_int;
    EventReadyVulkan(
        event: *const FletchingEvent,
        context: *const FletchingVulkanWaitContext,
        ready: *mut c_int,
        message: *mut FletchingMessage,
    ) -> c_int;
    StreamRecord(
        stream: FletchingStream,
        on_capture: c_int,
        recorded: *mut *mut FletchingRecordedEvent,
        message: *mut FletchingMessage,
    ) -> c_int;
    RecordedEventAddress(recorded: *mut FletchingRecordedEvent) -> *mut c_void;
    RecordedEventDestroy(recorded: *mut FletchingRecordedEvent);
    DeviceArrayReleaseAfter(
        array: *mut ArrowDeviceArray,
        stream: FletchingStream,
        on_capture: c_int,
        message: *mut FletchingMessage,
    ) -> c_int;
    PendingReleases(counts: *mut FletchingReleaseCounts, last_refusal: *mut FletchingMessage);
    StreamSynchronize(stream: FletchingStream, message: *mut FletchingMessage) -> c_int;
    RegisterWaiter(
        device_type: ArrowDeviceType,
        waiter: *const FletchingWaiter,
        message: *mut FletchingMessage,
    ) -> c_int;
    UnregisterWaiter(device_type: ArrowDeviceType) -> c_int;
}

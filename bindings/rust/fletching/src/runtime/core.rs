// SPDX-License-Identifier: Apache-2.0

//! Calls of the event core, and its errors and events as those of this crate.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

pub(super) use super::declarations::*;
use crate::Error;

/// Runs a call of the core.
///
/// # Safety
///
/// `call` passes the message to a function of the core, and returns what that returns.
pub(super) unsafe fn checked(
    call: impl FnOnce(*mut FletchingMessage) -> c_int,
) -> Result<(), Error> {
    let mut message = MaybeUninit::<FletchingMessage>::uninit();
    let code = call(message.as_mut_ptr());
    if code == 0 {
        return Ok(());
    }
    // SAFETY: a function that fails has written a text that ends in NUL.
    Err(unsafe { Error::foreign(code, (&raw const (*message.as_ptr()).text).cast()) })
}

/// Spells an operation as this crate does: the core's texts have the names of C++.
pub(super) fn renamed(operation: &str, error: Error) -> Error {
    let mut text = error.message().to_owned();
    if operation == "is_ready" && text.starts_with("ready") {
        text.insert_str(0, "is_");
    }
    if let Some(rest) = text.strip_suffix("pass a vulkan::WaitContext, or register a waiter") {
        text = format!("{rest}call {operation}_vulkan, or register a waiter");
    }
    Error::new(error.code(), text)
}

/// The same for an operation with a [`VulkanContext`](super::VulkanContext).
pub(super) fn renamed_vulkan(operation: &str, error: Error) -> Error {
    let text = error.message();
    let rest = ["vulkan::WaitContext: ", "wait_on: "]
        .iter()
        .find_map(|name| text.strip_prefix(name));
    let text = rest
        .unwrap_or(text)
        .replace(
            "WaitContext.device: NULL",
            "VulkanContext::new: device is NULL",
        )
        .replace("WaitContext.queue", "VulkanContext::with_queues")
        .replace(
            "WaitContext.get_device_proc_addr",
            "VulkanContext::with_device_functions",
        )
        .replace("call synchronize", "call synchronize_vulkan");
    Error::new(error.code(), format!("{operation}: {text}"))
}

/// An event that was recorded on a stream. Destroyed on drop, on whatever thread.
pub(super) struct Recorded(NonNull<FletchingRecordedEvent>);

// SAFETY: the core takes it on every thread.
unsafe impl Send for Recorded {}
// SAFETY: as above; nothing changes before the drop.
unsafe impl Sync for Recorded {}

impl Recorded {
    /// Records the current work on the stream.
    pub(super) fn new(stream: FletchingStream, on_capture: c_int) -> Result<Self, Error> {
        let mut recorded = ptr::null_mut();
        // SAFETY: the handle is alive, see Stream::from_raw.
        unsafe {
            checked(|message| StreamRecord(stream, on_capture, &raw mut recorded, message))?;
            Ok(Self(NonNull::new_unchecked(recorded)))
        }
    }

    /// The value for `sync_event`.
    pub(super) fn address(&self) -> *mut c_void {
        // SAFETY: the event is alive.
        unsafe { RecordedEventAddress(self.0.as_ptr()) }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // SAFETY: the event is alive, and not used any more.
        unsafe { RecordedEventDestroy(self.0.as_ptr()) }
    }
}

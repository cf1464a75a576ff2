// SPDX-License-Identifier: Apache-2.0

//! Calls of the C core, and the conversion of its errors.

mod declarations;

use std::ffi::c_int;
use std::mem::MaybeUninit;

pub(crate) use self::declarations::*;
use crate::Error;

/// Calls the core for an operation of this crate.
///
/// # Safety
///
/// `call` passes the message to a function of the core and returns its result.
pub(crate) unsafe fn checked(
    operation: &str,
    call: impl FnOnce(*mut FletchingMessage) -> c_int,
) -> Result<(), Error> {
    let mut message = MaybeUninit::<FletchingMessage>::uninit();
    let code = call(message.as_mut_ptr());
    if code == 0 {
        return Ok(());
    }
    // SAFETY: a function that fails has written a NUL-terminated text.
    let error = unsafe { Error::foreign(code, (&raw const (*message.as_ptr()).text).cast()) };
    Err(Error::new(
        error.code(),
        renamed(operation, error.message()),
    ))
}

/// Calls a function of the core with these arguments and a message, see [`checked`].
macro_rules! call {
    ($operation:expr, $function:ident($($argument:expr),*)) => {
        $crate::c_core::checked($operation, |message| {
            $crate::c_core::$function($($argument,)* message)
        })
    };
}
pub(crate) use call;

/// Names in the core's messages, and their names in this crate.
const NAMES: [(&str, &str); 7] = [
    ("FLETCHING_CAPTURE_EXTERNAL_EVENT", "OnCapture::External"),
    ("array: released", "array is released"),
    ("WaitContext.", "VulkanContext::"),
    ("::device: NULL", "::new: device is NULL"),
    ("::queue", "::with_queues"),
    ("::get_device_proc_addr", "::with_device_functions"),
    ("it, or call synchronize", "it, or call synchronize_vulkan"),
];

/// Replaces the core's names in a message with this crate's names.
fn renamed(operation: &str, text: &str) -> String {
    if let Some((_, waiter)) = text.split_once(" of an event of ") {
        return format!("{operation} of an event of {waiter}");
    }
    let vulkan = format!("call {operation}_vulkan");
    let mut text = text.replace("pass a vulkan::WaitContext", &vulkan);
    for (theirs, ours) in NAMES {
        text = text.replace(theirs, ours);
    }
    let names = ["ready: ", "vulkan::WaitContext: ", "wait_on: "];
    match names.iter().find_map(|name| text.strip_prefix(name)) {
        Some(rest) => format!("{operation}: {rest}"),
        None if operation.ends_with("_vulkan") || text.starts_with("array is released") => {
            format!("{operation}: {text}")
        }
        None => text,
    }
}

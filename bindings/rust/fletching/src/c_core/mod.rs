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
    // SAFETY: a function that fails has written a NUL-terminated string.
    let error = unsafe { Error::foreign(code, (&raw const (*message.as_ptr()).text).cast()) };
    // The core names no function, and options as in C.
    let text = error
        .message()
        .replace("FLETCHING_CAPTURE_EXTERNAL_EVENT", "OnCapture::External");
    Err(Error::new(error.code(), text).named(operation))
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

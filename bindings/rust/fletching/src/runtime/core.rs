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

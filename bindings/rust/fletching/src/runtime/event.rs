// SPDX-License-Identifier: Apache-2.0

//! Events: what a consumer waits on, what a producer records, and what a runtime can do with them.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, Ordering};

use fletching_abi::ArrowDeviceType;

use super::{OnCapture, Stream};
use crate::Error;

/// A handle of a vendor's.
pub(crate) type Handle = *mut c_void;

/// The event of a live device array, as a [`Waiter`](super::Waiter) gets it. It belongs to the
/// producer, and lives as long as the array is borrowed.
#[derive(Clone, Copy, Debug)]
pub struct SyncEvent<'a> {
    pub(crate) device_type: ArrowDeviceType,
    pub(crate) device_id: i64,
    pub(crate) pointer: Handle,
    pub(crate) array: PhantomData<&'a ()>,
}

impl SyncEvent<'_> {
    /// The type of the device that the array is on.
    #[must_use]
    pub fn device_type(&self) -> ArrowDeviceType {
        self.device_type
    }

    /// Which device of that type.
    #[must_use]
    pub fn device_id(&self) -> i64 {
        self.device_id
    }

    /// `sync_event` as the struct has it, never NULL.
    #[must_use]
    pub fn as_ptr(&self) -> *mut c_void {
        self.pointer
    }

    /// The handle that `sync_event` is the address of. Errors: EINVAL for what is not an address of
    /// a handle, and for a handle that is NULL.
    pub(crate) fn handle(&self) -> Result<Handle, Error> {
        const LOWEST: usize = 4096; // nothing is mapped below
        let address = self.pointer.cast::<Handle>();
        let what = if address.addr() < LOWEST || !address.is_aligned() {
            "not the address of a handle: expected an aligned address; hint: pass the handle's \
             address, not the handle"
        } else {
            // SAFETY: of such a device type, sync_event is the address of a handle (Owner::from_raw).
            let handle = unsafe { address.read() };
            if !handle.is_null() {
                return Ok(handle);
            }
            "the handle is NULL: expected an event"
        };
        Err(Error::invalid(format!(
            "sync_event of {}: {what}",
            self.device_type
        )))
    }
}

/// What a runtime that we call can do with events.
pub(crate) trait Events: Sync {
    fn synchronize(&self, event: &SyncEvent) -> Result<(), Error>;
    fn wait_on(&self, event: &SyncEvent, stream: &Stream, on: OnCapture) -> Result<(), Error>;
    fn is_ready(&self, event: &SyncEvent) -> Result<bool, Error>;
    /// An event that happens when all is done that is on the stream now.
    fn record(&self, stream: &Stream, device: i64, on: OnCapture) -> Result<Recorded, Error>;
    /// Whether nothing that was on the stream can still run. An error says nothing about it.
    fn has_passed(&self, recorded: &Recorded) -> Result<bool, Error>;
    /// Destroys the event, unless it was destroyed with its context.
    fn destroy(&self, recorded: &Recorded) -> Result<(), Error>;
    /// Runs the body in the mode in which no other thread's capture is in its way, nor it in theirs.
    fn run_relaxed(&self, body: &mut dyn FnMut());
}

/// An event that we have recorded. Destroyed on drop, on whatever thread.
pub(crate) struct Recorded {
    /// What `sync_event` points to.
    pub(crate) event: Handle,
    /// Of CUDA: where the event is from.
    pub(crate) origin: Origin,
    events: &'static dyn Events,
    process: u32,
}

/// A CUDA context, and how to know it again.
#[derive(Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) context: Handle,
    /// 0 where the driver has no cuCtxGetId.
    pub(crate) id: u64,
    pub(crate) device: i32,
    pub(crate) is_primary: bool,
}

impl Origin {
    pub(crate) const NONE: Self = Self {
        context: std::ptr::null_mut(),
        id: 0,
        device: 0,
        is_primary: false,
    };
}

// SAFETY: handles of a driver, which may be used on any thread.
unsafe impl Send for Recorded {}
// SAFETY: as above; nothing here changes after it is made.
unsafe impl Sync for Recorded {}

impl Recorded {
    pub(crate) fn new(events: &'static dyn Events, event: Handle, origin: Origin) -> Self {
        Self {
            event,
            origin,
            events,
            process: std::process::id(),
        }
    }

    pub(crate) fn events(&self) -> &'static dyn Events {
        self.events
    }
}

impl Drop for Recorded {
    /// No caller can receive an error. In a child of fork the event is the parent's, and nothing of
    /// the runtime is called.
    fn drop(&mut self) {
        if self.process == std::process::id() {
            let _ = self.events.destroy(self);
        } else if INHERITED_EVENTS.fetch_add(1, Ordering::Relaxed) == 0 {
            const WARNING: &str = "fletching: warning: release in a child of fork: the event is not \
                 destroyed, because the vendor's runtime does not survive a fork (printed once, and \
                 counted)\n";
            // Nothing of std: its lock may be held by a thread that the child does not have.
            // SAFETY: the text is as long as it says.
            unsafe { libc::write(2, WARNING.as_ptr().cast(), WARNING.len() as _) };
        }
    }
}

/// How many events this process has inherited by fork and left alone.
pub(crate) static INHERITED_EVENTS: AtomicI64 = AtomicI64::new(0);

/// The error for a stream on which the operation would break a capture, or be part of one. Without
/// a hint.
pub(crate) fn captured(title: &str, got: &str) -> Error {
    Error::new(
        libc::EBUSY,
        format!("{title}: expected a stream whose work runs, got {got}"),
    )
}

/// The same for an operation, which says what to do. Any other error is as it was.
pub(crate) fn with_capture_hint(operation: &str, error: Error, hint: &str) -> Error {
    if error.code() != libc::EBUSY {
        return error;
    }
    Error::new(libc::EBUSY, format!("{operation}: {error}; hint: {hint}"))
}

/// What an operation of a runtime enters and leaves: a context, a device, a mode.
pub(crate) trait Scope {
    /// Puts back what was there before. Does nothing the second time.
    fn leave(&mut self) -> Result<(), Error>;
}

/// Runs `body`, which enters the scope, and leaves it: the first error of the two.
pub(crate) fn within<S: Scope, T>(
    mut scope: S,
    body: impl FnOnce(&mut S) -> Result<T, Error>,
) -> Result<T, Error> {
    let result = body(&mut scope);
    let left = scope.leave();
    let value = result?;
    left.map(|()| value)
}

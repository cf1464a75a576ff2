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
    pub(super) device_type: ArrowDeviceType,
    pub(super) device_id: i64,
    pub(super) pointer: Handle,
    pub(super) array: PhantomData<&'a ()>,
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

    /// The handle that `sync_event` is the address of. Errors: EINVAL for what is not the address of
    /// a handle, and for a handle that is NULL.
    pub(super) fn handle(&self) -> Result<Handle, Error> {
        const LOWEST: usize = 4096; // nothing is mapped below
        let address = self.pointer.cast::<Handle>();
        let mut why = "not the address of a handle: expected an aligned address; hint: pass the \
                       handle's address, not the handle";
        if address.addr() >= LOWEST && address.is_aligned() {
            // SAFETY: sync_event is what it is on such a device, see Owner::from_raw.
            let handle = unsafe { address.read() };
            if !handle.is_null() {
                return Ok(handle);
            }
            why = "the handle is NULL: expected an event";
        }
        let device_type = self.device_type;
        Err(Error::invalid(format!(
            "sync_event of {device_type}: {why}"
        )))
    }
}

/// What a runtime that we call can do with events.
pub(super) trait Events: Sync {
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
pub(super) struct Recorded {
    /// What `sync_event` points to.
    pub(super) event: Handle,
    pub(super) origin: Origin,
    pub(super) events: &'static dyn Events,
    process: u32,
}

/// Where an event of CUDA is from: its context, and how to know that again.
#[derive(Clone, Copy, Default)]
pub(super) struct Origin {
    pub(super) context: usize,
    pub(super) id: u64, // 0 where the driver has no cuCtxGetId
    pub(super) device: i32,
    pub(super) is_primary: bool,
}

// SAFETY: a handle of a driver, which may be used on any thread.
unsafe impl Send for Recorded {}
// SAFETY: as above; nothing changes after it is made.
unsafe impl Sync for Recorded {}

impl Recorded {
    pub(super) fn new(events: &'static dyn Events, event: Handle, origin: Origin) -> Self {
        let process = std::process::id();
        #[rustfmt::skip]
        return Self { event, origin, events, process };
    }
}

impl Drop for Recorded {
    /// No caller can receive an error. In a child of fork the event is the parent's, and nothing of
    /// the runtime is called.
    fn drop(&mut self) {
        const WARNING: &str = "fletching: warning: release in a child of fork: the event is not \
            destroyed, because the vendor's runtime does not survive a fork (printed once, and \
            counted)\n";
        if self.process == std::process::id() {
            let _ = self.events.destroy(self);
        } else if INHERITED_EVENTS.fetch_add(1, Ordering::Relaxed) == 0 {
            // Nothing of std: its lock may be held by a thread that the child does not have.
            // SAFETY: the text is as long as it says.
            unsafe { libc::write(2, WARNING.as_ptr().cast(), WARNING.len() as _) };
        }
    }
}

/// How many events this process has inherited by fork and left alone.
pub(super) static INHERITED_EVENTS: AtomicI64 = AtomicI64::new(0);

// SPDX-License-Identifier: Apache-2.0

//! The events of device arrays: what a consumer waits on before it reads a buffer, and what a
//! producer records. Feature `runtime`.
//!
//! A runtime is called from its own library, which the first operation loads: CUDA, HIP and OpenCL.
//! Vulkan needs a [`VulkanContext`], every other device type a [`Waiter`]. An event that there is
//! no way to wait on is an error, never skipped. A NULL event is nothing to wait for.
//!
//! Errors of the operations: ENOENT when the library of the runtime is not found, ENOSYS when it
//! lacks a function, ENOTSUP when the runtime does not support the operation, EINVAL for a released
//! array and for what cannot be an event or does not fit, EBUSY for a stream that is being captured
//! into a graph, EIO for what else the runtime reports, whose own name of it is in the text; what a
//! waiter returns. After an error nothing is known of the buffers: do not read them.
//!
//! CUDA contexts: an operation on a stream happens in the stream's own context, every other one in
//! the current one; when there is none, in the primary context of the device, if that is active
//! already. None is created, and afterwards the calling thread has the one that it had before. With
//! HIP the same holds for the thread's device.
//!
//! CUDA and HIP graphs: while another thread captures, the operations neither fail nor disturb the
//! capture. HIP before ROCm 7.2 may refuse to say whether an event has happened while any thread
//! captures in global mode, and invalidate that capture.
//!
//! Text: Arrow C device data interface, "Synchronization Events".

mod capturing;
mod cuda;
mod event;
mod hip;
mod opencl;
mod reaper;
#[doc(hidden)] // Not part of the API: the tests of this repository call the runtimes.
#[allow(missing_debug_implementations)]
pub mod tables;
mod vendor;
mod vulkan;
mod waiter;

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

use fletching_abi::ArrowDeviceType;

use self::capturing::Capturing;
use self::event::Events;
use self::reaper::Reaper;
use self::waiter::waiter_for;
use crate::chain::Shown;
use crate::error::Error;
use crate::hook;
use crate::DeviceArray;

pub use self::event::SyncEvent;
pub use self::reaper::{pending_releases, PendingReleases};
pub use self::tables::Runtime;
#[doc(hidden)] // As the tables.
pub use self::vendor::{EventState, Optional, Symbol};
pub use self::vulkan::VulkanContext;
pub use self::waiter::{register_waiter, unregister_waiter, Waiter};

/// What an operation does on a stream that is being captured into a CUDA or HIP graph. On any other
/// stream, and with any other runtime, it makes no difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnCapture {
    /// EBUSY, before a call that would invalidate the capture.
    #[default]
    Refuse,
    /// The graph records the event, or waits for it, each time it is launched. The graph does not
    /// keep the event: the array must not be released before the graph and everything instantiated
    /// from it are destroyed. Before the first launch an event that the graph records counts as
    /// done, so that the array must not be handed on before. ENOTSUP for a runtime without such
    /// events: CUDA has them from 11.1 on, ROCm from 7.0 on.
    External,
}

/// A stream or queue of a runtime. The caller owns it.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    device_type: ArrowDeviceType,
    handle: *mut c_void,
}

// SAFETY: see Stream::from_raw.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// `handle` is the `CUstream`, `cudaStream_t`, `hipStream_t` or `cl_command_queue`, or what the
    /// waiter of another device type accepts. CUDA and HIP have default streams: NULL and 1 are the
    /// legacy one, 2 is the calling thread's. OpenCL has none.
    ///
    /// # Safety
    ///
    /// The handle is of the device type's runtime, and alive as long as this value or a copy of it
    /// is used. It may be used on any thread.
    #[must_use]
    pub const unsafe fn from_raw(device_type: ArrowDeviceType, handle: *mut c_void) -> Self {
        Self {
            device_type,
            handle,
        }
    }

    /// The legacy default stream of CUDA or HIP. OpenCL refuses it.
    #[must_use]
    pub const fn legacy(device_type: ArrowDeviceType) -> Self {
        // SAFETY: NULL is alive where there is such a stream.
        unsafe { Self::from_raw(device_type, ptr::null_mut()) }
    }

    /// The type of the devices that the stream is for.
    #[must_use]
    pub fn device_type(&self) -> ArrowDeviceType {
        self.device_type
    }

    /// The handle.
    #[must_use]
    pub fn as_ptr(&self) -> *mut c_void {
        self.handle
    }

    /// Errors: EINVAL for a stream of another runtime.
    fn check(&self, operation: &str, device_type: ArrowDeviceType) -> Result<(), Error> {
        let (own, other) = (Runtime::of(self.device_type), Runtime::of(device_type));
        if own == other && (own.is_some() || self.device_type == device_type) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{operation}: stream of another runtime: expected one of {device_type}, got one of {}",
            self.device_type
        )))
    }
}

/// The runtimes that are called directly.
fn events_of(device_type: ArrowDeviceType) -> Option<&'static dyn Events> {
    match Runtime::of(device_type)? {
        Runtime::Cuda => Some(Capturing::<tables::cuda::Functions>::NEW),
        Runtime::Hip => Some(Capturing::<tables::hip::Functions>::NEW),
        Runtime::Opencl => Some(&opencl::OpenclEvents),
        Runtime::Vulkan | Runtime::Sycl | Runtime::Metal => None,
    }
}

/// The same for a producer's operation. Errors: ENOTSUP, with the reason.
fn recording(operation: &str, array: &DeviceArray) -> Result<&'static dyn Events, Error> {
    let Some(raw) = array.live() else {
        let text = format!("{operation}: array is released: expected a live array");
        return Err(Error::invalid(text));
    };
    events_of(raw.device_type).ok_or_else(|| {
        let why = match Runtime::of(raw.device_type) {
            Some(Runtime::Vulkan) => {
                "not supported by Vulkan: a VkEvent is set by a command buffer, which the caller \
                 records"
            }
            Some(Runtime::Sycl) => {
                "not supported for SYCL: a sycl::event is a C++ object of the SYCL implementation"
            }
            Some(Runtime::Metal) => {
                "not supported by Metal: an MTLEvent is signaled by a command buffer, which the \
                 caller encodes"
            }
            _ => "no runtime that records events",
        };
        let text = format!("{operation} on {}: {why}", raw.device_type);
        Error::new(crate::errno::ENOTSUP, text)
    })
}

/// An error of a captured stream says what to do. Any other one is as it was.
fn with_capture_hint(operation: &str, error: Error, hint: &str) -> Error {
    if error.code() != crate::errno::EBUSY {
        return error;
    }
    Error::new(
        crate::errno::EBUSY,
        format!("{operation}: {error}; hint: {hint}"),
    )
}

/// The event, see the [module](crate::runtime). From any thread, several at once.
impl DeviceArray {
    /// The event; `None` for NULL. Errors: EINVAL when the array is released.
    fn event(&self) -> Result<Option<SyncEvent<'_>>, Error> {
        let Some(raw) = self.live() else {
            return Err(Error::invalid(
                "sync_event: array is released: expected a live array; hint: wait before the \
                 release",
            ));
        };
        Ok((!raw.sync_event.is_null()).then_some(SyncEvent {
            device_type: raw.device_type,
            device_id: raw.device_id,
            pointer: raw.sync_event,
            array: PhantomData,
        }))
    }

    /// Blocks the calling thread until the event has happened: then the host may read what it can
    /// read of the buffers.
    pub fn synchronize(&self) -> Result<(), Error> {
        let Some(event) = self.event()? else {
            return Ok(());
        };
        match events_of(event.device_type) {
            Some(events) => events.synchronize(&event),
            None => waiter_for("synchronize", &event)?.synchronize(&event),
        }
    }

    /// Lets what is enqueued on the stream from now on wait for the event, and returns while it is
    /// still pending: then kernels on that stream may read the buffers. A stream that is being
    /// captured into a graph is refused with EBUSY, and the capture continues.
    pub fn wait_on(&self, stream: &Stream) -> Result<(), Error> {
        self.wait_on_with(stream, OnCapture::Refuse)
    }

    /// The same with a choice for a stream that is being captured.
    pub fn wait_on_with(&self, stream: &Stream, on_capture: OnCapture) -> Result<(), Error> {
        let Some(event) = self.event()? else {
            return Ok(());
        };
        stream.check("wait_on", event.device_type)?;
        match events_of(event.device_type) {
            Some(events) => events.wait_on(&event, stream, on_capture),
            None => waiter_for("wait_on", &event)?.wait_on(&event, stream),
        }
    }

    /// Whether the event has happened. Does not block.
    pub fn is_ready(&self) -> Result<bool, Error> {
        let Some(event) = self.event()? else {
            return Ok(true);
        };
        match events_of(event.device_type) {
            Some(events) => events.is_ready(&event),
            None => waiter_for("is_ready", &event)?.is_ready(&event),
        }
    }

    /// Sets a `sync_event` that happens when everything is done that is on the stream now: the work
    /// that fills the buffers has to be there already, and nothing on it may write to them later.
    ///
    /// The event is created in the stream's context, without timing, and recorded. It lives, at the
    /// same address, until the array is released and the last child that was moved out of it too;
    /// the last of these releases destroys it, on whatever thread. A context that was destroyed has
    /// destroyed the event; then the release leaves it alone, as far as the driver reports this:
    /// reliably with a primary context and CUDA 12.0 or later. In a child of fork it does as well,
    /// with a warning on stderr.
    ///
    /// Errors: ENOTSUP for device types other than those of CUDA, HIP and OpenCL; EBUSY for a
    /// stream that is being captured; EINVAL when the array is released or has an event, and when
    /// it or an array below it is malformed. The array is then as it was.
    pub fn export_with_event(&mut self, stream: &Stream) -> Result<(), Error> {
        self.export_with_event_with(stream, OnCapture::Refuse)
    }

    /// The same with a choice for a stream that is being captured.
    pub fn export_with_event_with(
        &mut self,
        stream: &Stream,
        on_capture: OnCapture,
    ) -> Result<(), Error> {
        const OPERATION: &str = "export_with_event";
        let events = recording(OPERATION, self)?;
        if !self.sync_event().is_null() {
            return Err(Error::invalid(
                "export_with_event: sync_event is set: expected NULL",
            ));
        }
        stream.check(OPERATION, self.device_type())?;
        let recorded = events
            .record(stream, self.device_id(), on_capture)
            .map_err(|error| {
                with_capture_hint(
                OPERATION,
                error,
                "export before the capture begins, or pass OnCapture::External for an event that \
                 each launch of the graph records",
            )
            })?;
        let owner = Arc::new(recorded);
        let pointer = (&raw const owner.event).cast_mut();
        let share = Shown {
            share: owner,
            data: 0,
        };
        // SAFETY: the owner vouches for the array, and is borrowed alone.
        unsafe {
            let raw = self.as_mut_ptr();
            hook::attach_event(OPERATION, &raw mut (*raw).array, &share)?;
            (*raw).sync_event = pointer.cast();
        }
        Ok(())
    }

    /// Releases the array when everything is done that is on the stream now. For a consumer whose
    /// own kernels still read the buffers: a drop would free the memory under them.
    ///
    /// Returns at once. The release callback is called later, on a thread of this crate, never
    /// within a callback of a driver. A slow callback delays no other release, and may free memory
    /// while another thread captures. A child that was moved out before is not waited for.
    ///
    /// An event whose state the driver does not report does not count for passed, however often it
    /// is asked: the array is released when the driver answers, see [`pending_releases`]. When the
    /// driver says that the device or the context is lost, nothing reads the array any more, and it
    /// is released. When the process exits, what is still pending is left alone. The library that
    /// this crate is compiled into has to stay loaded.
    ///
    /// Errors: ENOTSUP for device types other than those of CUDA, HIP and OpenCL; EINVAL when the
    /// array is released; EBUSY for a stream that is being captured, because the buffers are read
    /// whenever the graph is launched; EAGAIN when there can be no thread; ECHILD in a child of
    /// fork. The error has the array.
    pub fn release_after(self, stream: &Stream) -> Result<(), NotReleased> {
        const OPERATION: &str = "release_after";
        let recorded = recording(OPERATION, &self).and_then(|events| {
            stream.check(OPERATION, self.device_type())?;
            let reaper = Reaper::instance()?;
            let recorded = events.record(stream, self.device_id(), OnCapture::Refuse)?;
            Ok((reaper, recorded))
        });
        match recorded {
            Ok((reaper, recorded)) => {
                reaper.add(recorded, self);
                Ok(())
            }
            Err(error) => {
                let error = with_capture_hint(
                    OPERATION,
                    error,
                    "keep the array until the graph is destroyed, and call release_after with the \
                     stream of its last launch",
                );
                Err(NotReleased(Box::new((error, ManuallyDrop::new(self)))))
            }
        }
    }
}

/// The array that [`DeviceArray::release_after`] could not take, and why. Work may still read it, so
/// a drop of this value leaks it: get it back, and drop it when the stream has passed.
#[derive(Debug)]
pub struct NotReleased(Box<(Error, ManuallyDrop<DeviceArray>)>);

impl NotReleased {
    /// Why the array was not released.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.0 .0
    }

    /// The array as it was.
    #[must_use = "the array is released when it is dropped"]
    pub fn into_array(self) -> DeviceArray {
        ManuallyDrop::into_inner(self.0 .1)
    }
}

/// Leaks the array.
impl From<NotReleased> for Error {
    fn from(failed: NotReleased) -> Self {
        failed.0 .0
    }
}

// SPDX-License-Identifier: Apache-2.0

//! Sync events of device arrays: a consumer waits on an event before it reads a buffer, and a
//! producer records one. Feature `runtime`.
//!
//! CUDA, HIP, OpenCL and Vulkan are called through the vendor's library, which the first operation
//! loads. Vulkan needs a [`VulkanContext`], every other device type a [`Waiter`]. An operation
//! fails if the crate cannot wait on the event; the wait is never skipped. A NULL event is ready.
//!
//! Errors of the operations: ENOENT if the library of the runtime is not found, ENOSYS if the
//! library lacks a function of this operation, ENOTSUP if the runtime does not support the
//! operation, EINVAL for a released array and for a handle that is not an event or stream, EBUSY
//! for a stream that is being captured into a graph, EIO for another error of the runtime, with its
//! name in the message, and the errors of waiters. After an error, do not read the buffers.
//!
//! CUDA contexts: an operation on a stream uses the stream's context, every other operation the
//! current context, or the primary context of the device if it is active. No operation creates a
//! context, and each restores the thread's current context, or the thread's HIP device.
//!
//! CUDA and HIP graphs: while another thread captures, the operations neither fail nor disturb the
//! capture. HIP before ROCm 7.2 may reject a query while any thread captures in global mode, and
//! invalidate that capture.
//!
//! See "Synchronization Events" in the Arrow C device data interface.

mod vendors;
mod vulkan;
mod waiter;

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use fletching_abi::{ArrowArray, ArrowDeviceType};

use crate::c_core::{self as core, call, FletchingReleaseCounts, FletchingStream};
use crate::chain::Shown;
use crate::error::{printable_c, Error};
use crate::hook;
use crate::raw::sealed::Nested;
use crate::DeviceArray;

pub use self::vendors::Runtime;
pub use self::vulkan::VulkanContext;
pub use self::waiter::{register_waiter, unregister_waiter, Waiter};

/// The behavior on a stream that is being captured into a CUDA or HIP graph. It has no effect on
/// other streams and runtimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(i32)] // numbered as in the core
pub enum OnCapture {
    /// Returns EBUSY, before any call that would invalidate the capture.
    #[default]
    Refuse = core::FLETCHING_CAPTURE_REFUSE,
    /// The graph records the event, or waits for it, each time it is launched. The graph does not
    /// keep the event alive: the array must not be released before the graph and everything
    /// instantiated from it are destroyed. An event that the graph records counts as complete until
    /// the first launch, so the array must not be passed on before that. ENOTSUP if the runtime has
    /// no external events: CUDA has them since 11.1, ROCm since 7.0.
    External = core::FLETCHING_CAPTURE_EXTERNAL_EVENT,
    /// For [`DeviceArray::release_after_with`] and an array that the graph does not read: keeps the
    /// array until the capture has ended and the current work on the stream is done. The stream
    /// must be valid until then. An array that the graph reads must outlive the graph, because the
    /// graph may be launched later. Other operations behave as with [`Refuse`](Self::Refuse).
    Keep = core::FLETCHING_CAPTURE_KEEP,
}

/// A stream or queue with its runtime and device. The caller owns it.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    device_type: ArrowDeviceType,
    device_id: Option<i64>,
    handle: *mut c_void,
}

// SAFETY: guaranteed by the contract of `Stream::from_raw`.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// Makes a stream from a handle: a `CUstream`, `cudaStream_t`, `hipStream_t` or
    /// `cl_command_queue`, or a stream that the waiter of another device type accepts. CUDA and HIP
    /// have default streams, one of each per device: NULL and 1 are the legacy stream, 2 is the
    /// per-thread stream. They belong to the array's device unless [`on_device`](Self::on_device)
    /// sets another. OpenCL has no default stream.
    ///
    /// # Safety
    ///
    /// The handle belongs to the device type's runtime, and is valid while this value or a copy of
    /// it is used. It may be used on any thread.
    #[must_use]
    pub const unsafe fn from_raw(device_type: ArrowDeviceType, handle: *mut c_void) -> Self {
        Self {
            device_type,
            device_id: None,
            handle,
        }
    }

    /// The legacy default stream of CUDA or HIP. OpenCL rejects it.
    #[must_use]
    pub const fn legacy(device_type: ArrowDeviceType) -> Self {
        // SAFETY: NULL is always valid where a default stream exists.
        unsafe { Self::from_raw(device_type, ptr::null_mut()) }
    }

    /// Sets the device of a default stream. The driver knows the device of every other stream.
    #[must_use]
    pub const fn on_device(mut self, device_id: i64) -> Self {
        self.device_id = Some(device_id);
        self
    }

    /// The type of the devices that the stream is for.
    #[must_use]
    pub fn device_type(&self) -> ArrowDeviceType {
        self.device_type
    }

    /// The device of a default stream, or `None` for the array's device.
    #[must_use]
    pub fn device_id(&self) -> Option<i64> {
        self.device_id
    }

    /// The handle.
    #[must_use]
    pub fn as_ptr(&self) -> *mut c_void {
        self.handle
    }

    /// Converts to the core's struct, for an array of this device type. The core fills in the
    /// array's device.
    fn to_core(self, device_type: ArrowDeviceType) -> FletchingStream {
        const OF_ARRAY: i32 = 0; // FLETCHING_RUNTIME_NONE
        const UNKNOWN: i32 = -1; // the core makes no call with the handle
        let is_same = self.device_type == device_type;
        let without_runtime = if is_same { OF_ARRAY } else { UNKNOWN };
        FletchingStream {
            handle: self.handle,
            device_id: self.device_id.unwrap_or(-1),
            context: ptr::null_mut(),
            runtime: Runtime::of(self.device_type).map_or(without_runtime, |own| own as i32),
        }
    }
}

/// The event of a live device array, for a [`Waiter`]. It belongs to the producer and is valid
/// while the array is borrowed.
#[derive(Clone, Copy, Debug)]
pub struct SyncEvent<'a> {
    device_type: ArrowDeviceType,
    device_id: i64,
    pointer: *mut c_void,
    array: PhantomData<&'a ()>,
}

impl SyncEvent<'_> {
    /// The type of the device that the array is on.
    #[must_use]
    pub fn device_type(&self) -> ArrowDeviceType {
        self.device_type
    }

    /// The number of the device among the devices of its type.
    #[must_use]
    pub fn device_id(&self) -> i64 {
        self.device_id
    }

    /// The `sync_event` of the struct, never NULL.
    #[must_use]
    pub fn as_ptr(&self) -> *mut c_void {
        self.pointer
    }
}

unsafe extern "C" fn release_nothing(array: *mut ArrowArray) {
    // SAFETY: the caller passes the array.
    unsafe { (*array).release = None }
}

/// Operations on the event, see the [module](crate::runtime). Can be called on any thread, also
/// concurrently.
impl DeviceArray {
    /// Blocks the calling thread until the event has completed. The host may then read
    /// host-accessible buffers.
    pub fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the struct and its sync_event meet the requirements of Owner::from_raw.
        unsafe { call!("synchronize", DeviceArraySynchronize(self.as_raw())) }
    }

    /// Makes later work on the stream wait for the event, and returns while it is still pending.
    /// Kernels on that stream may then read the buffers. Returns EBUSY for a stream that is being
    /// captured into a graph; the capture continues.
    pub fn wait_on(&self, stream: &Stream) -> Result<(), Error> {
        self.wait_on_with(stream, OnCapture::Refuse)
    }

    /// [`wait_on`](Self::wait_on) with a choice for a stream that is being captured.
    pub fn wait_on_with(&self, stream: &Stream, on_capture: OnCapture) -> Result<(), Error> {
        let stream = stream.to_core(self.device_type());
        // SAFETY: as in synchronize; the stream is alive by the contract of `Stream::from_raw`.
        unsafe {
            call!(
                "wait_on",
                DeviceArrayWaitOn(self.as_raw(), stream, on_capture as c_int)
            )
        }
    }

    /// Whether the event has completed. Does not block.
    pub fn is_ready(&self) -> Result<bool, Error> {
        let mut ready = 0;
        // SAFETY: as in synchronize.
        unsafe {
            call!("is_ready", DeviceArrayReady(self.as_raw(), &raw mut ready))?;
        }
        Ok(ready != 0)
    }

    /// Sets a `sync_event` that completes when the current work on the stream is done. Call it
    /// after the work that fills the buffers; later work on the stream must not write to them.
    ///
    /// The event is created in the stream's context, without timing. It lives, at the same address,
    /// until the array and every child that was moved out of it are released; the last of these
    /// releases destroys it, on any thread. If the context was destroyed before, the release skips
    /// that, as far as the driver reports it: reliably for a primary context and CUDA 12.0 or later.
    /// In a child of fork the release skips it too, with a warning on stderr.
    ///
    /// Errors: ENOTSUP for device types without CUDA, HIP or OpenCL streams; EBUSY for a stream
    /// that is being captured; EINVAL for an array that is released, has an event, or is malformed.
    /// The array is then unchanged.
    pub fn export_with_event(&mut self, stream: &Stream) -> Result<(), Error> {
        self.export_with_event_with(stream, OnCapture::Refuse)
    }

    /// [`export_with_event`](Self::export_with_event) with a choice for a stream that is being
    /// captured.
    pub fn export_with_event_with(
        &mut self,
        stream: &Stream,
        on_capture: OnCapture,
    ) -> Result<(), Error> {
        const OPERATION: &str = "export_with_event";
        let stream = stream.to_core(self.device_type());
        // The core's event is owned by an array without data, which all structs share.
        let none = ArrowArray {
            release: self.live().and(Some(release_nothing)),
            ..ArrowArray::zeroed()
        };
        // SAFETY: the array is valid, and its release callback only marks it as released.
        let mut holder = unsafe { Self::new(self.as_raw().around(none)) };
        // SAFETY: the array is valid by the contract of `from_raw`, and its owner is borrowed
        // exclusively. A malformed array is rejected before an event is recorded, possibly into a
        // graph.
        let targets = unsafe {
            let raw = self.as_mut_ptr();
            hook::event_targets(OPERATION, &raw mut (*raw).array)?
        };
        // SAFETY: as in wait_on.
        unsafe {
            let array = holder.as_mut_ptr();
            call!(
                OPERATION,
                DeviceArrayExportWithEvent(array, stream, on_capture as c_int)
            )?;
        }
        let event = holder.sync_event();
        let share = Shown {
            share: Arc::new(holder),
            data: 0,
        };
        // SAFETY: as above; the array is unchanged.
        unsafe {
            hook::attach_event(targets, &share);
            (*self.as_mut_ptr()).sync_event = event;
        }
        Ok(())
    }

    /// Releases the array when the current work on the stream is done. Use it if your kernels still
    /// read the buffers: a drop would free memory that is in use.
    ///
    /// Always takes the array, and never releases it early:
    ///
    /// - Normally it returns at once. The release callback runs later, on a thread of the crate and
    ///   never inside a driver callback. The stream's context is then current, and the callback may
    ///   free memory while another thread captures. Up to 64 callbacks may block without delaying
    ///   the others. A child that was moved out before is not included.
    /// - If it cannot get a thread or memory, it waits for the stream and releases the array.
    /// - If it cannot wait either, it leaks the array, counts it and returns the reason: EBUSY for a
    ///   stream that is being captured, ECHILD in a child of fork.
    /// - It releases an array at once if its device type has no runtime and the stream is NULL.
    ///
    /// A driver error about the event does not mean that the work is done: the array stays pending,
    /// and the driver is queried again, see [`pending_releases`]. If the driver reports that the
    /// device or the context is lost, the array is released. Pending arrays are not released when
    /// the process exits. The library that contains this crate stays loaded after the first call.
    ///
    /// Errors: also EINVAL for a released array, and for a stream of a different runtime than the
    /// array's: then the array is leaked, because the completion of that stream does not imply that
    /// the array is no longer read.
    pub fn release_after(self, stream: &Stream) -> Result<(), Error> {
        self.release_after_with(stream, OnCapture::Refuse)
    }

    /// [`release_after`](Self::release_after) with a choice for a stream that is being captured.
    pub fn release_after_with(self, stream: &Stream, on_capture: OnCapture) -> Result<(), Error> {
        let mut raw = self.detach();
        // Work of any runtime may read an array whose device type has no runtime.
        let runtime = Runtime::of(raw.device_type);
        let stream = stream.to_core(runtime.map_or(stream.device_type, |_| raw.device_type));
        // SAFETY: the array was owned, and the core takes it. The stream is valid by the contract
        // of `Stream::from_raw`.
        unsafe {
            call!(
                "release_after",
                DeviceArrayReleaseAfter(&raw mut raw, stream, on_capture as c_int)
            )
        }
    }
}

/// Counts of the arrays passed to [`DeviceArray::release_after`], and of inherited events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingReleases {
    /// Arrays whose stream has not finished their work.
    pub pending: i64,
    /// Pending arrays whose last query failed.
    pub refused: i64,
    /// Arrays whose release callback is scheduled or running.
    pub running: i64,
    /// Arrays that could neither be deferred nor waited for.
    pub leaked: i64,
    /// The driver's last error about an event, or empty.
    pub last_refusal: String,
    /// Events that were not destroyed because their release ran in a child of fork.
    pub inherited_events: i64,
}

/// Returns the counts of this process. Does not start a thread.
#[must_use]
pub fn pending_releases() -> PendingReleases {
    let mut counts = FletchingReleaseCounts::default();
    let mut message = core::FletchingMessage { text: [0; 1024] };
    // SAFETY: both are local, and the core terminates the message with NUL.
    let last_refusal = unsafe {
        core::PendingReleases(&mut counts, &mut message);
        printable_c(message.text.as_ptr())
    };
    PendingReleases {
        pending: counts.pending,
        refused: counts.refused,
        running: counts.running,
        leaked: counts.leaked,
        last_refusal,
        inherited_events: counts.inherited_events,
    }
}

// SPDX-License-Identifier: Apache-2.0

//! The gate and the queue of `cpp/producer/gate.h`.

use std::ffi::{c_char, c_int, c_void};

use fletching::abi::{
    ArrowAsyncDeviceStreamHandler, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema,
};
use fletching::{AsyncHandler, DeviceArray, DeviceArrayStream, Error, Schema};
use fletching_transit_rust::producer::{c_text, checked, Message};

use crate::device::Device;

fletching_testing::library! {
    pub struct Functions from "fletching_producer" {
        presence = FletchingProducerBackendPresence(*const c_char, *mut i32, *mut Message) -> c_int;
        vulkan_handles = FletchingProducerVulkanHandles(*mut crate::device::VulkanHandles, *mut Message) -> c_int;
        gate_create = FletchingProducerGateCreate(*const c_char, *mut *mut c_void, *mut Message) -> c_int;
        gate_open = FletchingProducerGateOpen(*mut c_void, *mut Message) -> c_int;
        gate_destroy = FletchingProducerGateDestroy(*mut c_void, *mut Message) -> c_int;
        export_array = FletchingProducerExportArrayBehind(*mut c_void, *const c_char, *mut ArrowSchema, *mut ArrowDeviceArray, *mut Message) -> c_int;
        export_stream = FletchingProducerExportStreamBehind(*mut c_void, *const c_char, i64, i64, *mut ArrowDeviceArrayStream, *mut Message) -> c_int;
        run_async = FletchingProducerRunAsync(*const c_char, *mut c_void, *const c_char, i64, i64, *mut ArrowAsyncDeviceStreamHandler, *mut Message) -> c_int;
        await_async = FletchingProducerAwaitAsync();
        queue_create = FletchingProducerQueueCreate(*const c_char, *mut *mut c_void, *mut Message) -> c_int;
        queue_handle = FletchingProducerQueueHandle(*mut c_void) -> *mut c_void;
        queue_read = FletchingProducerQueueRead(*mut c_void, *const c_char, *const ArrowDeviceArray, *mut Message) -> c_int;
        queue_is_idle = FletchingProducerQueueIsIdle(*mut c_void, *mut i32, *mut Message) -> c_int;
        queue_verify = FletchingProducerQueueVerify(*mut c_void, i32, *mut i64, *mut Message) -> c_int;
        queue_destroy = FletchingProducerQueueDestroy(*mut c_void, *mut Message) -> c_int;
    }
}

/// What a queue has read.
pub const OLD: i32 = 0;
/// As above.
pub const NEW: i32 = 1;

/// The source of exports: behind a shut gate, or, where a device has no queues, without one. Opened
/// at the latest on drop, after what was exported from it.
pub struct Gated<'a> {
    device: &'a Device,
    gate: *mut c_void,
}

impl<'a> Gated<'a> {
    pub fn new(device: &'a Device) -> Result<Self, Error> {
        let mut gate = std::ptr::null_mut();
        if device.has_queues() {
            let backend = c_text(&device.backend);
            // SAFETY: the name ends with NUL.
            checked(|message| unsafe {
                (device.functions.gate_create)(backend.as_ptr(), &mut gate, message)
            })?;
        }
        Ok(Self { device, gate })
    }

    pub fn export_array(&self, case: &str) -> Result<(Schema, DeviceArray), Error> {
        if self.gate.is_null() {
            return self
                .device
                .producer
                .export_array(&self.device.backend, case);
        }
        let case = c_text(case);
        let (mut schema, mut array) = (Schema::default(), DeviceArray::default());
        // SAFETY: the name ends with NUL; both structs are ours to be filled.
        checked(|message| unsafe {
            let (schema, array) = (schema.out(), array.out());
            (self.device.functions.export_array)(self.gate, case.as_ptr(), schema, array, message)
        })?;
        Ok((schema, array))
    }

    pub fn export_stream(
        &self,
        case: &str,
        batches: i64,
        fail_at: i64,
    ) -> Result<DeviceArrayStream, Error> {
        let device = self.device;
        if self.gate.is_null() {
            return device
                .producer
                .export_stream(&device.backend, case, batches, fail_at);
        }
        let case = c_text(case);
        let export = device.functions.export_stream;
        let mut stream = DeviceArrayStream::default();
        // SAFETY: the name ends with NUL; the stream is ours to be filled.
        checked(|message| unsafe {
            export(
                self.gate,
                case.as_ptr(),
                batches,
                fail_at,
                stream.out(),
                message,
            )
        })?;
        Ok(stream)
    }

    pub fn run_async(
        &self,
        case: &str,
        batches: i64,
        fail_at: i64,
        handler: AsyncHandler,
    ) -> Result<(), Error> {
        let (backend, case) = (c_text(&self.device.backend), c_text(case));
        let run = self.device.functions.run_async;
        // SAFETY: names end with NUL; the producer releases the handler that it has accepted.
        checked(|message| unsafe {
            let (backend, case) = (backend.as_ptr(), case.as_ptr());
            run(
                backend,
                self.gate,
                case,
                batches,
                fail_at,
                handler.as_ptr(),
                message,
            )
        })?;
        let _ = handler.into_raw();
        Ok(())
    }

    pub fn open(&self) -> Result<(), Error> {
        if self.gate.is_null() {
            return Ok(());
        }
        // SAFETY: the gate is alive.
        checked(|message| unsafe { (self.device.functions.gate_open)(self.gate, message) })
    }
}

impl Drop for Gated<'_> {
    fn drop(&mut self) {
        // SAFETY: the gate is alive, or NULL.
        unsafe { (self.device.functions.gate_destroy)(self.gate, std::ptr::null_mut()) };
    }
}

/// Opens a gate on drop. To be made after a queue: the drop of a queue waits for what is on it, for
/// ever when that is behind a shut gate.
pub struct OpenAtLast<'a>(pub &'a Gated<'a>);

impl Drop for OpenAtLast<'_> {
    fn drop(&mut self) {
        let _ = self.0.open();
    }
}

/// A consumer's queue. The arrays that it reads outlive it.
pub struct Queue<'a> {
    functions: &'a Functions,
    queue: *mut c_void,
}

impl<'a> Queue<'a> {
    pub fn new(device: &'a Device) -> Result<Self, Error> {
        let backend = c_text(&device.backend);
        let mut queue = std::ptr::null_mut();
        // SAFETY: the name ends with NUL.
        checked(|message| unsafe {
            (device.functions.queue_create)(backend.as_ptr(), &mut queue, message)
        })?;
        Ok(Self {
            functions: &device.functions,
            queue,
        })
    }

    /// Valid until the next call.
    pub fn handle(&self) -> *mut c_void {
        // SAFETY: the queue is alive.
        unsafe { (self.functions.queue_handle)(self.queue) }
    }

    pub fn read(&self, case: &str, array: &DeviceArray) -> Result<(), Error> {
        let case = c_text(case);
        // SAFETY: the queue is alive, and the array outlives it.
        checked(|message| unsafe {
            (self.functions.queue_read)(self.queue, case.as_ptr(), array.as_raw(), message)
        })
    }

    pub fn is_idle(&self) -> Result<bool, Error> {
        let mut idle = 0;
        // SAFETY: the queue is alive.
        checked(|message| unsafe {
            (self.functions.queue_is_idle)(self.queue, &mut idle, message)
        })?;
        Ok(idle != 0)
    }

    /// How many bytes are as expected: all that were read.
    pub fn verify(&self, expected: i32) -> Result<i64, Error> {
        let mut compared = 0;
        // SAFETY: the queue is alive.
        checked(|message| unsafe {
            (self.functions.queue_verify)(self.queue, expected, &mut compared, message)
        })?;
        Ok(compared)
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        // SAFETY: the queue is alive.
        unsafe { (self.functions.queue_destroy)(self.queue, std::ptr::null_mut()) };
    }
}

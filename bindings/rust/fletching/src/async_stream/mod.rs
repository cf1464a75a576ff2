// SPDX-License-Identifier: Apache-2.0

//! The async C device stream interface, as producer and consumer of `futures_core` streams.

mod batch;
mod calls;
mod consumer;
mod consumer_core;
mod consumer_handler;
mod debug;
mod options;
mod producer;
mod producer_core;
mod queued;
mod sending;
mod task;
mod waker;

#[cfg(test)]
#[path = "../../tests/async_replay/mod.rs"]
mod replay;

use std::ptr::NonNull;

use fletching_abi::ArrowDeviceType;
use fletching_abi::{ArrowArray, ArrowAsyncDeviceStreamHandler};

use crate::batch_type::BatchType;
use crate::error::Error;
use crate::handover::{Handover, Kind};
use crate::owner::{DeviceArray, Schema};

pub use batch::AsyncBatch;
pub use consumer::AsyncStream;
pub use options::{AsyncOffer, AsyncOptions};
pub use producer::AsyncProducer;
pub use sending::{AsyncAbort, AsyncSending};

/// Owns the handler of a consumer: an [`AsyncStream`], or foreign code.
///
/// The struct keeps its address until its release. Dropping the owner releases the handler, which
/// the consumer reports as an error. A producer takes the handler with [`into_raw`](Self::into_raw)
/// or [`AsyncProducer::send`].
///
/// See "The ArrowAsyncDeviceStreamHandler structure" in the Arrow C device data interface.
#[derive(Debug)]
pub struct AsyncHandler(NonNull<ArrowAsyncDeviceStreamHandler>);

// SAFETY: handler calls may be made on any thread, one at a time.
unsafe impl Send for AsyncHandler {}

impl AsyncHandler {
    /// Takes ownership of a foreign consumer's handler.
    ///
    /// # Safety
    ///
    /// `handler` is valid until its release, its callbacks conform to the specification, and no
    /// other code calls them.
    #[must_use]
    pub unsafe fn from_raw(mut handler: NonNull<ArrowAsyncDeviceStreamHandler>) -> Self {
        // SAFETY: guaranteed by the caller. A non-null pointer has the layout of a pointer.
        unsafe { Handover::Export.validate(Kind::Handler, &raw mut handler) };
        Self(handler)
    }

    /// Returns the handler for a foreign producer, which must release it.
    #[must_use = "the handler must be released"]
    pub fn into_raw(self) -> *mut ArrowAsyncDeviceStreamHandler {
        let mut handler = std::mem::ManuallyDrop::new(self).as_ptr();
        // SAFETY: guaranteed by the contract of `from_raw`.
        unsafe { Handover::Import.validate(Kind::Handler, &raw mut handler) };
        handler
    }

    /// The address of the handler, which the owner keeps.
    #[must_use]
    pub fn as_ptr(&self) -> *mut ArrowAsyncDeviceStreamHandler {
        self.0.as_ptr()
    }
}

impl Drop for AsyncHandler {
    fn drop(&mut self) {
        // SAFETY: guaranteed by the contract of `from_raw`; the owner makes the last call.
        unsafe { ArrowAsyncDeviceStreamHandler::release_once(self.0.as_ptr()) }
    }
}

/// The properties of all batches of a stream.
#[derive(Debug)]
struct Promise {
    device_type: ArrowDeviceType,
    batch_type: BatchType,
}

impl Promise {
    /// Errors: EINVAL for a malformed schema.
    fn of(schema: &Schema, device_type: ArrowDeviceType) -> Result<Self, Error> {
        Ok(Self {
            device_type,
            batch_type: BatchType::of(schema)?,
        })
    }

    /// Errors: EINVAL for a batch that is released, on a device of another type, or of another
    /// schema.
    fn check(&self, batch: &DeviceArray) -> Result<(), Error> {
        self.check_device(batch)?;
        self.refuse("batch", self.batch_type.check_shape(batch))
    }

    /// [`check`](Self::check) for a batch of a producer.
    fn check_sent(&self, number: u64, batch: &DeviceArray) -> Result<(), Error> {
        self.check_device(batch)?;
        let batch = self.batch_type.check_shape(batch);
        self.refuse(&format!("batch {number}"), batch)
    }

    fn refuse(&self, batch: &str, checked: Result<(), String>) -> Result<(), Error> {
        let rule = "async-next.same-schema";
        checked.map_err(|why| Error::broken_rule(rule, &format!("{batch}: {why}")))
    }

    fn check_device(&self, batch: &DeviceArray) -> Result<(), Error> {
        let array: &ArrowArray = &batch.as_raw().array;
        let (found, expected) = (batch.device_type(), self.device_type);
        if array.is_released() {
            return Err(Error::invalid("batch: released: expected a live array"));
        }
        if found != expected {
            let rule = "async-producer.one-device-type";
            let text = "batch: device_type differs from the stream's: expected";
            return Err(Error::broken_rule(
                rule,
                &format!("{text} {expected}, got {found}"),
            ));
        }
        Ok(())
    }
}

fn not_positive(n: i64) -> Error {
    Error::invalid(format!(
        "request: n is not positive: expected 1 or more, got {n}"
    ))
}

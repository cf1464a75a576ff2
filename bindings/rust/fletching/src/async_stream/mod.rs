// SPDX-License-Identifier: Apache-2.0

//! The async C device stream interface: streams of `futures_core` both ways.

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
use crate::owner::{DeviceArray, Schema};

pub use batch::AsyncBatch;
pub use consumer::AsyncStream;
pub use options::{AsyncOffer, AsyncOptions};
pub use producer::AsyncProducer;
pub use sending::{AsyncAbort, AsyncSending};

/// Owns the handler of a consumer: of an [`AsyncStream`], or of foreign code.
///
/// The struct has one address until its release. Dropping the owner calls the release, which the
/// consumer reports as an error; a producer takes the handler over by
/// [`into_raw`](Self::into_raw) or [`AsyncProducer::send`].
///
/// Text: C device data interface, "The ArrowAsyncDeviceStreamHandler structure".
#[derive(Debug)]
pub struct AsyncHandler(NonNull<ArrowAsyncDeviceStreamHandler>);

// SAFETY: handler calls may be made on any thread, one at a time.
unsafe impl Send for AsyncHandler {}

impl AsyncHandler {
    /// Takes over the handler of a foreign consumer.
    ///
    /// # Safety
    ///
    /// `handler` is valid until its release, its callbacks are as the text asks for them, and no code
    /// else calls them.
    #[must_use]
    pub unsafe fn from_raw(handler: NonNull<ArrowAsyncDeviceStreamHandler>) -> Self {
        Self(handler)
    }

    /// The handler for a foreign producer, which has to call its release.
    #[must_use = "the handler has to be released"]
    pub fn into_raw(self) -> *mut ArrowAsyncDeviceStreamHandler {
        std::mem::ManuallyDrop::new(self).as_ptr()
    }

    /// The address of the handler, still owned here.
    #[must_use]
    pub fn as_ptr(&self) -> *mut ArrowAsyncDeviceStreamHandler {
        self.0.as_ptr()
    }
}

impl Drop for AsyncHandler {
    fn drop(&mut self) {
        // SAFETY: see from_raw; the owner makes the last call.
        unsafe { ArrowAsyncDeviceStreamHandler::release_once(self.0.as_ptr()) }
    }
}

/// Properties that every batch of a stream has.
#[derive(Debug)]
struct Promise {
    device_type: ArrowDeviceType,
    batch_type: BatchType,
}

impl Promise {
    /// Errors: EINVAL for a schema that is malformed.
    fn of(schema: &Schema, device_type: ArrowDeviceType) -> Result<Self, Error> {
        Ok(Self {
            device_type,
            batch_type: BatchType::of(schema)?,
        })
    }

    /// Errors: EINVAL for a batch that is released, on another type of device, or of another schema.
    fn check(&self, batch: &DeviceArray) -> Result<(), Error> {
        self.check_device(batch)?;
        self.refuse("batch", self.batch_type.check_shape(batch))
    }

    /// The same for a batch of a producer.
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

/// The error for a number of batches below 1.
fn not_positive(n: i64) -> Error {
    Error::invalid(format!(
        "request: n is not positive: expected 1 or more, got {n}"
    ))
}

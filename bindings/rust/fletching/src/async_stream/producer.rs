// SPDX-License-Identifier: Apache-2.0

//! The producer: any stream of batches, for the handler of a consumer.

use std::future::{ready, Future, Ready};

use fletching_abi::ArrowDeviceType;
use futures_core::Stream;

use super::sending::AsyncSending;
use super::AsyncHandler;
use crate::error::Error;
use crate::owner::{DeviceArray, Schema};

/// A stream of batches that is sent to the handler of a consumer.
///
/// The items of the stream are arrays, or [`AsyncBatch`]es with metadata.
///
/// Text: C device data interface, "Async device stream interface".
pub struct AsyncProducer<F> {
    pub(super) open: F,
    pub(super) device_type: ArrowDeviceType,
    pub(super) metadata: Vec<u8>,
    pub(super) calls_per_poll: u32,
}

impl<St, B> AsyncProducer<Ready<Result<(Schema, St), Error>>>
where
    St: Stream<Item = Result<B, Error>>,
    B: Into<AsyncBatch>,
{
    /// The batches of `stream`, all of `schema` and on devices of `device_type`.
    #[must_use]
    pub fn new(schema: Schema, device_type: ArrowDeviceType, stream: St) -> Self {
        Self::open(device_type, ready(Ok((schema, stream))))
    }
}

impl<F, St, B> AsyncProducer<F>
where
    F: Future<Output = Result<(Schema, St), Error>>,
    St: Stream<Item = Result<B, Error>>,
    B: Into<AsyncBatch>,
{
    /// The same of a stream that has to be opened first. The consumer may cancel meanwhile, and its
    /// `on_error` gets an error of `open`.
    #[must_use]
    pub fn open(device_type: ArrowDeviceType, open: F) -> Self {
        Self {
            open,
            device_type,
            metadata: Vec::new(),
            calls_per_poll: 32,
        }
    }

    /// The metadata of the stream, as [`encode_metadata`](crate::encode_metadata) returns it.
    /// Malformed metadata ends the stream with EINVAL.
    #[must_use]
    pub fn metadata(mut self, block: Vec<u8>) -> Self {
        self.metadata = block;
        self
    }

    /// After how many calls of the handler the future lets others run. By default 32.
    #[must_use]
    pub fn calls_per_poll(mut self, calls: u32) -> Self {
        self.calls_per_poll = calls.max(1);
        self
    }

    /// Sends the stream to a consumer. The future makes all calls of the handler; it needs an
    /// executor, and does nothing before it is polled.
    pub fn send(self, handler: AsyncHandler) -> AsyncSending<F, St> {
        AsyncSending::new(self, handler)
    }
}

/// One batch of an [`AsyncProducer`]: an array, or a function that makes it,
/// and metadata of its own.
pub struct AsyncBatch {
    pub(super) data: Data,
    /// Encoded; empty for none.
    pub(super) metadata: Vec<u8>,
}

pub(super) enum Data {
    Ready(DeviceArray),
    Made(Box<dyn FnOnce() -> Result<DeviceArray, Error> + Send>),
}

impl AsyncBatch {
    /// A batch that is made when the consumer extracts it, on the consumer's thread. `make` should
    /// not block. It is dropped unused when the consumer drops the task.
    ///
    /// An error, a panic, or an array that does not fit the stream makes `extract_data` return an
    /// error, ends the stream with `on_error`, and is the result of the producer's future. After the
    /// end, only an [`AsyncStream`](crate::AsyncStream) gets the message; other consumers get the code.
    #[must_use]
    pub fn made(make: impl FnOnce() -> Result<DeviceArray, Error> + Send + 'static) -> Self {
        Self {
            data: Data::Made(Box::new(make)),
            metadata: Vec::new(),
        }
    }

    /// Passes metadata with the task, as [`encode_metadata`](crate::encode_metadata) returns it.
    /// Malformed metadata ends the stream with EINVAL.
    #[must_use]
    pub fn with_metadata(mut self, block: Vec<u8>) -> Self {
        self.metadata = block;
        self
    }
}

impl From<DeviceArray> for AsyncBatch {
    fn from(array: DeviceArray) -> Self {
        Self {
            data: Data::Ready(array),
            metadata: Vec::new(),
        }
    }
}

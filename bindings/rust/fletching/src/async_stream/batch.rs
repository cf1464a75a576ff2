// SPDX-License-Identifier: Apache-2.0

//! A batch to send.

use crate::error::Error;
use crate::owner::DeviceArray;

/// A batch of an [`AsyncProducer`](crate::AsyncProducer): an array or a function that makes it, and
/// metadata.
pub struct AsyncBatch {
    pub(super) data: Data,
    /// Encoded; empty for no metadata.
    pub(super) metadata: Vec<u8>,
}

pub(super) enum Data {
    Ready(DeviceArray),
    Made(Box<dyn FnOnce() -> Result<DeviceArray, Error> + Send>),
}

impl AsyncBatch {
    /// Makes a batch that is created when the consumer extracts it, on the consumer's thread.
    /// `make` should not block. It is dropped without a call if the consumer drops the task.
    ///
    /// An error, a panic, or an array that does not fit the stream makes `extract_data` return an
    /// error, ends the stream with `on_error`, and is the result of the producer's future. After
    /// the end of the stream, only an [`AsyncStream`](crate::AsyncStream) gets the message; other
    /// consumers get the code.
    #[must_use]
    pub fn made(make: impl FnOnce() -> Result<DeviceArray, Error> + Send + 'static) -> Self {
        Self {
            data: Data::Made(Box::new(make)),
            metadata: Vec::new(),
        }
    }

    /// Sets the metadata of the task, encoded by [`encode_metadata`](crate::encode_metadata).
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

// SPDX-License-Identifier: Apache-2.0

//! What a producer sends as one task.

use std::fmt;

use crate::error::Error;
use crate::owner::DeviceArray;

/// One batch of an [`AsyncProducer`](crate::AsyncProducer): an array, or a function that makes it,
/// and metadata of its own.
#[derive(Debug)]
pub struct AsyncBatch {
    pub(super) data: Data,
    /// Encoded; empty for none.
    pub(super) metadata: Vec<u8>,
}

pub(super) enum Data {
    Ready(DeviceArray),
    Made(Box<dyn FnOnce() -> Result<DeviceArray, Error> + Send>),
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(array) => array.fmt(f),
            Self::Made(_) => f.write_str("Made"),
        }
    }
}

impl AsyncBatch {
    /// A batch that is made when the consumer extracts it, on the consumer's thread. `make` should
    /// not block. It is dropped unused when the consumer drops the task.
    ///
    /// Its error, its panic, and an array that the stream may not have are what `extract_data`
    /// returns, and end the stream with `on_error`.
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

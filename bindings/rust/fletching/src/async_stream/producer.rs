// SPDX-License-Identifier: Apache-2.0

//! The producer: sends a stream of batches to the handler of a consumer.

use std::future::{ready, Future, Ready};

use fletching_abi::ArrowDeviceType;
use futures_core::Stream;

use super::batch::AsyncBatch;
use crate::error::Error;
use crate::owner::Schema;

/// A stream of batches that can be sent to the handler of a consumer.
///
/// The items of the stream are arrays, or [`AsyncBatch`]es with metadata.
///
/// See "Async device stream interface" in the Arrow C device data interface.
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
    /// Makes a producer of the batches of `stream`, which have the type `schema` and are on devices
    /// of `device_type`.
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
    /// Makes a producer of a stream that must be opened first. The consumer may cancel during
    /// `open`. An error of `open` is passed to its `on_error`.
    #[must_use]
    pub fn open(device_type: ArrowDeviceType, open: F) -> Self {
        Self {
            open,
            device_type,
            metadata: Vec::new(),
            calls_per_poll: 32,
        }
    }

    /// Sets the metadata of the stream, encoded by [`encode_metadata`](crate::encode_metadata).
    /// Malformed metadata ends the stream with EINVAL.
    #[must_use]
    pub fn metadata(mut self, block: Vec<u8>) -> Self {
        self.metadata = block;
        self
    }

    /// Sets the number of handler calls after which the future yields. The default is 32.
    #[must_use]
    pub fn calls_per_poll(mut self, calls: u32) -> Self {
        self.calls_per_poll = calls.max(1);
        self
    }
}

// SPDX-License-Identifier: Apache-2.0

//! The consumer: a handler for a foreign producer, and a stream of its batches.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};

use fletching_abi::ArrowDeviceType;
use futures_core::Stream;

use super::consumer_core::Core;
use super::consumer_handler;
use super::options::AsyncOptions;
use super::AsyncHandler;
use crate::error::Error;
use crate::metadata::Metadata;
use crate::owner::{DeviceArray, Schema};

/// The batches that a producer passes to a handler. Works on any executor.
///
/// The stream ends after the last batch, or after the first error. An error drops the queued
/// batches. Dropping the stream cancels it and drops the queued batches, without waiting for the
/// producer. Batches outlive the stream.
///
/// Every task of the producer is extracted exactly once, into an item or with NULL. After the end,
/// the release of the handler extracts the queued tasks, so that no batch is lost. The release
/// waits while another thread extracts a batch or requests batches.
///
/// Errors: the producer's error, or the code of its `extract_data`, with the message if the
/// producer is an [`AsyncProducer`](crate::AsyncProducer); EIO for a code that is not positive, and
/// if the handler is released before the end, for example by a producer whose runtime was shut
/// down; EINVAL if the producer broke a rule, with its name in the message.
///
/// ```
/// use fletching::{ArrowDeviceType, AsyncOptions, AsyncProducer, AsyncStream};
/// # use fletching::{Array, DeviceArray, Error, SchemaBuilder};
/// use smol::stream::{self, StreamExt};
///
/// # fn main() -> Result<(), Error> {
/// let schema = SchemaBuilder::new("i").build()?;
/// let batches = stream::iter([Ok(DeviceArray::from(Array::from(vec![1, 2, 3])))]);
/// let (handler, mut stream) = AsyncStream::new(AsyncOptions::default());
/// let producer = AsyncProducer::new(schema, ArrowDeviceType::CPU, batches);
/// let sending = smol::spawn(producer.send(handler)); // or pass the handler to a foreign producer
/// smol::block_on(async {
///     assert_eq!(stream.schema().await?.format(), c"i");
///     while let Some(batch) = stream.next().await {
///         assert_eq!(batch?.length(), 3);
///     }
///     sending.await
/// })
/// # }
/// ```
///
/// See "Async device stream interface" in the Arrow C device data interface.
pub struct AsyncStream {
    core: Arc<Core>,
    batch_metadata: Vec<u8>,
    /// Whether the last item was an error.
    has_failed: bool,
}

impl AsyncStream {
    /// Makes a handler for a producer, and the stream of its batches.
    #[must_use]
    pub fn new(options: AsyncOptions) -> (AsyncHandler, Self) {
        let (handler, core) = Core::new(options, consumer_handler::new);
        let stream = Self {
            core,
            batch_metadata: Vec::new(),
            has_failed: false,
        };
        (handler, stream)
    }

    /// Returns the schema of all batches. Waits for the producer. Takes `&mut self` because only
    /// one waker is stored.
    ///
    /// Errors: the stream failed before the schema arrived; the error is also the next item.
    pub async fn schema(&mut self) -> Result<&Schema, Error> {
        let poll = |cx: &mut Context<'_>| {
            self.core.poll(cx, |inner| match &inner.failure {
                _ if self.core.info.get().is_some() => Ok(Ok(())),
                Some(failure) => Ok(Err(failure.clone())),
                None => Err(inner),
            })
        };
        poll_fn(poll).await?;
        let info = self.core.info.get();
        Ok(&info.expect("there is a schema").schema)
    }

    /// The type of the device that the batches are on, or 0 before the schema arrives.
    #[must_use]
    pub fn device_type(&self) -> ArrowDeviceType {
        let info = self.core.info.get();
        info.map_or(ArrowDeviceType(0), |info| info.promise.device_type)
    }

    /// The metadata of the stream; empty before the schema arrives.
    #[must_use]
    pub fn metadata(&self) -> Metadata<'_> {
        checked(self.core.info.get().map_or(&[], |info| &info.metadata))
    }

    /// The metadata of the last batch returned.
    #[must_use]
    pub fn batch_metadata(&self) -> Metadata<'_> {
        checked(&self.batch_metadata)
    }

    /// Requests `n` batches in addition to the window. Before the schema arrives, the request is
    /// stored. The total saturates. Does nothing after the end of the stream.
    ///
    /// Errors: EINVAL if `n` is below 1.
    pub fn request(&self, n: i64) -> Result<(), Error> {
        self.core.request(n)
    }

    /// Drops the oldest batch that has arrived, without extracting its data. Returns false if there
    /// is none, or if the next item is an error, which is kept.
    pub fn skip_batch(&mut self) -> bool {
        !self.has_failed && self.core.skip()
    }

    #[cfg(test)]
    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

fn checked(block: &[u8]) -> Metadata<'_> {
    match block {
        [] => Metadata::default(),
        block => Metadata::from_bytes(block).expect("the block was checked"),
    }
}

impl Stream for AsyncStream {
    type Item = Result<DeviceArray, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_failed {
            return Poll::Ready(None);
        }
        let batch = ready!(self.core.poll_batch(cx));
        Poll::Ready(batch.map(|batch| {
            let (batch, metadata) = batch.inspect_err(|_| {
                self.has_failed = true;
                self.core.cancel();
            })?;
            self.batch_metadata = metadata;
            Ok(batch)
        }))
    }
}

impl Drop for AsyncStream {
    fn drop(&mut self) {
        self.core.cancel();
    }
}

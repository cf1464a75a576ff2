// SPDX-License-Identifier: Apache-2.0

//! The consumer: a handler for a foreign producer, and its batches as a stream.

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
/// The stream ends after the last batch, or after the one item that is an error. An error drops the
/// batches that are queued. Dropping the stream cancels it and drops them too, without waiting for the
/// producer. Batches outlive the stream.
///
/// Every task of the producer is extracted once, into an item or with NULL. After the end the
/// release of the handler extracts what is queued, so that no batch is lost. The release waits while
/// a batch is being extracted, and while batches are requested, on another thread.
///
/// Errors: the producer's error, or the code of its `extract_data`, with the message if the producer is
/// an [`AsyncProducer`](crate::AsyncProducer); EIO for a code that is not
/// positive, and when the handler was released before the end, as by a producer whose runtime is
/// gone; EINVAL when the producer broke a rule, which the message names.
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
/// Text: C device data interface, "Async device stream interface".
pub struct AsyncStream {
    core: Arc<Core>,
    batch_metadata: Vec<u8>,
    /// The item that is an error was the last one.
    has_failed: bool,
}

impl AsyncStream {
    /// The handler for a producer, and the batches that it will pass.
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

    /// The schema of every batch. Waits for the producer; borrows the stream alone, because one waker
    /// is kept.
    ///
    /// Errors: the stream has failed before the schema; the error is the next item as well.
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

    /// The type of the device that every batch is on; 0 until there is a schema.
    #[must_use]
    pub fn device_type(&self) -> ArrowDeviceType {
        let info = self.core.info.get();
        info.map_or(ArrowDeviceType(0), |info| info.promise.device_type)
    }

    /// The metadata of the stream; empty until there is a schema.
    #[must_use]
    pub fn metadata(&self) -> Metadata<'_> {
        checked(self.core.info.get().map_or(&[], |info| &info.metadata))
    }

    /// The metadata of the batch that was the last item.
    #[must_use]
    pub fn batch_metadata(&self) -> Metadata<'_> {
        checked(&self.batch_metadata)
    }

    /// Requests `n` more batches than the window; before the schema the number is kept until then.
    /// The sum stops at the largest value. Does nothing once the stream is over.
    ///
    /// Errors: EINVAL when `n` is below 1.
    pub fn request(&self, n: i64) -> Result<(), Error> {
        self.core.request(n)
    }

    /// Drops the oldest batch that has arrived, without its data. False when there is none, and when
    /// the next item is an error, which stays.
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

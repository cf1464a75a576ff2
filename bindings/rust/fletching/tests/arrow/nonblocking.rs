// SPDX-License-Identifier: Apache-2.0

//! Async streams as arrow-rs record batches.

use std::future::poll_fn;
use std::pin::{pin, Pin};
use std::task::{Context, Poll, Waker};

use crate::arrow::{from_record_batch, AsyncRecordBatches};
use arrow_array::nonblocking::RecordBatchStream;
use arrow_array::RecordBatch;
use fletching::{ArrowDeviceType, AsyncOptions, AsyncProducer, AsyncStream, DeviceArray, Error};
use futures_core::Stream;
use libc::EINVAL;
use smol::future::{or, poll_once, zip};

use crate::arrays::checked;
use crate::streams::batches;

/// Yields the items, also [`Poll::Pending`], and panics if it is polled again.
#[derive(Debug)]
struct Items(Vec<Poll<Option<Result<DeviceArray, Error>>>>);

impl Stream for Items {
    type Item = Result<DeviceArray, Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.remove(0)
    }
}

fn exported(batch: &RecordBatch) -> Poll<Option<Result<DeviceArray, Error>>> {
    Poll::Ready(Some(Ok(from_record_batch(batch).unwrap().1.into())))
}

fn lost() -> Poll<Option<Result<DeviceArray, Error>>> {
    Poll::Ready(Some(Err(Error::new(71, "lost"))))
}

fn schema() -> fletching::Schema {
    from_record_batch(&batches()[0]).unwrap().0
}

/// Sends the items through the C interface. Returns the error of the producer, the record batches,
/// and the error of the consumer.
fn exchange(items: Items, window: u32) -> (Option<Error>, Vec<RecordBatch>, Option<Error>) {
    let (handler, stream) = AsyncStream::new(AsyncOptions::default().window(window));
    let producer = AsyncProducer::new(schema(), ArrowDeviceType::CPU, items);
    let mut all = Vec::new();
    let read = async {
        // SAFETY: the arrays come from arrow-rs.
        let mut rows = unsafe { AsyncRecordBatches::open(stream, checked()) }.await?;
        assert_eq!(*RecordBatchStream::schema(&rows), batches()[0].schema());
        while let Some(batch) = poll_fn(|cx| Pin::new(&mut rows).poll_next(cx)).await {
            all.push(batch?);
        }
        Ok::<_, Error>(())
    };
    let (sent, read) = smol::block_on(zip(producer.send(handler), read));
    (sent.err(), all, read.err())
}

#[test]
fn async_device_stream_yields_record_batches() {
    for window in [1, 16] {
        let empty = batches()[0].slice(0, 0);
        let mut expected = vec![empty];
        expected.extend(batches());
        let mut items: Vec<_> = expected.iter().map(exported).collect();
        items.push(Poll::Ready(None));
        let (sent, rows, read) = exchange(Items(items), window);
        assert!(sent.is_none() && read.is_none(), "{sent:?} {read:?}");
        assert_eq!(rows, expected);
    }
}

#[test]
fn async_device_stream_without_batches_ends() {
    let (sent, rows, read) = exchange(Items(vec![Poll::Ready(None)]), 1);
    assert!(sent.is_none() && read.is_none(), "{sent:?} {read:?}");
    assert!(rows.is_empty());
}

#[test]
fn async_device_stream_error_reaches_arrow_rs() {
    let items = vec![exported(&batches()[0]), Poll::Pending, lost()];
    let (sent, rows, read) = exchange(Items(items), 1);
    assert_eq!(rows, batches()[..1]);
    for error in [sent, read].map(Option::unwrap) {
        assert_eq!((error.code(), error.message()), (71, "lost"));
    }
}

#[test]
fn dropped_record_batches_cancel_async_device_stream() {
    let (handler, stream) = AsyncStream::new(AsyncOptions::default());
    let items = Items(vec![exported(&batches()[0]), Poll::Pending, Poll::Pending]);
    let producer = AsyncProducer::new(schema(), ArrowDeviceType::CPU, items);
    let mut sending = pin!(producer.send(handler));
    let read = async {
        // SAFETY: the array comes from arrow-rs.
        let rows = unsafe { AsyncRecordBatches::open(stream, checked()) };
        let mut rows = rows.await.unwrap();
        poll_fn(|cx| Pin::new(&mut rows).poll_next(cx)).await
    };
    let sent = async { sending.as_mut().await.err().map(|error| Err(error.into())) };
    let first = smol::block_on(or(read, sent));
    assert_eq!(first.unwrap().unwrap(), batches()[0]);
    let sent = smol::block_on(poll_once(sending));
    sent.expect("the stream is cancelled").unwrap();
}

#[test]
fn record_batches_of_other_type_are_rejected() {
    let schema = fletching::SchemaBuilder::new("i").build().unwrap();
    // SAFETY: the stream is empty.
    let rows = unsafe { AsyncRecordBatches::new(&schema, Items(Vec::new()), checked()) };
    assert_eq!(rows.unwrap_err().code(), EINVAL);
}

#[test]
fn record_batches_end_after_error() {
    let items = Items(vec![Poll::Pending, exported(&batches()[0]), lost()]);
    // SAFETY: the array comes from arrow-rs.
    let mut rows = unsafe { AsyncRecordBatches::new(&schema(), items, checked()) }.unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut next = || Pin::new(&mut rows).poll_next(&mut context);
    assert!(next().is_pending());
    assert!(matches!(next(), Poll::Ready(Some(Ok(batch))) if batch == batches()[0]));
    let Poll::Ready(Some(Err(error))) = next() else {
        panic!("no error")
    };
    assert_eq!(Error::from(error).code(), 71);
    for _ in 0..2 {
        assert!(matches!(next(), Poll::Ready(None)));
    }
}

// SPDX-License-Identifier: Apache-2.0

//! Async streams in both directions. libfletching validates every call of both sides.

use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use datafusion::arrow::array::nonblocking::RecordBatchStream as _;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::RecordBatchStream;
use fletching::arrow_58::{from_record_batch, AsyncRecordBatches, ToArrow};
use fletching::validate::{validate_handler, Finding, Level};
use fletching::{
    ArrowDeviceType, AsyncHandler, AsyncOptions, AsyncProducer, AsyncStream, DeviceArray, Error,
};
use fletching_datafusion::{from_sedona, send_with_sedona};
use futures::executor::block_on;
use futures::future::join;
use futures::{poll, stream, StreamExt, TryStreamExt};
use sedona_extension::import_sendable_record_batch_stream::ImportedAsyncDeviceStream;

/// Makes batches of 2 rows, and one without rows.
fn batches(count: i64) -> Vec<RecordBatch> {
    let batch = |first| {
        let numbers = Arc::new(Int64Array::from(vec![first, first + 1])) as ArrayRef;
        let words = Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("number", numbers), ("word", words)]).unwrap();
        batch.slice(0, if first == 1 { 0 } else { 2 })
    };
    (0..count).map(batch).collect()
}

fn schema() -> SchemaRef {
    batches(1)[0].schema()
}

type Found = Arc<Mutex<Vec<Finding>>>;

/// Returns the handler under validation, and the list of findings.
fn validated(handler: AsyncHandler) -> (AsyncHandler, Found) {
    // Loads the library by path. The loader then finds it by name.
    fletching_testing::library::open("fletching").expect("libfletching");
    let found = Found::default();
    let report = Arc::clone(&found);
    let add = move |finding| report.lock().unwrap().push(finding);
    // SAFETY: the buffers come from arrow-rs.
    let level = unsafe { Level::data() };
    (validate_handler(handler, level, add).unwrap(), found)
}

fn assert_valid(found: &Found) {
    assert_eq!(*found.lock().unwrap(), []);
}

/// Polls up to 10 times, because a sending may yield. A hanging one is None.
async fn settle<F: Future + Unpin>(sending: &mut F) -> Option<F::Output> {
    for _ in 0..10 {
        if let Poll::Ready(output) = poll!(&mut *sending) {
            return Some(output);
        }
    }
    None
}

// --- Fletching to sedona-extension --------------------------------------------------------------

type Sending = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

struct ToSedona {
    sending: Sending,
    stream: ImportedAsyncDeviceStream,
    found: Found,
    /// The number of items that the producer has read from its source, one ahead of those sent.
    read: Arc<AtomicUsize>,
}

fn to_sedona(items: Vec<Result<RecordBatch, Error>>, prefetch: u64) -> ToSedona {
    let (stream, handler) = ImportedAsyncDeviceStream::new(prefetch);
    let (handler, found) = validated(from_sedona(handler));
    let read = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&read);
    let items = stream::iter(items).map(move |batch| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(DeviceArray::from(from_record_batch(&batch?)?.1))
    });
    let schema = from_record_batch(&batches(1)[0]).unwrap().0;
    let producer = AsyncProducer::new(schema, ArrowDeviceType::CPU, items);
    ToSedona {
        sending: Box::pin(producer.send(handler)),
        stream,
        found,
        read,
    }
}

/// Runs the transfer to its end. Returns the producer's result, and what sedona-extension reads.
fn run_to_sedona(
    items: Vec<Result<RecordBatch, Error>>,
    prefetch: u64,
) -> (Result<(), Error>, Vec<DataFusionResult<RecordBatch>>) {
    let mut transfer = to_sedona(items, prefetch);
    let received = transfer.stream.by_ref().collect();
    let (sent, received) = block_on(join(transfer.sending, received));
    assert_eq!(transfer.stream.schema(), schema());
    assert_valid(&transfer.found);
    (sent, received)
}

#[test]
fn sedona_receives_batches_and_end() {
    for (count, prefetch) in [(0, 1), (20, 1), (20, 4), (20, 64)] {
        let sent = batches(count);
        let (result, received) = run_to_sedona(sent.iter().cloned().map(Ok).collect(), prefetch);
        result.unwrap();
        let received: Vec<_> = received.into_iter().map(Result::unwrap).collect();
        assert_eq!(received, sent);
    }
}

#[test]
fn sedona_receives_error_after_batch() {
    let lost = Error::new(71, "the disk is full");
    let items = vec![Ok(batches(1).remove(0)), Err(lost)];
    let (result, received) = run_to_sedona(items, 1);
    assert_eq!(result.unwrap_err().code(), 71);
    assert_eq!(received[0].as_ref().unwrap(), &batches(1)[0]);
    let error = received[1].as_ref().unwrap_err().to_string();
    assert!(error.contains("the disk is full"), "{error}");
    assert_eq!(received.len(), 2);
}

#[test]
fn sedona_receives_error_before_schema() {
    let (stream, handler) = ImportedAsyncDeviceStream::new(1);
    let (handler, found) = validated(from_sedona(handler));
    type Items = stream::Empty<Result<DeviceArray, Error>>;
    let open = async { Err::<(_, Items), _>(Error::new(13, "not for you")) };
    let sending = AsyncProducer::open(ArrowDeviceType::CPU, open).send(handler);
    let (sent, received) = block_on(join(sending, stream.collect::<Vec<_>>()));
    assert_eq!(sent.unwrap_err().code(), 13);
    let error = received[0].as_ref().unwrap_err().to_string();
    assert!(error.contains("not for you"), "{error}");
    assert_eq!(received.len(), 1);
    assert_valid(&found);
}

#[test]
fn sedona_requests_limit_producer() {
    let mut transfer = to_sedona(batches(40).into_iter().map(Ok).collect(), 4);
    block_on(async {
        assert!(poll!(&mut transfer.sending).is_pending());
        assert_eq!(transfer.read.load(Ordering::SeqCst), 1);
        assert!(poll!(transfer.stream.next()).is_pending()); // reads the schema, requests 4
        for read in [5, 5, 5, 8, 8, 8, 11] {
            assert!(poll!(&mut transfer.sending).is_pending());
            assert_eq!(transfer.read.load(Ordering::SeqCst), read);
            assert!(transfer.stream.next().await.unwrap().is_ok());
        }
        transfer.stream.cancel();
        let (sent, rest) = join(&mut transfer.sending, transfer.stream.by_ref().count()).await;
        sent.unwrap();
        assert_eq!(rest, 3); // of the 10 that were requested
    });
    assert_valid(&transfer.found);
}

#[test]
fn sedona_cancels_before_schema() {
    let transfer = to_sedona(vec![Ok(batches(1).remove(0))], 1);
    drop(transfer.stream);
    let refused = block_on(transfer.sending).unwrap_err();
    assert!(
        refused.message().contains("on_schema: refused"),
        "{refused}"
    );
    assert_valid(&transfer.found);
}

#[test]
fn dropped_sedona_stream_cancels_producer() {
    let mut transfer = to_sedona(batches(40).into_iter().map(Ok).collect(), 4);
    block_on(async {
        assert!(poll!(&mut transfer.sending).is_pending());
        assert!(poll!(transfer.stream.next()).is_pending());
        assert!(poll!(&mut transfer.sending).is_pending());
        drop(transfer.stream); // with 4 tasks that are not extracted
        settle(&mut transfer.sending)
            .await
            .expect("it ends")
            .unwrap();
    });
    assert_eq!(transfer.read.load(Ordering::SeqCst), 5);
    assert_valid(&transfer.found);
}

// --- sedona-extension to Fletching --------------------------------------------------------------

struct FromSedona {
    sending: Pin<Box<dyn Future<Output = ()>>>,
    stream: AsyncStream,
    found: Found,
    /// The number of items that the producer has read from its source.
    read: Arc<AtomicUsize>,
}

fn of_sedona(items: Vec<DataFusionResult<RecordBatch>>, window: u32) -> FromSedona {
    let (handler, stream) = AsyncStream::new(AsyncOptions::default().window(window));
    let (handler, found) = validated(handler);
    let read = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&read);
    let items = stream::iter(items).inspect(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let source = Box::pin(RecordBatchStreamAdapter::new(schema(), items));
    FromSedona {
        sending: Box::pin(send_with_sedona(source, handler)),
        stream,
        found,
        read,
    }
}

/// Runs the transfer to its end. Returns the batches before the error, and the error.
fn run_from_sedona(
    items: Vec<DataFusionResult<RecordBatch>>,
    window: u32,
) -> (Vec<RecordBatch>, Option<Error>) {
    let transfer = of_sedona(items, window);
    let mut received = Vec::new();
    let receiving = async {
        let options = ToArrow::default().validate(true);
        // SAFETY: the arrays come from arrow-rs.
        let mut rows = unsafe { AsyncRecordBatches::open(transfer.stream, options) }.await?;
        assert_eq!(*rows.schema(), schema());
        while let Some(batch) = rows.try_next().await? {
            received.push(batch);
        }
        Ok::<_, Error>(())
    };
    let error = block_on(join(transfer.sending, receiving)).1.err();
    assert_valid(&transfer.found);
    (received, error)
}

#[test]
fn async_stream_receives_batches_and_end_of_sedona() {
    for (count, window) in [(0, 1), (20, 1), (20, 4), (20, 64)] {
        let sent = batches(count);
        let (received, error) = run_from_sedona(sent.iter().cloned().map(Ok).collect(), window);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(received, sent);
    }
}

#[test]
fn async_stream_receives_error_of_sedona() {
    let full = Err(DataFusionError::Execution("the disk is full".into()));
    let (received, error) = run_from_sedona(vec![Ok(batches(1).remove(0)), full], 1);
    assert_eq!(received, batches(1));
    let error = error.expect("the stream fails");
    assert_eq!(error.code(), 1); // of every error of sedona-extension
    assert!(error.message().contains("the disk is full"), "{error}");
}

#[test]
fn requests_limit_sedona() {
    let mut transfer = of_sedona(batches(3).into_iter().map(Ok).collect(), 0);
    block_on(async {
        assert!(poll!(&mut transfer.sending).is_pending());
        assert_eq!(transfer.stream.schema().await.unwrap().format(), c"+s");
        for (requested, read) in [(1, 1), (2, 3)] {
            transfer.stream.request(requested).unwrap();
            assert!(settle(&mut transfer.sending).await.is_none());
            assert_eq!(transfer.read.load(Ordering::SeqCst), read);
            for _ in 0..requested {
                assert_eq!(
                    transfer.stream.next().await.unwrap().unwrap().length() % 2,
                    0
                );
            }
        }
        // The end also needs a request.
        assert!(poll!(transfer.stream.next()).is_pending());
        transfer.stream.request(1).unwrap();
        let ((), end) = join(&mut transfer.sending, transfer.stream.next()).await;
        assert!(end.is_none());
    });
    assert_valid(&transfer.found);
}

#[test]
fn dropped_async_stream_cancels_sedona() {
    let mut transfer = of_sedona(batches(40).into_iter().map(Ok).collect(), 4);
    block_on(async {
        assert!(poll!(&mut transfer.sending).is_pending());
        assert!(transfer.stream.next().await.unwrap().is_ok());
        drop(transfer.stream);
        settle(&mut transfer.sending).await.expect("it ends");
    });
    assert!(transfer.read.load(Ordering::SeqCst) < 5);
    assert_valid(&transfer.found);
}

#[test]
fn dropped_sending_of_sedona_fails_async_stream() {
    let mut transfer = of_sedona(batches(40).into_iter().map(Ok).collect(), 1);
    block_on(async {
        assert!(poll!(&mut transfer.sending).is_pending());
        drop(transfer.sending);
        let error = pin!(transfer.stream)
            .try_collect::<Vec<_>>()
            .await
            .unwrap_err();
        assert!(error.message().contains("dropped"), "{error}");
    });
    assert_valid(&transfer.found);
}

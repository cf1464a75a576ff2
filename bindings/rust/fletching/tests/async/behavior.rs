// SPDX-License-Identifier: Apache-2.0

//! Both sides together on three executors, as users observe them.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};

use fletching::{
    encode_metadata, ArrowDeviceType, AsyncBatch, AsyncOffer, AsyncOptions, AsyncProducer,
    AsyncStream, Error,
};
use futures_core::Stream;
use libc::EINVAL;

use crate::support::*;

async fn all(mut stream: AsyncStream) -> Vec<i64> {
    assert_eq!(stream.schema().await.unwrap().format(), c"i");
    let mut rows = Vec::new();
    loop {
        match next(&mut stream).await {
            0 => return rows,
            row => rows.push(row),
        }
    }
}

/// A stream keeps one waker, so a second waiting future would never be woken. This test does not
/// compile if `schema` takes a shared reference.
#[test]
fn schema_requires_exclusive_borrow() {
    trait Fallback: Sized {
        fn schema(self) -> bool {
            true
        }
    }
    impl Fallback for &AsyncStream {}
    let (_handler, stream) = AsyncStream::new(AsyncOptions::default());
    let is_refused: bool = (&stream).schema();
    assert!(is_refused);
}

#[test]
fn works_on_tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    for window in [1, 2, 16] {
        let (handler, stream) = AsyncStream::new(AsyncOptions::default().window(window));
        let sending = runtime.spawn(producer(batches(100)).send(handler));
        let rows = runtime.block_on(runtime.spawn(all(stream))).unwrap();
        assert_eq!(rows, (1..=100).collect::<Vec<_>>());
        runtime.block_on(sending).unwrap().unwrap();
    }
}

#[test]
fn works_on_smol() {
    let (handler, stream) = AsyncStream::new(AsyncOptions::default());
    let sending = smol::spawn(producer(batches(100)).send(handler));
    assert_eq!(smol::block_on(all(stream)), (1..=100).collect::<Vec<_>>());
    smol::block_on(sending).unwrap();
}

#[test]
fn works_with_manual_polling() {
    let (handler, stream) = AsyncStream::new(AsyncOptions::default().window(3));
    let mut sending = ManualTask::new(producer(batches(100)).send(handler));
    let mut reading = ManualTask::new(all(stream));
    for turn in 0.. {
        assert!(turn < 1000, "nothing is woken");
        if reading.run().is_ready() & sending.run().is_ready() {
            break;
        }
    }
    assert_eq!(reading.output.unwrap(), (1..=100).collect::<Vec<_>>());
    assert!(sending.output.unwrap().is_ok());
}

#[test]
fn open_result_reaches_both_sides() {
    for fails in [false, true] {
        let (handler, mut stream) = AsyncStream::new(AsyncOptions::default());
        let open = async move {
            smol::future::yield_now().await;
            match fails {
                true => Err(Error::new(71, "no such table")),
                false => Ok((schema(), batches(2))),
            }
        };
        let sending = AsyncProducer::open(ArrowDeviceType::CPU, open).send(handler);
        let sending = std::thread::spawn(|| block_on(sending));
        if fails {
            let error = block_on(stream.schema()).unwrap_err();
            assert_eq!((error.code(), error.message()), (71, "no such table"));
            assert_eq!(sending.join().unwrap().unwrap_err().code(), 71);
            let mut stream = stream;
            assert_eq!(rows(&mut stream), [-71]);
        } else {
            assert_eq!(block_on(all(stream)), [1, 2]);
            sending.join().unwrap().unwrap();
        }
    }
}

/// Counts the batches that were read.
struct CountingSource(Items, Arc<AtomicUsize>);

impl Stream for CountingSource {
    type Item = Result<AsyncBatch, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Pin::new(&mut self.0).poll_next(cx)
    }
}

#[test]
fn window_limits_producer() {
    let read = Arc::new(AtomicUsize::new(0));
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default().window(4));
    let source = CountingSource(batches(100), Arc::clone(&read));
    let source = AsyncProducer::new(schema(), ArrowDeviceType::CPU, source);
    let mut sending = ManualTask::new(source.send(handler));
    sending.run();
    // The window plus one batch read ahead.
    assert_eq!(read.load(Ordering::SeqCst), 5);
    for (taken, expected) in [(1, 5), (2, 7), (3, 7), (4, 9)] {
        assert_eq!(rows_of(&mut stream, 1), [taken]);
        sending.run();
        assert_eq!(read.load(Ordering::SeqCst), expected);
    }
}

fn rows_of(stream: &mut AsyncStream, count: usize) -> Vec<i64> {
    (0..count)
        .map(|_| match poll_next(stream) {
            Poll::Ready(item) => row(item),
            Poll::Pending => panic!("nothing is there"),
        })
        .collect()
}

#[test]
fn request_adds_to_zero_window() {
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default().window(0));
    let mut sending = ManualTask::new(producer(batches(9)).send(handler));
    sending.run();
    assert!(poll_next(&mut stream).is_pending());
    stream.request(2).unwrap();
    sending.run();
    assert_eq!(rows(&mut stream), [1, 2]);
    sending.run();
    assert!(poll_next(&mut stream).is_pending());
    let error = stream.request(0).unwrap_err();
    assert_eq!(
        error.message(),
        "request: n is not positive: expected 1 or more, got 0"
    );
    stream.request(i64::MAX).unwrap();
    stream.request(i64::MAX).unwrap();
    sending.run();
    assert!(stream.skip_batch());
    assert_eq!(rows(&mut stream), [4, 5, 6, 7, 8, 9]);
    assert!(!stream.skip_batch());
    assert!(matches!(poll_next(&mut stream), Poll::Ready(None)));
}

#[test]
fn metadata_reaches_consumer() {
    let block = |text: &str| encode_metadata([(&b"key"[..], text.as_bytes())]).unwrap();
    let batches = [
        Ok(AsyncBatch::from(batch(1)).with_metadata(block("first"))),
        Ok(batch(2).into()),
        Ok(AsyncBatch::made(|| Ok(batch(3))).with_metadata(block("third"))),
    ];
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default());
    assert!(stream.metadata().is_empty());
    let sending = producer(items::<AsyncBatch>(batches)).metadata(block("stream"));
    ManualTask::new(sending.send(handler)).run();
    assert_eq!(stream.metadata().get(b"key"), Some(&b"stream"[..]));
    assert_eq!(stream.device_type(), ArrowDeviceType::CPU);
    for (row, text) in [(1, Some(&b"first"[..])), (2, None), (3, Some(b"third"))] {
        assert_eq!(rows_of(&mut stream, 1), [row]);
        assert_eq!(stream.batch_metadata().get(b"key"), text);
    }
}

#[test]
fn accept_callback_can_reject_offers() {
    for (what, expected) in [(0, vec![-71]), (1, vec![-71])] {
        let (handler, mut stream) = AsyncStream::new(AsyncOptions::default().accept(
            move |offer| match (what, offer) {
                (0, AsyncOffer::Schema(schema)) if schema.format() == c"i" => {
                    Err(Error::new(71, "no integers"))
                }
                (1, AsyncOffer::Batch(metadata)) if metadata.is_empty() => {
                    Err(Error::new(71, "no batches"))
                }
                _ => Ok(()),
            },
        ));
        let mut sending = ManualTask::new(producer(batches(2)).send(handler));
        assert_eq!(
            sending
                .run()
                .output
                .as_ref()
                .unwrap()
                .as_ref()
                .unwrap_err()
                .code(),
            71
        );
        assert_eq!(rows(&mut stream), expected);
        assert!(matches!(poll_next(&mut stream), Poll::Ready(None)));
    }
}

#[test]
fn invalid_arguments_fail_both_sides() {
    let released = fletching::Schema::default();
    let of = |schema, device_type| AsyncProducer::new(schema, device_type, batches(1));
    let cpu = ArrowDeviceType::CPU;
    let pair = encode_metadata([(&b"k"[..], &b"v"[..])]).unwrap();
    let cases = [
        (
            of(released, cpu),
            "schema: released: expected a live schema",
        ),
        (
            of(schema(), ArrowDeviceType(0)),
            "AsyncProducer: device_type: 0: expected the device type of the batches (rule \
             async-producer.device-type-set)",
        ),
        (
            of(schema(), cpu).metadata([&pair[..], b"x"].concat()),
            "metadata: bytes after the last pair",
        ),
        (
            of(schema(), cpu).metadata(vec![1, 0, 0]),
            "metadata: number of pairs at byte 0: truncated: expected 4 bytes",
        ),
    ];
    for (producer, expected) in cases {
        let (handler, mut stream) = AsyncStream::new(AsyncOptions::default());
        let mut sending = ManualTask::new(producer.send(handler));
        let error = sending.run().output.take().unwrap().unwrap_err();
        assert_eq!((error.code(), error.message()), (EINVAL, expected));
        let Poll::Ready(Some(Err(error))) = poll_next(&mut stream) else {
            panic!("no error")
        };
        assert_eq!((error.code(), error.message()), (EINVAL, expected));
    }
}

/// A batch with malformed metadata, and an error without a message.
#[test]
fn invalid_items_fail_stream() {
    let metadata = AsyncBatch::from(batch(1)).with_metadata(vec![0; 5]);
    for (item, code, expected) in [
        (Ok(metadata), EINVAL, "metadata: bytes after the last pair"),
        (Ok(on_cuda().into()), EINVAL, ON_CUDA),
        (
            Ok(with_column().into()),
            EINVAL,
            "batch 0: expected 0 children, got 1 (rule async-next.same-schema)",
        ),
        (
            Err(Error::new(71, "")),
            71,
            "producer: failed without a message",
        ),
    ] {
        let (handler, mut stream) = AsyncStream::new(AsyncOptions::default());
        let mut sending = ManualTask::new(producer(items([item])).send(handler));
        assert!(sending.run().is_ready());
        let Poll::Ready(Some(Err(error))) = poll_next(&mut stream) else {
            panic!("no error")
        };
        assert_eq!((error.code(), error.message()), (code, expected));
    }
}

#[test]
fn send_yields_after_calls_per_poll() {
    let peer = ConsumerPeer::new();
    let mut sending = ManualTask::new(producer(batches(9)).calls_per_poll(3).send(peer.owner()));
    peer.request(9);
    sending.run();
    // on_schema, nine batches, and the end. The last poll finds open tasks.
    assert_eq!(sending.wakes.count.load(Ordering::SeqCst), 3);
    while !peer.tasks.lock().unwrap().is_empty() {
        peer.drop_task();
    }
    assert!(sending.run().is_ready());
}

#[test]
fn debug_output_shows_public_fields() {
    let shown = |value: &dyn std::fmt::Debug| format!("{value:?}");
    let options = AsyncOptions::default().window(3);
    assert_eq!(shown(&options), "AsyncOptions { window: 3, accept: false }");
    let (handler, stream) = AsyncStream::new(options);
    assert_eq!(shown(&stream), "AsyncStream { .. }");
    let producer = producer(batches(1));
    assert!(shown(&producer).starts_with("AsyncProducer { device_type: "));
    let sending = producer.send(handler);
    assert!(shown(&sending).ends_with("sent: 0, ended: false, .. }"));
    assert_eq!(shown(&sending.abort_handle()), "AsyncAbort { .. }");
    let batch = AsyncBatch::made(|| Err(Error::new(EINVAL, "none")));
    let text = "AsyncBatch { array: \"made later\", metadata: ";
    assert!(shown(&batch).starts_with(text));
}

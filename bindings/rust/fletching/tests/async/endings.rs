// SPDX-License-Identifier: Apache-2.0

//! Early ends of a stream: a panic, a dropped future, an abort, a cancel.

use std::error::Error as _;
use std::pin::Pin;
use std::ptr::null;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use fletching::abi::{ArrowAsyncDeviceStreamHandler as Handler, ArrowAsyncTask};
use fletching::{
    encode_metadata, ArrowDeviceType, AsyncBatch, AsyncOffer, AsyncOptions, AsyncProducer,
    AsyncStream, DeviceArray, Error, Metadata,
};
use futures_core::Stream;
use libc::{ECANCELED, EINVAL, EIO, ENODATA};

use crate::support::*;

#[test]
fn consumer_panic_fails_stream() {
    let (handler, mut stream) =
        AsyncStream::new(AsyncOptions::default().accept(|_| panic!("not {}", "today")));
    let mut sending = ManualTask::new(producer(batches(2)).send(handler));
    sending.run();
    let Poll::Ready(Some(Err(error))) = poll_next(&mut stream) else {
        panic!("no error")
    };
    assert_eq!((error.code(), error.message()), (EIO, "panic: not today"));
}

struct PanickingSource(usize);

impl Stream for PanickingSource {
    type Item = Result<DeviceArray, Error>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0 -= 1;
        match self.0 {
            0 => panic!("batch {} is lost", 2),
            _ => Poll::Ready(Some(Ok(batch(1)))),
        }
    }
}

impl Drop for PanickingSource {
    fn drop(&mut self) {
        panic!("in drop as well");
    }
}

#[test]
fn source_panic_fails_stream() {
    let peer = ConsumerPeer::new();
    let source = AsyncProducer::new(schema(), ArrowDeviceType::CPU, PanickingSource(2));
    let mut sending = ManualTask::new(source.send(peer.owner()));
    sending.run();
    peer.request(5);
    sending.run();
    assert_eq!(peer.calls(), "schema, task, error 5 panic: batch 2 is lost");
    peer.extract();
    assert!(sending.run().is_ready());

    let made = || -> Result<DeviceArray, Error> { panic!("not made") };
    let mut sending =
        ManualTask::new(producer(items([Ok(AsyncBatch::made(made))])).send(peer.owner_again()));
    sending.run();
    peer.request(1);
    sending.run();
    assert_eq!(peer.extract(), -i64::from(EIO));
    sending.run();
    assert_eq!(peer.calls(), "release, schema, task, end, release");
}

/// A stream that fails, and records its drop.
struct FailingSource(Arc<ConsumerPeer>);

impl Stream for FailingSource {
    type Item = Result<DeviceArray, Error>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(Some(Err(Error::new(EIO, "lost"))))
    }
}

impl Drop for FailingSource {
    fn drop(&mut self) {
        self.0.calls.lock().unwrap().push("dropped".into());
    }
}

#[test]
fn failed_source_is_dropped_before_error() {
    let peer = ConsumerPeer::new();
    let source = AsyncProducer::new(
        schema(),
        ArrowDeviceType::CPU,
        FailingSource(Arc::clone(&peer)),
    );
    ManualTask::new(source.send(peer.owner())).run();
    assert_eq!(peer.calls(), "schema, dropped, error 5 lost, release");
}

#[test]
fn dropped_send_future_fails_stream() {
    let dropped = "producer: dropped before the end of the stream";
    // Before the first poll, before the first request, and with an open task.
    for polls in [false, true] {
        let peer = ConsumerPeer::new();
        let sending = producer(endless(2)).send(peer.owner());
        // The abort handle keeps the producer's object alive, but not the handler.
        let _abort = sending.abort_handle();
        let mut sending = ManualTask::new(sending);
        if polls {
            sending.run();
            assert_eq!(peer.calls(), "schema");
        }
        drop(sending);
        assert_eq!(
            peer.calls(),
            format!("error {ECANCELED} {dropped}, release")
        );
    }
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default());
    let mut sending = ManualTask::new(producer(endless(2)).send(handler));
    sending.run();
    drop(sending);
    assert_eq!(rows(&mut stream), [-i64::from(ECANCELED)]);
}

#[test]
fn dropped_send_future_releases_after_last_task() {
    for is_cancelled in [false, true] {
        let live = LiveBatches::default();
        let peer = ConsumerPeer::new();
        let source = items([Ok(live.batch(1)), Ok(live.batch(2)), Ok(live.batch(3))]);
        let mut sending = ManualTask::new(
            producer(Items {
                ends: false,
                ..source
            })
            .send(peer.owner()),
        );
        sending.run();
        peer.request(2);
        sending.run();
        if is_cancelled {
            peer.cancel();
        }
        drop(sending);
        let error = format!(", error {ECANCELED} producer: dropped before the end of the stream");
        let error = if is_cancelled { "" } else { &error };
        assert_eq!(peer.calls(), format!("schema, task, task{error}"));
        assert_eq!(peer.extract(), 1);
        assert_eq!(peer.calls(), "");
        assert_eq!(peer.drop_task(), 0);
        // The release runs on a new thread.
        while peer.calls.lock().unwrap().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(peer.calls(), "release");
        let here = std::thread::current().id();
        assert_ne!(*peer.released_on.lock().unwrap(), Some(here));
        assert_eq!(live.count(), 0);
    }
}

#[test]
fn abort_handle_fails_stream() {
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default());
    let sending = producer(endless(2)).send(handler);
    let abort = sending.abort_handle();
    let mut sending = ManualTask::new(sending);
    sending.run();
    let abort_elsewhere = abort.clone();
    std::thread::spawn(move || abort_elsewhere.fail(Error::new(EIO, "shut\0down")))
        .join()
        .unwrap();
    abort.fail(Error::new(EINVAL, "too late"));
    assert!(sending.run().is_ready());
    let Poll::Ready(Some(Err(error))) = poll_next(&mut stream) else {
        panic!("no error")
    };
    assert_eq!((error.code(), error.message()), (EIO, "shut\\x00down"));
}

#[test]
fn dropped_stream_cancels_producer() {
    let live = LiveBatches::default();
    let source = items((1..=9).map(|length| Ok(live.batch(length))));
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default().window(4));
    let mut sending = ManualTask::new(producer(source).send(handler));
    sending.run();
    let kept = poll_next(&mut stream);
    drop(stream);
    assert!(sending.run().output.as_ref().unwrap().is_ok());
    assert_eq!(live.count(), 1);
    drop(kept);
    assert_eq!(live.count(), 0);
    // Also before the schema.
    let (handler, stream) = AsyncStream::new(AsyncOptions::default());
    let mut sending = ManualTask::new(producer(endless(1)).send(handler));
    drop(stream);
    assert!(sending.run().output.as_ref().unwrap().is_ok());
}

/// The batches are extracted either by the application or by the release.
#[test]
fn stream_with_failed_batch_ends_after_error() {
    for is_released in [true, false] {
        let live = LiveBatches::default();
        let (peer, mut stream) = open(4);
        for (number, code) in [(1, 0), (2, EIO), (3, 0)] {
            assert_eq!(peer.give(number, live.batch(number), code, &[]), 0);
        }
        assert_eq!(peer.end(), 0);
        if is_released {
            peer.release();
        }
        assert_eq!(rows(&mut stream), [1, -i64::from(EIO)]);
        assert!(matches!(poll_next(&mut stream), Poll::Ready(None)));
        assert_eq!(live.count(), 0);
        if !is_released {
            peer.release();
        }
    }
}

#[test]
fn foreign_batch_of_other_schema_is_rejected() {
    let (peer, mut stream) = open(4);
    assert_eq!(peer.give(1, with_column(), 0, &[]), 0);
    let Poll::Ready(Some(Err(error))) = poll_next(&mut stream) else {
        panic!("no error")
    };
    let text = "batch: expected 0 children, got 1 (rule async-next.same-schema)";
    assert_eq!((error.code(), error.message()), (EINVAL, text));
    peer.release();
}

/// Before and after the end: with an error that has a cause, with a panic, and on another device.
#[test]
fn failed_deferred_batch_fails_both_sides() {
    type Make = fn() -> Result<DeviceArray, Error>;
    let fails: Make = || Err(Error::with_source(ENODATA, "page 7 is gone", "torn"));
    let panics: Make = || panic!("page 7 is gone");
    let wrong: Make = || Ok(on_cuda());
    for (make, code, text) in [
        (fails, ENODATA, "page 7 is gone"),
        (panics, EIO, "panic: page 7 is gone"),
        (wrong, EINVAL, ON_CUDA),
    ] {
        for ends in [true, false] {
            let source = items([Ok(AsyncBatch::made(make)), Ok(batch(2).into())]);
            let (handler, mut stream) = AsyncStream::new(AsyncOptions::default());
            let mut sending = ManualTask::new(producer(Items { ends, ..source }).send(handler));
            sending.run();
            let Poll::Ready(Some(Err(error))) = poll_next(&mut stream) else {
                panic!("no error")
            };
            assert_eq!((error.code(), error.message()), (code, text));
            assert_eq!(error.source().is_some(), code == ENODATA);
            assert!(!stream.skip_batch());
            assert!(matches!(poll_next(&mut stream), Poll::Ready(None)));
            let sent = sending.run().output.take().expect("it is released");
            assert_eq!(sent.unwrap_err().message(), text);
        }
    }
}

/// A foreign task may extract a batch of this crate, and fail with another code.
#[test]
fn nested_task_error_does_not_replace_foreign_error() {
    let inner = ConsumerPeer::new();
    let fails = AsyncBatch::made(|| Err(Error::new(EINVAL, "inner")));
    let mut sending = ManualTask::new(producer(items([Ok(fails)])).send(inner.owner()));
    sending.run();
    inner.request(1);
    sending.run();
    let (peer, mut stream) = open(4);
    assert_eq!(peer.give(1, batch(1), EIO, &[]), 0);
    let inside = Arc::clone(&inner);
    *peer.log.inside.lock().unwrap() = Some(Box::new(move |_| {
        assert_eq!(inside.extract(), -i64::from(EINVAL));
    }));
    let Poll::Ready(Some(Err(error))) = poll_next(&mut stream) else {
        panic!("no error")
    };
    assert_eq!(error.code(), EIO);
    assert_ne!(error.message(), "inner");
    peer.release();
}

#[test]
fn batches_kept_after_release_can_be_skipped() {
    let live = LiveBatches::default();
    let (peer, mut stream) = open(9);
    for length in 1..4 {
        peer.give(length, live.batch(length), 0, &[]);
    }
    peer.end();
    peer.release();
    assert!(stream.skip_batch());
    assert_eq!(live.count(), 2);
    assert!(matches!(poll_next(&mut stream), Poll::Ready(Some(Ok(_)))));
    drop(stream);
    assert_eq!(live.count(), 0);
}

#[test]
fn skip_batch_keeps_error() {
    let (peer, mut stream) = open(4);
    for (number, code) in [(1, 0), (2, EIO), (3, 0)] {
        assert_eq!(peer.give(number, batch(number), code, &[]), 0);
    }
    assert_eq!(peer.end(), 0);
    peer.release();
    assert!(stream.skip_batch());
    assert!(!stream.skip_batch());
    assert!(!stream.skip_batch());
    let Poll::Ready(Some(Err(error))) = poll_next(&mut stream) else {
        panic!("no error")
    };
    assert_eq!(error.code(), EIO);
    assert!(!stream.skip_batch());
}

#[test]
fn rule_async_task_extract_set() {
    let (peer, mut stream) = open(1);
    let mut task = ArrowAsyncTask::zeroed();
    // SAFETY: the handler is not released.
    let code = unsafe { Handler::call_on_next_task(peer.handler, &raw mut task, null()) };
    assert_eq!(code, Some(EINVAL));
    peer.release();
    let Poll::Ready(Some(Err(error))) = poll_next(&mut stream) else {
        panic!("no error")
    };
    let text = "task.extract_data: NULL: expected a callback";
    assert_eq!(error.message(), text);
}

#[test]
fn rule_async_task_null_drops() {
    let (peer, mut stream) = open(9);
    peer.task(1);
    assert!(stream.skip_batch() && !stream.skip_batch());
    assert_eq!(peer.calls(), "request 9, drop 1");
    peer.end();
    peer.release();
}

#[test]
fn rule_async_producer_metadata_lives() {
    let peer = ConsumerPeer::new();
    let block = encode_metadata([(&b"key"[..], &b"value"[..])]).unwrap();
    let sending = producer(endless(0)).metadata(block).send(peer.owner());
    // SAFETY: the object lives as long as the future.
    let metadata = unsafe { Metadata::read((*peer.producer()).additional_metadata).unwrap() };
    assert_eq!(metadata.get(b"key"), Some(&b"value"[..]));
    drop(sending);
}

/// The object is freed with the future, not earlier.
#[test]
fn rule_async_producer_freed_by_producer() {
    let (live, peer) = (LiveBatches::default(), ConsumerPeer::new());
    let kept = Arc::new(());
    let held = Arc::clone(&kept);
    let made = AsyncBatch::made(move || {
        drop(held);
        Ok(batch(1))
    });
    let source = items([Ok(made), Ok(live.batch(2).into())]);
    let mut sending = ManualTask::new(producer(source).send(peer.owner()));
    sending.run();
    peer.cancel();
    assert_eq!((Arc::strong_count(&kept), live.count()), (2, 1));
    assert!(sending.run().is_ready());
    assert_eq!((Arc::strong_count(&kept), live.count()), (1, 0));
}

#[derive(Debug)]
struct PanicOnDrop;

impl Drop for PanicOnDrop {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

impl std::fmt::Display for PanicOnDrop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("bomb")
    }
}

impl std::error::Error for PanicOnDrop {}

/// A panic that crosses a callback would abort the process.
#[test]
fn panic_in_callback_drop_is_caught() {
    // Owned by `accept`, dropped by the release.
    let bomb = PanicOnDrop;
    let accept = move |_: AsyncOffer| {
        let _owned = &bomb;
        Ok(())
    };
    let (handler, stream) = AsyncStream::new(AsyncOptions::default().accept(accept));
    drop(stream);
    drop(handler);

    // An error after the application has cancelled, dropped by on_schema.
    let dropped = Arc::new(Mutex::new(None));
    let inside = Arc::clone(&dropped);
    let accept = move |_: AsyncOffer| {
        *inside.lock().unwrap() = None::<AsyncStream>;
        Err(Error::with_source(EINVAL, "late", PanicOnDrop))
    };
    let (handler, stream) = AsyncStream::new(AsyncOptions::default().accept(accept));
    *dropped.lock().unwrap() = Some(stream);
    let mut sending = ManualTask::new(producer(batches(1)).send(handler));
    assert!(sending.run().is_ready());

    // The error of a batch after the error of another batch, dropped by extract_data.
    let peer = ConsumerPeer::new();
    let fails = || AsyncBatch::made(|| Err(Error::new(EINVAL, "first")));
    let bombs = || AsyncBatch::made(|| Err(Error::with_source(EINVAL, "second", PanicOnDrop)));
    let source = items([Ok(fails()), Ok(bombs())]);
    let mut sending = ManualTask::new(producer(source).send(peer.owner()));
    sending.run();
    peer.request(2);
    sending.run();
    assert_eq!(peer.extract(), -i64::from(EINVAL));
    assert_eq!(peer.extract(), -i64::from(EINVAL));
    assert!(sending.run().is_ready());
}

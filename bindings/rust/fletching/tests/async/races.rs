// SPDX-License-Identifier: Apache-2.0

//! Races that are typical of such code: an error taken for the end, a release that wakes nobody, a
//! double extraction, a runtime that is shut down during a request, a producer that is freed during
//! a call to it.

use std::future::poll_fn;
use std::pin::Pin;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use fletching::{AsyncOptions, AsyncStream};
use futures_core::Stream;
use libc::EIO;

use crate::support::*;

const RUNS: usize = if cfg!(miri) { 20 } else { 500 };

#[test]
fn error_is_not_read_as_end() {
    for _ in 0..RUNS {
        let (peer, mut stream) = open(4);
        peer.task(1);
        let reader = std::thread::spawn(move || {
            block_on(async {
                let mut rows = Vec::new();
                while rows.last() != Some(&0) {
                    rows.push(next(&mut stream).await);
                }
                rows
            })
        });
        peer.error(71, null(), null());
        peer.release();
        let rows = reader.join().unwrap();
        assert!(rows == [1, -71, 0] || rows == [-71, 0], "{rows:?}");
    }
}

#[test]
fn release_wakes_reader() {
    for ends in [false, true] {
        for _ in 0..RUNS {
            let (peer, mut stream) = open(4);
            let reader = std::thread::spawn(move || block_on(next(&mut stream)));
            if ends {
                peer.end();
            }
            peer.release();
            assert_eq!(
                reader.join().unwrap(),
                if ends { 0 } else { -i64::from(EIO) }
            );
        }
    }
    // The same before the schema.
    for _ in 0..RUNS {
        let (peer, mut stream) = created(4);
        let reader = std::thread::spawn(move || block_on(stream.schema()).unwrap_err().code());
        peer.release();
        assert_eq!(reader.join().unwrap(), EIO);
    }
}

#[test]
fn release_after_end_extracts_each_task_once() {
    for _ in 0..RUNS {
        let live = LiveBatches::default();
        let (peer, mut stream) = open(9);
        for length in 1..=9 {
            peer.give(length, live.batch(length), 0, &[]);
        }
        let reader = std::thread::spawn(move || {
            block_on(async {
                let mut rows = Vec::new();
                while rows.last() != Some(&0) {
                    rows.push(next(&mut stream).await);
                }
                rows
            })
        });
        peer.end();
        peer.release();
        assert_eq!(reader.join().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]);
        assert_eq!(live.count(), 0);
    }
}

#[test]
fn concurrent_cancel_and_tasks_drop_every_task() {
    for _ in 0..RUNS {
        let live = LiveBatches::default();
        let (peer, stream) = open(9);
        let canceller = std::thread::spawn(move || drop(stream));
        for length in 1..=9 {
            assert_eq!(peer.give(length, live.batch(length), 0, &[]), 0);
        }
        canceller.join().unwrap();
        assert_eq!(live.count(), 0);
        let calls = peer.calls();
        assert_eq!(calls.matches("drop").count(), 9, "{calls}");
        peer.release();
    }
}

#[test]
fn runtime_shutdown_fails_stream() {
    for drops_stream in [false, true] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        let (handler, mut stream) = AsyncStream::new(AsyncOptions::default().window(2));
        runtime.spawn(producer(endless(1)).send(handler));
        assert_eq!(block_on(next(&mut stream)), 1);
        if drops_stream {
            drop(stream);
            drop(runtime);
            continue;
        }
        // The second batch is requested but never arrives.
        let reader = std::thread::spawn(move || {
            block_on(async { [next(&mut stream).await, next(&mut stream).await] })
        });
        drop(runtime);
        assert_eq!(reader.join().unwrap(), [-i64::from(libc::ECANCELED), 0]);
    }
}

/// Checks that the handler's release waits for a call on another thread.
fn release_waits(call: &'static str, action: impl FnOnce(AsyncStream) + Send + 'static) {
    let (peer, stream) = open(4);
    if call.starts_with("extract") || call.starts_with("drop") {
        peer.task(1);
    }
    peer.calls();
    let ((inside, is_inside), (go_on, may_go_on)) = (channel(), channel::<()>());
    *peer.log.inside.lock().unwrap() = Some(Box::new(move |what| {
        inside.send(what.to_owned()).unwrap();
        may_go_on.recv().unwrap();
    }));
    let caller = std::thread::spawn(move || action(stream));
    assert_eq!(is_inside.recv().unwrap(), call);
    let released = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let releaser = scope.spawn(|| {
            peer.release();
            released.store(true, Ordering::SeqCst);
        });
        // Waiting cannot be observed, only that the release has not returned.
        (0..1000).for_each(|_| std::thread::yield_now());
        assert!(!released.load(Ordering::SeqCst));
        go_on.send(()).unwrap();
        releaser.join().unwrap();
    });
    caller.join().unwrap();
}

#[test]
fn release_waits_for_calls_on_other_threads() {
    release_waits("request 1", |stream| stream.request(1).unwrap());
    release_waits("cancel", drop);
    release_waits("extract 1", |mut stream| drop(poll_next(&mut stream)));
    release_waits("drop 1", |mut stream| assert!(stream.skip_batch()));
}

#[test]
fn release_extracts_after_running_request() {
    let (peer, mut stream) = open(2);
    peer.task(1);
    peer.calls();
    let ((inside, is_inside), (go_on, may_go_on)) = (channel(), channel::<()>());
    *peer.log.inside.lock().unwrap() = Some(Box::new(move |_| {
        inside.send(()).unwrap();
        may_go_on.recv().unwrap();
    }));
    std::thread::scope(|scope| {
        scope.spawn(|| stream.request(1).unwrap());
        is_inside.recv().unwrap();
        peer.end();
        let releaser = scope.spawn(|| peer.release());
        (0..1000).for_each(|_| std::thread::yield_now());
        assert_eq!(peer.calls(), "");
        go_on.send(()).unwrap();
        releaser.join().unwrap();
    });
    // The peer records a call when it returns.
    assert_eq!(peer.calls(), "request 1, extract 1");
    assert_eq!(rows(&mut stream), [1]);
}

#[test]
fn stream_is_pending_while_release_extracts() {
    let (peer, stream) = open(2);
    let stream = Arc::new(Mutex::new(stream));
    let reader = Arc::clone(&stream);
    peer.task(1);
    peer.end();
    *peer.log.inside.lock().unwrap() = Some(Box::new(move |_| {
        assert!(poll_next(&mut reader.lock().unwrap()).is_pending());
    }));
    peer.release();
    assert_eq!(rows(&mut stream.lock().unwrap()), [1]);
}

#[test]
fn waker_panic_is_caught() {
    struct PanickingWaker;
    impl std::task::Wake for PanickingWaker {
        fn wake(self: Arc<Self>) {
            panic!("no executor");
        }
    }
    let waker = Arc::new(PanickingWaker).into();
    let (peer, mut stream) = open(2);
    assert!(Pin::new(&mut stream)
        .poll_next(&mut std::task::Context::from_waker(&waker))
        .is_pending());
    assert_eq!((peer.task(1), peer.end()), (0, 0));
    peer.release();
    assert_eq!(rows(&mut stream), [1]);
}

#[test]
fn reader_can_move_to_another_task() {
    // Only the waker of the last poll counts.
    let (peer, mut stream) = open(2);
    let first = ManualTask::new(async {});
    let waker = first.wakes.clone().into();
    assert!(Pin::new(&mut stream)
        .poll_next(&mut std::task::Context::from_waker(&waker))
        .is_pending());
    let mut reader =
        ManualTask::new(
            async move { row(poll_fn(|cx| Pin::new(&mut stream).poll_next(cx)).await) },
        );
    assert!(!reader.run().is_ready());
    peer.task(1);
    assert_eq!(reader.run().output, Some(1));
    assert_eq!(first.wakes.count.load(Ordering::SeqCst), 0);
    peer.release();
}

#[test]
fn concurrent_extractions_and_end_release_once() {
    // The last task is extracted while the future finds open tasks.
    for _ in 0..RUNS {
        let peer = ConsumerPeer::new();
        let mut sending = ManualTask::new(producer(batches(3)).send(peer.owner()));
        peer.request(3);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..3 {
                    while peer.tasks.lock().unwrap().is_empty() {
                        std::thread::yield_now();
                    }
                    peer.extract();
                }
            });
            sending.run();
        });
        sending.run();
        assert!(sending.is_ready());
        assert_eq!(peer.calls(), "schema, task, task, task, end, release");
    }
}

#[test]
fn concurrent_extractions_and_future_drop_release_once() {
    for _ in 0..RUNS {
        let live = LiveBatches::default();
        let peer = ConsumerPeer::new();
        let source = items([Ok(live.batch(1)), Ok(live.batch(2))]);
        let mut sending = ManualTask::new(
            producer(Items {
                ends: false,
                ..source
            })
            .send(peer.owner()),
        );
        peer.request(2);
        sending.run();
        let extracting = Arc::clone(&peer);
        let extractor = std::thread::spawn(move || {
            extracting.extract();
            extracting.drop_task();
        });
        drop(sending);
        extractor.join().unwrap();
        while peer
            .calls
            .lock()
            .unwrap()
            .last()
            .is_none_or(|call| call != "release")
        {
            std::thread::yield_now();
        }
        assert!(peer
            .calls()
            .starts_with(&format!("schema, task, task, error {} ", libc::ECANCELED)));
        assert_eq!(live.count(), 0);
    }
}

#[test]
fn task_after_stream_drop_is_accepted() {
    let (peer, stream) = open(2);
    let mut stream = stream;
    assert!(matches!(poll_next(&mut stream), Poll::Pending));
    drop(stream);
    assert_eq!(peer.task(1), 0);
    peer.release();
}

// SPDX-License-Identifier: Apache-2.0

//! The rules of a consumer's tasks, and of its requests.

use std::ptr::{null, null_mut};
use std::task::Poll;

use fletching::abi::{ArrowAsyncDeviceStreamHandler as Handler, ArrowDeviceArray};
use fletching::{ArrowDeviceType, AsyncStream, DeviceArray, Error, SchemaBuilder};
use libc::EINVAL;

use crate::support::*;

use crate::consumer_rules::error;

#[test]
fn rule_async_task_extracted_once() {
    // Taken, skipped, dropped by an error, by a cancel, and by the release.
    let (peer, mut stream) = open(4);
    peer.task(1);
    peer.task(2);
    assert_eq!(row(Some(next_now(&mut stream))), 1);
    assert!(stream.skip_batch());
    assert_eq!(peer.calls(), "request 4, extract 1, request 2, drop 2");
    peer.task(3);
    drop(stream);
    peer.task(4);
    assert_eq!(peer.calls(), "cancel, drop 3, drop 4");
    peer.release();
}

fn next_now(stream: &mut AsyncStream) -> Result<DeviceArray, Error> {
    match poll_next(stream) {
        Poll::Ready(Some(item)) => item,
        _ => panic!("expected an item"),
    }
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
fn rule_async_task_array_released_separately() {
    let live = Live::default();
    let (peer, mut stream) = open(9);
    peer.give(1, live.batch(1), 0, &[]);
    peer.give(2, live.batch(2), 0, &[]);
    let first = next_now(&mut stream).unwrap();
    peer.end();
    // What is queued is extracted in the release of a stream that has ended.
    peer.release();
    assert_eq!(peer.calls(), "request 9, extract 1, extract 2");
    let second = next_now(&mut stream).unwrap();
    assert!(matches!(poll_next(&mut stream), Poll::Ready(None)));
    drop((stream, peer));
    assert_eq!(live.count(), 2);
    assert_eq!((first.length(), second.length()), (1, 2));
    drop((first, second));
    assert_eq!(live.count(), 0);
}

#[test]
fn what_is_kept_over_the_release_can_be_skipped() {
    let live = Live::default();
    let (peer, mut stream) = open(9);
    for length in 1..4 {
        peer.give(length, live.batch(length), 0, &[]);
    }
    peer.end();
    peer.release();
    assert!(stream.skip_batch());
    assert_eq!(live.count(), 2);
    assert_eq!(row(Some(next_now(&mut stream))), 2);
    drop(stream);
    assert_eq!(live.count(), 0);
}

#[test]
fn rule_async_task_extract_set() {
    let (peer, mut stream) = open(1);
    let mut task = fletching::abi::ArrowAsyncTask::zeroed();
    // SAFETY: the handler is not released.
    let code = unsafe { Handler::call_on_next_task(peer.handler, &raw mut task, null()) };
    assert_eq!(code, Some(EINVAL));
    assert_eq!(
        error(&mut stream).message(),
        "task.extract_data: NULL: expected a callback"
    );
    peer.release();
}

#[test]
fn rule_async_request_needed() {
    let (peer, stream) = created(3);
    let mut peer = peer;
    stream.request(4).unwrap();
    assert_eq!(peer.calls(), "");
    peer.schema(schema());
    assert_eq!(peer.calls(), "request 7");
    stream.request(1).unwrap();
    assert_eq!(peer.calls(), "request 1");
    peer.release();
}

#[test]
fn rule_async_request_positive() {
    let (peer, stream) = open(0);
    for n in [0, -1, i64::MIN] {
        let error = stream.request(n).unwrap_err();
        let text = format!("request: n is not positive: expected 1 or more, got {n}");
        assert_eq!((error.code(), error.message()), (EINVAL, &*text));
    }
    assert_eq!(peer.calls(), "");
    peer.release();
}

#[test]
fn rule_async_cancel_late_calls_accepted() {
    for ends in [false, true] {
        let (peer, stream) = open(2);
        peer.task(1);
        drop(stream);
        assert_eq!(peer.task(2), 0);
        match ends {
            true => assert_eq!(peer.end(), 0),
            false => peer.error(71, c"too late".as_ptr(), null()),
        }
        peer.release();
        assert_eq!(peer.calls(), "request 2, cancel, drop 1, drop 2");
    }
}

#[test]
fn a_task_that_was_never_requested_is_refused_after_an_early_cancel() {
    let (mut peer, stream) = created(3);
    drop(stream);
    assert_eq!((peer.schema(schema()), peer.task(1)), (0, EINVAL));
    assert_eq!(peer.calls(), "cancel");
    peer.release();
}

#[test]
fn an_extraction_that_fails_is_the_last_item() {
    let (peer, mut stream) = open(3);
    peer.give(1, batch(1), 71, &[]);
    peer.task(2);
    // The peer fills the array all the same, which must not be released.
    let lost = error(&mut stream);
    assert_eq!(
        (lost.code(), lost.message()),
        (71, "extract_data: failed without a message")
    );
    peer.error(71, null(), null());
    assert_eq!(rows(&mut stream), [0i64; 0]);
    assert_eq!(peer.calls(), "request 3, extract 1, drop 2");
    peer.release();
}

fn on_cuda() -> DeviceArray {
    let raw = ArrowDeviceArray {
        device_type: ArrowDeviceType::CUDA,
        ..batch(1).into_raw()
    };
    // SAFETY: no code reads the array.
    unsafe { DeviceArray::from_raw(raw) }
}

#[test]
fn a_wrong_batch_cancels_the_stream() {
    let cases = [
        (
            on_cuda(),
            "batch: device_type differs from the stream's: expected cpu, got cuda (rule \
             async-producer.one-device-type)",
        ),
        (
            DeviceArray::default(),
            "batch: released: expected a live array",
        ),
    ];
    for (wrong, expected) in cases {
        let (peer, mut stream) = open(3);
        peer.give(1, wrong, 0, &[]);
        peer.task(2);
        let found = error(&mut stream);
        assert_eq!((found.code(), found.message()), (EINVAL, expected));
        assert_eq!(peer.calls(), "request 3, extract 1, cancel, drop 2");
        peer.release();
    }
    let (mut peer, mut stream) = created(3);
    peer.schema(
        SchemaBuilder::new("+s")
            .child(SchemaBuilder::new("i"))
            .build()
            .unwrap(),
    );
    peer.task(1);
    assert!(error(&mut stream)
        .message()
        .ends_with("(rule async-next.same-schema)"));
    peer.release();
}

#[test]
fn wrong_batch_after_the_end_is_the_last_item() {
    let (peer, mut stream) = open(3);
    peer.give(1, on_cuda(), 0, &[]);
    peer.task(2);
    peer.end();
    peer.release();
    assert_eq!(rows(&mut stream), [-i64::from(EINVAL)]);
}

#[test]
fn rule_async_task_private_data_untouched() {
    // The extraction frees what private_data points to, and finds it as it was.
    let (peer, mut stream) = open(1);
    peer.task(1);
    assert_eq!(rows(&mut stream), [1]);
    peer.release();
}

#[test]
fn rule_async_producer_private_data_untouched() {
    let (peer, stream) = open(1);
    drop(stream);
    assert_eq!(peer.calls(), "request 1, cancel");
    // SAFETY: the object lives as long as the peer.
    assert_ne!(unsafe { (*peer.object).private_data }, null_mut());
    peer.release();
}

// SPDX-License-Identifier: Apache-2.0

//! The rules that a consumer could break, with a producer that makes its calls one by one.

use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering;
use std::task::Poll;

use fletching::abi::{ArrowAsyncDeviceStreamHandler as Handler, ArrowDeviceArray, ArrowSchema};
use fletching::{
    encode_metadata, ArrowDeviceType, AsyncOptions, AsyncStream, DeviceArray, Error, Schema,
    SchemaBuilder,
};
use libc::{EINVAL, EIO};

use crate::support::*;

fn error(stream: &mut AsyncStream) -> Error {
    let Poll::Ready(Some(Err(error))) = poll_next(stream) else {
        panic!("expected an error")
    };
    assert!(matches!(poll_next(stream), Poll::Ready(None)));
    error
}

#[test]
fn rule_async_any_thread() {
    let (peer, mut stream) = open(4);
    std::thread::scope(|scope| {
        for number in 1..4 {
            let peer = &peer;
            scope
                .spawn(move || assert_eq!(peer.task(number), 0))
                .join()
                .unwrap();
        }
    });
    assert_eq!((peer.end(), rows(&mut stream)), (0, vec![1, 2, 3]));
    peer.release();
}

#[test]
fn rule_async_schema_returns_errno() {
    let (mut peer, mut stream) = created(1);
    assert_eq!(peer.schema(Schema::default()), EINVAL);
    assert_eq!(
        error(&mut stream).message(),
        "on_schema: schema is NULL or released: expected a schema"
    );
    peer.release();
    // The second of two schemas is refused, and ends the stream.
    let (mut peer, mut stream) = open(1);
    assert_eq!(peer.schema(schema()), EINVAL);
    assert_eq!(
        error(&mut stream).message(),
        "on_schema: called twice: expected one call"
    );
    peer.release();
}

#[test]
fn rule_async_schema_moved_or_released() {
    for is_dropped in [false, true] {
        let (peer, stream) = created(1);
        let stream = (!is_dropped).then_some(stream);
        let mut raw = schema().into_raw();
        // SAFETY: the handler is not released.
        let code = unsafe { Handler::call_on_schema(peer.handler, &raw mut raw) };
        assert_eq!((code, raw.is_released()), (Some(0), true));
        peer.release();
        drop(stream);
    }
}

#[test]
fn rule_async_schema_released_independently() {
    let live = Live::default();
    let (mut peer, stream) = created(1);
    live.fetch_add(1, Ordering::SeqCst);
    let mut schema = schema();
    schema.attach(live.guard()).unwrap();
    peer.schema(schema);
    peer.error(EIO, null(), null());
    peer.release();
    assert_eq!(block_on(stream.schema()).unwrap().format(), c"i");
    assert_eq!(live.count(), 1);
    drop(stream);
    assert_eq!(live.count(), 0);
}

#[test]
fn rule_async_schema_pointer_not_kept() {
    let (peer, stream) = created(1);
    let mut raw = Box::new(schema().into_raw());
    // SAFETY: the handler is not released.
    unsafe { Handler::call_on_schema(peer.handler, &raw mut *raw).unwrap() };
    *raw = ArrowSchema::zeroed();
    drop(raw);
    assert_eq!(block_on(stream.schema()).unwrap().format(), c"i");
    peer.release();
}

#[test]
fn rule_async_next_returns_errno() {
    let (peer, mut stream) = open(1);
    assert_eq!((peer.task(1), peer.task(2)), (0, EINVAL));
    assert_eq!(
        error(&mut stream).message(),
        "on_next_task: too many tasks: expected at most the sum of the requests"
    );
    assert_eq!((peer.end(), peer.task(3)), (EINVAL, EINVAL));
    assert_eq!(peer.calls(), "request 1, drop 1");
    peer.release();
}

#[test]
fn rule_async_next_null_task_accepted() {
    let (peer, mut stream) = open(1);
    assert_eq!(peer.end(), 0);
    assert!(matches!(poll_next(&mut stream), Poll::Ready(None)));
    peer.release();
}

#[test]
fn rule_async_next_task_copied() {
    // The peer clears its struct after each call.
    let (peer, mut stream) = open(2);
    peer.task(1);
    peer.task(2);
    assert_eq!(rows(&mut stream), [1, 2]);
    peer.end();
    peer.release();
}

#[test]
fn rule_async_next_metadata_copied() {
    let (peer, mut stream) = open(2);
    let mut block = encode_metadata([(&b"key"[..], &b"value"[..])]).unwrap();
    peer.give(1, batch(1), 0, &block);
    block.fill(0xff);
    assert_eq!(rows(&mut stream), [1]);
    assert_eq!(stream.batch_metadata().get(b"key"), Some(&b"value"[..]));
    // Malformed metadata is refused.
    assert_eq!(peer.give(2, batch(2), 0, &block), EINVAL);
    let message = error(&mut stream).message().to_owned();
    assert_eq!(
        message,
        "metadata: number of pairs at byte 0: negative: expected 0 or more, got -1"
    );
    peer.release();
}

#[test]
fn rule_async_error_texts_copied() {
    let (peer, mut stream) = open(1);
    let mut text = *b"lost\0";
    peer.error(71, text.as_ptr().cast(), null());
    text.fill(b'x');
    let error = error(&mut stream);
    assert_eq!((error.code(), error.message()), (71, "lost"));
    peer.release();
}

#[test]
fn rule_async_error_texts_null_accepted() {
    for (code, expected, text) in [(71, 71, ""), (0, EIO, "(code 0)"), (-9, EIO, "(code -9)")] {
        let (peer, mut stream) = open(1);
        peer.error(code, null(), null());
        let error = error(&mut stream);
        assert_eq!((error.code(), error.message()), (expected, text));
        peer.release();
    }
}

#[test]
fn rule_async_error_before_request_accepted() {
    let (peer, mut stream) = created(0);
    peer.error(71, c"gone".as_ptr(), null());
    assert_eq!(block_on(stream.schema()).unwrap_err().message(), "gone");
    assert_eq!(error(&mut stream).code(), 71);
    peer.release();
}

#[test]
fn rule_async_error_calls_no_producer() {
    let (peer, mut stream) = open(2);
    peer.task(1);
    peer.error(71, null(), null());
    stream.request(3).unwrap();
    assert!(!stream.skip());
    assert_eq!(rows(&mut stream), [-71]);
    drop(stream);
    assert_eq!(peer.calls(), "request 2, drop 1");
    peer.release();
}

#[test]
fn rule_async_release_before_request_accepted() {
    let (peer, mut stream) = created(0);
    peer.release();
    let error = error(&mut stream);
    assert_eq!(
        (error.code(), error.message()),
        (
            EIO,
            "release: called too early: expected on_next_task(NULL) or on_error before"
        )
    );
}

#[test]
fn rule_async_release_calls_no_producer() {
    let (peer, mut stream) = open(3);
    peer.task(1);
    peer.release();
    stream.request(3).unwrap();
    assert_eq!(rows(&mut stream), [-i64::from(EIO)]);
    drop(stream);
    assert_eq!(peer.calls(), "request 3, drop 1");
}

#[test]
fn rule_async_release_like_array() {
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default());
    assert!(poll_next(&mut stream).is_pending());
    // An owner that nobody takes releases the handler.
    drop(handler);
    assert_eq!(error(&mut stream).code(), EIO);
    // A second call does no harm while the stream is there.
    let (peer, stream) = open(1);
    peer.release();
    peer.release();
    drop(stream);
}

#[test]
fn rule_async_handler_ready_when_passed() {
    let (handler, _stream) = AsyncStream::new(AsyncOptions::default());
    // SAFETY: the handler lives until its release.
    let raw = unsafe { &*handler.as_ptr() };
    assert!(raw.on_schema.is_some() && raw.on_next_task.is_some());
    assert!(raw.on_error.is_some() && raw.release.is_some());
    assert!(raw.producer.is_null());
}

#[test]
fn rule_async_handler_producer_not_before_schema() {
    let (peer, stream) = created(5);
    stream.request(2).unwrap();
    drop(stream);
    assert_eq!(peer.calls(), "");
    let mut peer = peer;
    assert_eq!(peer.schema(schema()), 0);
    assert_eq!(peer.calls(), "cancel");
    peer.release();
    // An object that is not complete is refused.
    let (mut peer, mut stream) = created(5);
    // SAFETY: the object lives as long as the peer.
    unsafe { (*peer.object).cancel = None }
    assert_eq!(peer.schema(schema()), EINVAL);
    assert_eq!(
        error(&mut stream).message(),
        "handler.producer: NULL, or request or cancel NULL: expected callbacks"
    );
    peer.release();
}

#[test]
fn rule_async_task_extracted_once() {
    // Taken, skipped, dropped by an error, by a cancel, and by the release.
    let (peer, mut stream) = open(4);
    peer.task(1);
    peer.task(2);
    assert_eq!(row(Some(next_now(&mut stream))), 1);
    assert!(stream.skip());
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
    assert!(stream.skip() && !stream.skip());
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
    assert!(stream.skip());
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
    // SAFETY: nobody reads the array.
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
fn a_wrong_batch_after_the_end_is_lost_alone() {
    let (peer, mut stream) = open(3);
    peer.give(1, on_cuda(), 0, &[]);
    peer.task(2);
    peer.end();
    peer.release();
    assert_eq!(rows(&mut stream), [-i64::from(EINVAL), 2]);
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

// SPDX-License-Identifier: Apache-2.0

//! The rules that a consumer could break, with a producer that makes its calls one by one.

use std::ptr::null;
use std::sync::atomic::Ordering;
use std::task::Poll;

use fletching::abi::{ArrowAsyncDeviceStreamHandler as Handler, ArrowSchema};
use fletching::{encode_metadata, AsyncOptions, AsyncStream, Error, Schema};
use libc::{EINVAL, EIO};

use crate::support::*;

pub fn error(stream: &mut AsyncStream) -> Error {
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
    let (mut peer, mut stream) = created(1);
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
    let (peer, mut stream) = created(1);
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
    assert!(!stream.skip_batch());
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
    // An owner that is not taken releases the handler.
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

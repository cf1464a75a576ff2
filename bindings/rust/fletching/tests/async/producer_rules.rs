// SPDX-License-Identifier: Apache-2.0

//! The rules that a producer could break, with a consumer that writes down what is called.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use fletching::{encode_metadata, ArrowDeviceType, AsyncBatch, AsyncProducer, Error};
use libc::{EINVAL, EIO, ENOMEM};

use crate::support::*;

pub type Sending = Hand<Result<(), Error>>;

pub fn start(items: Items) -> (Arc<ConsumerPeer>, Sending) {
    let peer = ConsumerPeer::new();
    let mut sending = Hand::new(producer(items).calls_per_poll(1).send(peer.owner()));
    sending.run();
    let mut calls = peer.calls.lock().unwrap();
    assert_eq!(calls.remove(0), "schema");
    drop(calls);
    (peer, sending)
}

pub fn failing() -> Items {
    items([Ok(batch(1)), Err(Error::new(71, "disk"))])
}

#[test]
fn rule_async_handlers_serialized() {
    let (peer, mut sending) = start(batches(2));
    *peer.inside.lock().unwrap() = Some(Box::new(|peer, _| {
        std::thread::scope(|scope| scope.spawn(|| peer.request(2)).join().unwrap());
    }));
    peer.request(1);
    sending.run();
    assert_eq!(peer.calls(), "task, task, end");
    assert_eq!(peer.overlaps.load(Ordering::SeqCst), 0);
    peer.drop_tasks();
}

#[test]
fn rule_async_next_not_concurrent() {
    let (peer, mut sending) = start(batches(3));
    *peer.inside.lock().unwrap() = Some(Box::new(|peer, name| {
        if name == "task" {
            peer.request(1);
            peer.drop_task();
        }
    }));
    peer.request(1);
    sending.run();
    *peer.inside.lock().unwrap() = None;
    assert_eq!(peer.overlaps.load(Ordering::SeqCst), 0);
}

#[test]
fn rule_async_error_ends_stream() {
    let (peer, mut sending) = start(failing());
    peer.request(2);
    sending.run();
    peer.drop_task();
    sending.run();
    assert_eq!(peer.calls(), "task, error 71 disk, release");
    assert_eq!(sending.output.unwrap().unwrap_err().code(), 71);
}

#[test]
fn rule_async_error_then_release_only() {
    let (peer, mut sending) = start(failing());
    peer.request(9);
    sending.run();
    peer.request(9);
    peer.cancel();
    peer.request(-1);
    peer.drop_task();
    sending.run();
    assert_eq!(peer.calls(), "task, error 71 disk, release");
}

pub fn refused(name: &'static str, code: i32, source: Items) -> (Arc<ConsumerPeer>, Sending) {
    let peer = ConsumerPeer::new();
    *peer.refuses.lock().unwrap() = Some((name, code));
    let mut sending = Hand::new(producer(source).send(peer.owner()));
    peer.request(5);
    sending.run();
    (peer, sending)
}

#[test]
fn rule_async_handler_failure_ends_stream() {
    for code in [ENOMEM, -3] {
        let live = Live::default();
        let (peer, sending) = refused("task", code, items([Ok(live.batch(1)), Ok(live.batch(2))]));
        assert_eq!(peer.calls(), "schema, task, release");
        assert_eq!(live.count(), 0);
        let error = sending.output.unwrap().unwrap_err();
        assert_eq!(error.code(), if code > 0 { code } else { EIO });
        let text = format!("on_next_task: refused by the consumer: expected 0, got {code}");
        assert_eq!(error.message(), text);
    }
}

#[test]
fn rule_async_schema_only_release_after_failure() {
    assert_eq!(
        refused("schema", EINVAL, failing()).0.calls(),
        "schema, release"
    );
}

#[test]
fn rule_async_next_only_release_after_failure() {
    assert_eq!(
        refused("end", EINVAL, batches(0)).0.calls(),
        "schema, end, release"
    );
}

#[test]
fn rule_async_schema_first_and_once() {
    let peer = ConsumerPeer::new();
    let mut sending = Hand::new(producer(batches(1)).send(peer.owner()));
    peer.request(1);
    sending.run();
    assert_eq!(peer.calls(), "schema, task, end");
    peer.drop_task();
    // An error or a cancel may come instead.
    let peer = ConsumerPeer::new();
    let mut sending = Hand::new(producer(batches(1)).send(peer.owner()));
    peer.cancel();
    sending.run();
    assert_eq!(peer.calls(), "release");
}

/// A handler without a callback is released, and no other callback is called.
fn without(change: impl Fn(&ConsumerPeer), name: &str, calls: &str) {
    let peer = ConsumerPeer::new();
    change(&peer);
    let mut sending = Hand::new(producer(batches(1)).send(peer.owner()));
    peer.request(1);
    sending.run();
    let error = sending.output.unwrap().unwrap_err();
    let text = format!("handler.{name}: NULL: expected a callback");
    assert_eq!((error.code(), error.message()), (EINVAL, &*text));
    assert_eq!(peer.calls(), calls);
    if name == "release" {
        // SAFETY: the share that is not returned.
        unsafe { Arc::decrement_strong_count(Arc::as_ptr(&peer)) };
    }
}

#[test]
fn rule_async_schema_set() {
    without(
        |peer| peer.set(|handler| handler.on_schema = None),
        "on_schema",
        "release",
    );
}

#[test]
fn rule_async_next_set() {
    let change = |peer: &ConsumerPeer| peer.set(|handler| handler.on_next_task = None);
    without(change, "on_next_task", "release");
}

#[test]
fn rule_async_error_set() {
    let change = |peer: &ConsumerPeer| peer.set(|handler| handler.on_error = None);
    without(change, "on_error", "release");
}

#[test]
fn rule_async_release_set() {
    let change = |peer: &ConsumerPeer| peer.set(|handler| handler.release = None);
    without(change, "release", "");
}

#[test]
fn rule_async_next_null_task_is_end() {
    // Without demand.
    let (peer, mut sending) = start(batches(0));
    assert!(sending.run().is_ready());
    let (peer_of_one, mut sending) = start(batches(1));
    peer_of_one.request(1);
    sending.run();
    assert_eq!(
        (peer.calls(), peer_of_one.calls()),
        ("end, release".into(), "task, end".into())
    );
    peer_of_one.drop_task();
}

#[test]
fn rule_async_next_task_lives_during_call() {
    let block = encode_metadata([(&b"key"[..], &b"value"[..])]).unwrap();
    let (peer, mut sending) = start(items([Ok(
        AsyncBatch::from(batch(1)).with_metadata(block.clone())
    )]));
    // The metadata is read by the peer after the data was extracted inside the call.
    *peer.inside.lock().unwrap() = Some(Box::new(|peer, name| {
        if name == "task" {
            assert_eq!(peer.extract(), 1);
        }
    }));
    peer.request(1);
    assert!(sending.run().is_ready());
    *peer.inside.lock().unwrap() = None;
    assert_eq!(*peer.metadata.lock().unwrap(), [block]);
}

#[test]
fn rule_async_error_errno_codes() {
    let peer = ConsumerPeer::new();
    Hand::new(producer(items::<AsyncBatch>([Err(Error::new(-5, "odd"))])).send(peer.owner())).run();
    assert_eq!(peer.calls(), "schema, error 5 odd, release");
}

#[test]
fn rule_async_error_texts_live_during_call() {
    // The peer copies the text at the end of its call; an error without one has a text all the same.
    let peer = ConsumerPeer::new();
    Hand::new(producer(items::<AsyncBatch>([Err(Error::new(EIO, ""))])).send(peer.owner())).run();
    assert_eq!(
        peer.calls(),
        "schema, error 5 producer: failed without a message, release"
    );
}

#[test]
fn rule_async_release_always_called() {
    for (source, calls) in [
        (batches(0), "schema, end, release"),
        (
            items::<AsyncBatch>([Err(Error::new(EIO, "x"))]),
            "schema, error 5 x, release",
        ),
    ] {
        let peer = ConsumerPeer::new();
        Hand::new(producer(source).send(peer.owner())).run();
        assert_eq!(peer.calls(), calls);
    }
    // Not before the last task is extracted, in any order.
    let (peer, mut sending) = start(batches(2));
    peer.request(2);
    sending.run();
    assert_eq!(peer.calls(), "task, task, end");
    peer.tasks.lock().unwrap().rotate_left(1);
    assert_eq!(peer.extract(), 2);
    assert!(!sending.run().is_ready());
    assert_eq!(peer.calls(), "");
    assert_eq!(peer.extract(), 1);
    assert!(sending.run().is_ready());
    assert_eq!(peer.calls(), "release");
}

#[test]
fn rule_async_release_last() {
    let (peer, mut sending) = start(batches(0));
    assert!(sending.run().is_ready());
    assert_eq!(peer.calls(), "end, release");
    // The future is gone, and with it the producer's object.
    drop(sending);
    assert_eq!(peer.calls(), "");
}

#[test]
fn rule_async_handler_producer_set_first() {
    let peer = ConsumerPeer::new();
    let block = encode_metadata([(&b"key"[..], &b"value"[..])]).unwrap();
    let sending = producer(endless(0)).metadata(block).send(peer.owner());
    // SAFETY: the object lives as long as the future.
    let object = unsafe { &*peer.producer() };
    assert!(object.request.is_some() && object.cancel.is_some());
    assert_eq!(object.device_type, ArrowDeviceType::CPU);
    assert!(!object.additional_metadata.is_null());
    drop(sending);
}

#[test]
fn rule_async_request_set() {
    let (peer, _sending) = start(endless(0));
    // SAFETY: the object lives as long as the future.
    assert!(unsafe { (*peer.producer()).request }.is_some());
}

#[test]
fn rule_async_cancel_set() {
    let (peer, _sending) = start(endless(0));
    // SAFETY: the object lives as long as the future.
    assert!(unsafe { (*peer.producer()).cancel }.is_some());
}

#[test]
fn rule_async_producer_device_type_set() {
    let peer = ConsumerPeer::new();
    let source = AsyncProducer::new(schema(), ArrowDeviceType(0), batches(1));
    Hand::new(source.send(peer.owner())).run();
    assert_eq!(
        peer.calls(),
        "error 22 producer: device_type: 0: expected the device type of the batches (rule \
         async-producer.device-type-set), release"
    );
}

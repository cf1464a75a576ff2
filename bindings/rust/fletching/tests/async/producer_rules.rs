// SPDX-License-Identifier: Apache-2.0

//! The rules that a producer could break, with a consumer that writes down what is called.

use std::future::Future;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use fletching::abi::{ArrowAsyncProducer as Producer, ArrowAsyncTask as Task};
use fletching::{
    encode_metadata, ArrowDeviceType, AsyncBatch, AsyncProducer, DeviceArray, Error, Metadata,
    SchemaBuilder,
};
use libc::{EINVAL, EIO, ENOMEM};

use crate::support::*;

type Sending = Hand<Result<(), Error>>;

fn start(items: Items) -> (Arc<ConsumerPeer>, Sending) {
    let peer = ConsumerPeer::new();
    let mut sending = Hand::new(producer(items).calls_per_poll(1).send(peer.owner()));
    sending.run();
    let mut calls = peer.calls.lock().unwrap();
    assert_eq!(calls.remove(0), "schema");
    drop(calls);
    (peer, sending)
}

fn failing() -> Items {
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

fn refused(name: &'static str, code: i32, source: Items) -> (Arc<ConsumerPeer>, Sending) {
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

/// A handler without a callback is released, and nothing else.
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
    without(change, "on_next_task", "schema, release");
}

#[test]
fn rule_async_error_set() {
    let peer = ConsumerPeer::new();
    peer.set(|handler| handler.on_error = None);
    let mut sending =
        Hand::new(producer(items::<AsyncBatch>([Err(Error::new(EIO, ""))])).send(peer.owner()));
    sending.run();
    assert_eq!(peer.calls(), "schema, release");
}

#[test]
fn rule_async_release_set() {
    let peer = ConsumerPeer::new();
    peer.set(|handler| handler.release = None);
    let mut sending = Hand::new(producer(batches(0)).send(peer.owner()));
    assert!(sending.run().is_ready());
    assert_eq!(peer.calls(), "schema, end");
    // SAFETY: the share that nobody returns.
    unsafe { Arc::decrement_strong_count(Arc::as_ptr(&peer)) };
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

fn on_cuda(mut array: DeviceArray) -> DeviceArray {
    let mut raw = std::mem::take(&mut array).into_raw();
    raw.device_type = ArrowDeviceType::CUDA;
    // SAFETY: nobody reads the array.
    unsafe { DeviceArray::from_raw(raw) }
}

#[test]
fn rule_async_producer_one_device_type() {
    let text = "batch: device_type differs from the stream's: expected cpu, got cuda (rule \
                async-producer.one-device-type)";
    let live = Live::default();
    let peer = ConsumerPeer::new();
    let source = items([Ok(on_cuda(live.batch(1)))]);
    Hand::new(producer(source).send(peer.owner())).run();
    assert_eq!(peer.calls(), format!("schema, error 22 {text}, release"));
    assert_eq!(live.count(), 0);
    // A batch that is made later.
    let (peer, mut sending) = start(Items {
        ends: false,
        ..items([Ok(AsyncBatch::made(|| Ok(on_cuda(batch(1)))))])
    });
    peer.request(1);
    sending.run();
    assert_eq!(peer.extract(), -22);
    sending.run();
    assert_eq!(peer.calls(), format!("task, error 22 {text}, release"));
}

#[test]
fn rule_async_next_same_schema() {
    let peer = ConsumerPeer::new();
    let child = SchemaBuilder::new("i");
    let record = SchemaBuilder::new("+s").child(child).build().unwrap();
    let source = AsyncProducer::new(record, ArrowDeviceType::CPU, batches(1));
    Hand::new(source.send(peer.owner())).run();
    assert_eq!(
        peer.calls(),
        "schema, error 22 batch: children or dictionary differ from the stream's schema (rule \
         async-next.same-schema), release"
    );
    let peer = ConsumerPeer::new();
    let source = items([Ok(DeviceArray::default())]);
    Hand::new(producer(source).send(peer.owner())).run();
    assert_eq!(
        peer.calls(),
        "schema, error 22 batch: released: expected a live array, release"
    );
}

#[test]
fn rule_async_next_metadata_encoding() {
    let peer = ConsumerPeer::new();
    let source = items([Ok(AsyncBatch::from(batch(1)).with_metadata(vec![0; 5]))]);
    Hand::new(producer(source).send(peer.owner())).run();
    assert_eq!(
        peer.calls(),
        "schema, error 22 metadata: bytes after the last pair, release"
    );
}

#[test]
fn rule_async_error_metadata_encoding() {
    // The peer asserts that it is NULL: this producer has none to send.
    let (peer, _) = refused("", 0, items::<AsyncBatch>([Err(Error::new(EIO, "x"))]));
    assert_eq!(peer.calls(), "schema, error 5 x, release");
}

#[test]
fn rule_async_producer_metadata_encoding() {
    let peer = ConsumerPeer::new();
    Hand::new(producer(batches(0)).metadata(vec![9; 3]).send(peer.owner())).run();
    assert!(peer.calls().starts_with("error 22 metadata: "));
}

#[test]
fn rule_async_producer_metadata_lives() {
    let peer = ConsumerPeer::new();
    let block = encode_metadata([(&b"key"[..], &b"value"[..])]).unwrap();
    let mut sending = Hand::new(producer(batches(0)).metadata(block).send(peer.owner()));
    assert!(sending.run().is_ready());
    let (peer, sending) = {
        let peer = ConsumerPeer::new();
        let block = encode_metadata([(&b"key"[..], &b"value"[..])]).unwrap();
        (
            Arc::clone(&peer),
            producer(endless(0)).metadata(block).send(peer.owner()),
        )
    };
    // SAFETY: the object lives as long as the future.
    let metadata = unsafe { Metadata::read((*peer.producer()).additional_metadata).unwrap() };
    assert_eq!(metadata.get(b"key"), Some(&b"value"[..]));
    drop(sending);
}

#[test]
fn rule_async_producer_outlives_handler() {
    let peer = ConsumerPeer::new();
    let sending = producer(batches(0)).send(peer.owner());
    let mut sending = Box::pin(sending);
    let object = peer.producer();
    let waker = std::task::Waker::noop();
    let polled = sending
        .as_mut()
        .poll(&mut std::task::Context::from_waker(waker));
    assert!(polled.is_ready());
    assert_eq!(peer.calls(), "schema, end, release");
    // SAFETY: the object lives as long as the future.
    unsafe {
        Producer::call_request(object, 1).unwrap();
        Producer::call_request(object, 0).unwrap();
        Producer::call_cancel(object).unwrap();
    }
    assert_eq!(peer.calls(), "");
}

#[test]
fn rule_async_producer_freed_by_producer() {
    // What the object keeps alive is gone with the future, and not before.
    let live = Live::default();
    let peer = ConsumerPeer::new();
    let kept = Arc::new(());
    let held = Arc::clone(&kept);
    let made = AsyncBatch::made(move || {
        drop(held);
        Ok(batch(1))
    });
    let mut sending =
        Hand::new(producer(items([Ok(made), Ok(live.batch(2).into())])).send(peer.owner()));
    sending.run();
    peer.cancel();
    assert_eq!((Arc::strong_count(&kept), live.count()), (2, 1));
    assert!(sending.run().is_ready());
    assert_eq!((Arc::strong_count(&kept), live.count()), (1, 0));
}

#[test]
fn rule_async_task_extract_set() {
    let (peer, mut sending) = start(batches(1));
    peer.request(1);
    sending.run();
    assert!(peer.tasks.lock().unwrap()[0].extract_data.is_some());
    peer.drop_task();
}

#[test]
fn rule_async_task_null_accepted() {
    let live = Live::default();
    let (peer, mut sending) = start(items([Ok(live.batch(1))]));
    peer.request(1);
    sending.run();
    assert_eq!(peer.drop_task(), 0);
    assert_eq!(live.count(), 0);
}

#[test]
fn rule_async_task_cleans_up() {
    let (peer, mut sending) = start(endless(1));
    peer.request(1);
    sending.run();
    let mut task = peer.tasks.lock().unwrap().pop_front().unwrap();
    let mut array = DeviceArray::default();
    // SAFETY: the second call is made through the same struct.
    unsafe {
        assert_eq!(Task::call_extract_data(&raw mut task, array.out()), Some(0));
        assert!(task.private_data.is_null());
        let mut again = DeviceArray::default();
        assert_eq!(
            Task::call_extract_data(&raw mut task, again.out()),
            Some(EINVAL)
        );
        assert!(again.is_released());
        assert_eq!(
            Task::call_extract_data(&raw mut task, null_mut()),
            Some(EINVAL)
        );
    }
    assert_eq!(array.length(), 1);
}

fn lost() -> Items {
    let made = || Err(Error::new(ENOMEM, "no memory for it"));
    items([
        Ok(AsyncBatch::made(made)),
        Ok(batch(2).into()),
        Ok(batch(3).into()),
    ])
}

#[test]
fn rule_async_task_failure_then_on_error() {
    let (peer, mut sending) = start(lost());
    peer.request(2);
    sending.run();
    assert_eq!(peer.extract(), -i64::from(ENOMEM));
    peer.request(1);
    sending.run();
    peer.drop_task();
    sending.run();
    assert_eq!(
        peer.calls(),
        "task, task, error 12 no memory for it, release"
    );
    // Not when the stream is over.
    let (peer, mut sending) = start(lost());
    peer.request(3);
    sending.run();
    assert_eq!(peer.extract(), -i64::from(ENOMEM));
    assert_eq!((peer.extract(), peer.extract()), (2, 3));
    sending.run();
    assert_eq!(peer.calls(), "task, task, task, end, release");
}

#[test]
fn rule_async_task_returns_errno() {
    let made = || Err(Error::new(-7, "odd"));
    let (peer, mut sending) = start(items([Ok(AsyncBatch::made(made))]));
    peer.request(1);
    sending.run();
    assert_eq!(peer.extract(), -i64::from(EIO));
}

#[test]
fn rule_async_task_in_order() {
    let (peer, mut sending) = start(batches(200));
    peer.request(200);
    sending.run();
    assert_eq!(
        (1..=200).map(|_| peer.extract()).collect::<Vec<_>>(),
        (1..=200).collect::<Vec<_>>()
    );
    assert!(sending.run().is_ready());
}

#[test]
fn rule_async_request_inside_handlers() {
    let peer = ConsumerPeer::new();
    *peer.inside.lock().unwrap() = Some(Box::new(|peer, _| peer.request(1)));
    let mut sending = Hand::new(producer(batches(3)).send(peer.owner()));
    sending.run();
    assert_eq!(peer.calls(), "schema, task, task, task, end");
    *peer.inside.lock().unwrap() = None;
    while !peer.tasks.lock().unwrap().is_empty() {
        peer.drop_task();
    }
    sending.run();
}

#[test]
fn rule_async_request_not_synchronous() {
    let (peer, mut sending) = start(batches(1));
    peer.request(1);
    assert_eq!(peer.calls(), "");
    peer.request(0);
    assert_eq!(peer.calls(), "");
    sending.run();
    assert_eq!(
        peer.calls(),
        "error 22 request: n is not positive: expected 1 or more, got 0, release"
    );
}

#[test]
fn rule_async_request_scheduled() {
    let (peer, mut sending) = start(endless(1));
    let before = sending.wakes.count.load(Ordering::SeqCst);
    peer.request(1);
    assert_eq!(sending.wakes.count.load(Ordering::SeqCst), before + 1);
    sending.run();
    assert_eq!(peer.calls(), "task");
    peer.drop_task();
}

#[test]
fn rule_async_request_adds_up() {
    let (peer, mut sending) = start(batches(5));
    for (n, calls) in [(1, "task"), (2, "task, task")] {
        peer.request(n);
        sending.run();
        assert_eq!(peer.calls(), calls);
    }
    for _ in 0..3 {
        peer.request(i64::MAX);
    }
    sending.run();
    assert_eq!(peer.calls(), "task, task, end");
}

#[test]
fn rule_async_request_not_exceeded() {
    let (peer, mut sending) = start(batches(5));
    sending.run();
    assert_eq!(peer.calls(), "");
    peer.request(3);
    sending.run();
    assert_eq!(peer.calls(), "task, task, task");
}

#[test]
fn rule_async_request_refused_when_not_positive() {
    for n in [0, -1, i64::MIN] {
        let (peer, mut sending) = start(endless(1));
        peer.request(n);
        sending.run();
        let text = format!("request: n is not positive: expected 1 or more, got {n}");
        assert_eq!(peer.calls(), format!("error 22 {text}, release"));
    }
}

#[test]
fn rule_async_request_errors_through_on_error() {
    let (peer, mut sending) = start(batches(0));
    sending.run();
    peer.request(-1);
    sending.run();
    assert_eq!(peer.calls(), "end, release");
}

#[test]
fn rule_async_request_nothing_after_cancel() {
    let (peer, mut sending) = start(batches(5));
    peer.cancel();
    peer.request(3);
    peer.request(-3);
    sending.run();
    assert_eq!(peer.calls(), "release");
}

#[test]
fn rule_async_cancel_stops() {
    let (peer, mut sending) = start(batches(5));
    peer.request(1);
    sending.run();
    peer.cancel();
    assert!(!sending.run().is_ready());
    peer.drop_task();
    assert!(sending.run().output.as_ref().unwrap().is_ok());
    assert_eq!(peer.calls(), "task, release");
}

#[test]
fn rule_async_cancel_idempotent() {
    let (peer, mut sending) = start(batches(5));
    peer.cancel();
    peer.cancel();
    sending.run();
    peer.cancel();
    sending.run();
    assert_eq!(peer.calls(), "release");
}

#[test]
fn rule_async_cancel_thread_safe() {
    let (peer, mut sending) = start(batches(50));
    *peer.inside.lock().unwrap() = Some(Box::new(|peer, name| {
        if name == "task" {
            peer.drop_task();
        }
    }));
    peer.request(50);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| peer.cancel());
        }
        sending.run();
    });
    sending.run();
    *peer.inside.lock().unwrap() = None;
    assert!(sending.is_ready());
    assert!(peer.calls().ends_with("release"));
}

#[test]
fn rule_async_cancel_calls_no_handler() {
    let (peer, _sending) = start(endless(0));
    peer.cancel();
    assert_eq!(peer.calls(), "");
}

#[test]
fn rule_async_cancel_no_on_error() {
    let (peer, mut sending) = start(failing());
    peer.cancel();
    peer.request(9);
    sending.run();
    assert_eq!(peer.calls(), "release");
}

#[test]
fn rule_async_handler_private_data_untouched() {
    let (peer, mut sending) = start(batches(1));
    peer.cancel();
    sending.run();
    // SAFETY: the handler is released.
    let private_data = unsafe { (*peer.handler.get()).private_data };
    assert_eq!(private_data.cast_const().cast(), Arc::as_ptr(&peer));
}

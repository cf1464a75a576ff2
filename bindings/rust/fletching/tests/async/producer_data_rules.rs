// SPDX-License-Identifier: Apache-2.0

//! The rules of what a producer sends: batches, metadata, its object.

use std::future::Future;
use std::sync::Arc;

use fletching::abi::ArrowAsyncProducer as Producer;
use fletching::{
    encode_metadata, ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, AsyncBatch,
    AsyncProducer, DeviceArray, Error, Metadata, Node, SchemaBuilder,
};
use libc::EIO;

use crate::support::*;

use crate::producer_rules::{refused, start};

fn on_cuda(mut array: DeviceArray) -> DeviceArray {
    let mut raw = std::mem::take(&mut array).into_raw();
    raw.device_type = ArrowDeviceType::CUDA;
    // SAFETY: no code reads the array.
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
    let child = || SchemaBuilder::new("i");
    let record = SchemaBuilder::new("+s").child(child()).build().unwrap();
    let source = AsyncProducer::new(record, ArrowDeviceType::CPU, batches(1));
    Hand::new(source.send(peer.owner())).run();
    assert_eq!(
        peer.calls(),
        "schema, error 22 batch 0: expected 1 children, got 0 (rule async-next.same-schema), release"
    );
    // In a column, and in a batch that is made later.
    let column = |child| SchemaBuilder::new("+l").name("a").child(child);
    let items_of = column(SchemaBuilder::new("i").name("items").dictionary(child()));
    let record = SchemaBuilder::new("+s").child(items_of).build().unwrap();
    let made = || {
        let capacity = ArrayCapacity {
            arrays: 2,
            buffers: 0,
        };
        let mut builder = ArrayBuilder::new(capacity, ())?;
        let mut node = Node::ROOT;
        for _ in 0..2 {
            builder.set(node, ArrayValues::of(0), &[]);
            node = builder.add_children(node, 1);
        }
        builder.set(node, ArrayValues::of(0), &[]);
        builder.finish_on(ArrowDeviceType::CPU, -1)
    };
    let peer = ConsumerPeer::new();
    let source = Items {
        ends: false,
        ..items([Ok(AsyncBatch::made(made))])
    };
    let source = AsyncProducer::new(record, ArrowDeviceType::CPU, source);
    let mut sending = Hand::new(source.send(peer.owner()));
    sending.run();
    peer.request(1);
    sending.run();
    assert_eq!(peer.extract(), -22);
    sending.run();
    assert_eq!(
        peer.calls(),
        "schema, task, error 22 batch 0: field \"a.items\": expected a dictionary, got none (rule \
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

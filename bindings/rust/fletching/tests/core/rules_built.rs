// SPDX-License-Identifier: Apache-2.0

//! The rules that an array that is built keeps.

use std::ptr;

use fletching::abi::ArrowDeviceArray;
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Error, Node,
};

use crate::array_builder::{batch, batch_of, columns};
use crate::foreign::{refused, Log, Note};

fn with_root(values: ArrayValues) -> Result<Array, Error> {
    let mut builder = ArrayBuilder::new(ArrayCapacity::default(), ()).unwrap();
    builder.set(Node::ROOT, values, &[]);
    builder.finish()
}

#[track_caller]
fn refuses(values: ArrayValues) {
    refused(
        with_root(values),
        "array builder: length, offset or null_count out of range: expected 0 or more, null_count \
         -1 to length",
    );
}

#[test]
fn rule_array_length_set() {
    assert_eq!(with_root(ArrayValues::of(5)).unwrap().as_raw().length, 5);
    assert!(with_root(ArrayValues::of(i64::MAX)).is_ok());
    refuses(ArrayValues::of(-1));
    refuses(ArrayValues::of(i64::MIN));
}

#[test]
fn rule_array_null_count_range() {
    let nulls = |null_count| ArrayValues {
        length: 1,
        null_count,
        offset: 0,
    };
    refuses(nulls(-2));
    refuses(nulls(2));
    for null_count in -1..=1 {
        assert_eq!(
            with_root(nulls(null_count)).unwrap().null_count(),
            null_count
        );
    }
}

#[test]
fn rule_array_offset_not_negative() {
    let at = |offset| ArrayValues {
        length: 1,
        null_count: 0,
        offset,
    };
    refuses(at(-1));
    refuses(at(i64::MIN));
    assert_eq!(with_root(at(1)).unwrap().offset(), 1);
}

#[test]
fn rule_array_buffers_count() {
    let log = Log::default();
    let batch = batch(&log, 2);
    let [Some(first), Some(second)] = batch.children() else {
        panic!("{batch:?}");
    };
    assert_eq!((batch.buffers().len(), first.buffers().len()), (1, 2));
    assert_ne!(first.as_raw().buffers, second.as_raw().buffers);
    let empty = with_root(ArrayValues::of(0)).unwrap();
    assert!(empty.as_raw().buffers.is_null() && empty.as_raw().n_buffers == 0);
}

#[test]
fn rule_array_children_count() {
    let batch = batch(&Log::default(), 2);
    assert_eq!(
        (batch.as_raw().array.n_children, batch.children().len()),
        (2, 2)
    );
    assert!(batch.children().iter().all(Option::is_some));
}

#[test]
fn rule_array_children_null_only_when_none() {
    let batch = batch(&Log::default(), 2);
    assert!(!batch.as_raw().array.children.is_null());
    assert!(batch.children()[0].unwrap().as_raw().children.is_null());
    let mut builder = ArrayBuilder::new(ArrayCapacity::default(), ()).unwrap();
    builder.set(Node::ROOT, ArrayValues::of(0), &[]);
    builder.add_children(Node::ROOT, 0);
    let none = builder.finish().unwrap();
    assert!(none.as_raw().children.is_null() && none.as_raw().n_children == 0);
}

#[test]
fn rule_array_dictionary_null_otherwise() {
    let batch = batch(&Log::default(), 2);
    assert!(batch.as_raw().array.dictionary.is_null());
}

#[test]
fn rule_array_release_set() {
    let batch = batch(&Log::default(), 2);
    assert!(batch.as_raw().array.release.is_some());
    assert!(batch
        .children()
        .iter()
        .all(|child| !child.unwrap().is_released()));
}

#[test]
fn rule_device_array_device_type_set() {
    for device_type in [ArrowDeviceType::CUDA, ArrowDeviceType(9999)] {
        let batch = batch_of(columns(&Log::default(), 1), device_type).unwrap();
        assert_eq!(batch.device_type(), device_type);
    }
}

#[test]
fn rule_device_array_device_id_set() {
    let id = |device_type| {
        batch_of(columns(&Log::default(), 1), device_type)
            .unwrap()
            .device_id()
    };
    assert_eq!(
        (id(ArrowDeviceType::CPU), id(ArrowDeviceType::CUDA)),
        (-1, 1)
    );
}

#[test]
fn rule_device_array_device_id_convention() {
    assert_eq!(DeviceArray::from(Array::from(vec![1_u8])).device_id(), -1);
}

#[test]
fn rule_device_array_reserved_zero() {
    let raw: ArrowDeviceArray = batch(&Log::default(), 1).into_raw();
    assert_eq!(raw.reserved, [0; 3]);
    assert_eq!(
        DeviceArray::from(Array::from(vec![1_u8])).as_raw().reserved,
        [0; 3]
    );
    // SAFETY: the array is ours.
    drop(unsafe { DeviceArray::from_raw(raw) });
}

#[test]
fn rule_sync_event_destroyed_by_release() {
    let log = Log::default();
    let object = Note(log.clone(), "event");
    let mut builder = ArrayBuilder::new(ArrayCapacity::default(), object).unwrap();
    builder.set(Node::ROOT, ArrayValues::of(0), &[]);
    let event = (&raw mut *builder.object_mut()).cast();
    // SAFETY: no code waits on the event.
    let array = unsafe { builder.finish_with_event(ArrowDeviceType::CUDA, 0, event) }.unwrap();
    let moved = array;
    assert_eq!(moved.sync_event(), event);
    log.expect(&[]);
    drop(moved);
    log.expect(&["event"]);
}

#[test]
fn rule_sync_event_null_where_none() {
    let finish = |device_type| {
        let mut builder = ArrayBuilder::new(ArrayCapacity::default(), ()).unwrap();
        builder.set(Node::ROOT, ArrayValues::of(0), &[]);
        // SAFETY: no code waits on the event.
        unsafe { builder.finish_with_event(device_type, 0, ptr::dangling_mut::<u64>().cast()) }
    };
    refused(
        finish(ArrowDeviceType::CPU),
        "array builder: sync_event not NULL: expected NULL, because the device type has no event",
    );
    for device_type in [
        ArrowDeviceType::EXT_DEV,
        ArrowDeviceType::CUDA,
        ArrowDeviceType(9999),
    ] {
        assert!(finish(device_type).is_ok());
    }
}

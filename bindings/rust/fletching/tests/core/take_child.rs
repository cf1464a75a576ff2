// SPDX-License-Identifier: Apache-2.0

//! Children moved out of a foreign array, and the event that lives as long as they do.

use std::ptr;
use std::sync::Arc;

use fletching::abi::ArrowArray;
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Node,
};

use crate::foreign::{
    array, child_of, device_array, raw_array, raw_device_array, refused, replace, Log, Note,
};

#[test]
fn take_child_rejects_missing_child() {
    let log = Log::default();
    let mut array = device_array(&log, "a", 3, false);
    let no_child = "take_child: child 3: no such child: expected an index below 3";
    refused(array.take_child(3), no_child);
    assert!(array.take_child(usize::MAX).is_err());
    let _child = array.take_child(1).unwrap();
    refused(
        array.take_child(1),
        "take_child: child 1: released or moved out: expected a live struct",
    );
    refused(
        array.take_dictionary(),
        "take_dictionary: NULL: expected a struct",
    );
    let place = array.as_raw().array.children;
    // SAFETY: the list belongs to a foreign array that is not read meanwhile.
    unsafe {
        let third = ptr::replace(place.add(2), ptr::null_mut());
        refused(
            array.take_child(2),
            "take_child: child 2: NULL: expected a struct",
        );
        assert!(array.children()[2].is_none());
        *place.add(2) = third;
    }
    assert!(array.take_child(2).is_ok());
}

#[test]
fn take_dictionary_keeps_event() {
    let log = Log::default();
    let mut array = device_array(&log, "a", 0, true);
    let dictionary = array.take_dictionary().unwrap();
    refused(
        array.take_dictionary(),
        "take_dictionary: released or moved out: expected a live struct",
    );
    drop(array);
    log.expect(&[]);
    drop(dictionary);
    log.expect(&["ad", "a", "event"]);
}

#[test]
fn device_child_has_device_and_event() {
    let log = Log::default();
    let mut raw = raw_device_array(&log, "a", 2, false);
    raw.reserved[0] = 5;
    // SAFETY: the struct conforms to the specification, except for the reserved field.
    let mut array = unsafe { DeviceArray::from_raw(raw) };
    let child = array.take_child(0).unwrap();
    assert_eq!(
        (child.device_type(), child.device_id()),
        (ArrowDeviceType::CUDA, 3)
    );
    assert_eq!(child.sync_event(), array.sync_event());
    assert_eq!(child.as_raw().reserved, [0; 3]);
}

#[test]
fn event_lives_until_last_child_release() {
    let log = Log::default();
    let mut array = device_array(&log, "a", 3, false);
    let first = array.take_child(0).unwrap();
    let last = array.take_child(2).unwrap();
    drop(array);
    // A child that was not taken is released at once.
    log.expect(&["a1"]);
    drop(first);
    log.expect(&["a1", "a0"]);
    // SAFETY: the event is still alive.
    assert_eq!(unsafe { *last.sync_event().cast::<u64>() }, 7);
    drop(last);
    log.expect(&["a1", "a0", "a2", "a", "event"]);
}

#[test]
fn event_lives_until_parent_release() {
    let log = Log::default();
    let mut array = device_array(&log, "a", 2, false);
    drop(array.take_child(0).unwrap());
    log.expect(&["a0"]);
    let moved = array;
    drop(moved);
    log.expect(&["a0", "a1", "a", "event"]);
}

#[test]
fn grandchild_of_taken_child_keeps_event() {
    let log = Log::default();
    let mut array = device_array(&log, "a", 1, false);
    replace(child_of(&array, 0), raw_array(&log, "b", 2, false));
    let mut child = array.take_child(0).unwrap();
    let grandchild = child.take_child(1).unwrap();
    drop(array);
    drop(child);
    // Only structs with the event wait.
    log.expect(&["a0", "b0", "b"]);
    // SAFETY: the event is still alive.
    assert_eq!(unsafe { *grandchild.sync_event().cast::<u64>() }, 7);
    drop(grandchild);
    log.expect(&["a0", "b0", "b", "b1", "a", "event"]);
}

#[test]
fn foreign_child_of_built_parent_keeps_event() {
    let log = Log::default();
    let capacity = ArrayCapacity {
        arrays: 1,
        buffers: 0,
    };
    let mut builder = ArrayBuilder::new(capacity, (Note(log.clone(), "own event"), 0_u64)).unwrap();
    builder.set(Node::ROOT, ArrayValues::default(), &[]);
    let child = builder.add_children(Node::ROOT, 1);
    builder.set(child, ArrayValues::default(), &[]);
    let event = (&raw mut builder.object_mut().1).cast();
    // SAFETY: no code waits on the event.
    let array = unsafe { builder.finish_with_event(ArrowDeviceType::CUDA, 0, event) };
    let mut array = array.unwrap();
    replace(child_of(&array, 0), raw_array(&log, "a", 0, false));
    let child = array.take_child(0).unwrap();
    drop(array);
    log.expect(&[]);
    drop(child);
    log.expect(&["a", "own event"]);
}

/// Without an event, nothing is deferred: the parent's release runs at once.
#[test]
fn take_child_without_event_keeps_release_callback() {
    let log = Log::default();
    let mut raw = raw_device_array(&log, "a", 2, false);
    raw.sync_event = ptr::null_mut();
    let before = (raw.array.release, raw.array.private_data);
    // SAFETY: the struct conforms to the specification.
    let mut array = unsafe { DeviceArray::from_raw(raw) };
    let child = array.take_child(0).unwrap();
    let after = &array.as_raw().array;
    assert!((after.release, after.private_data) == before);
    drop(array);
    log.expect(&["a1", "a", "event"]);
    drop(child);
    log.expect(&["a1", "a", "event", "a0"]);
}

#[test]
fn take_child_rejects_invalid_child_count() {
    for count in [i64::MAX, i64::from(i32::MAX), (1 << 22) + 1, -1] {
        let log = Log::default();
        let mut raw = raw_device_array(&log, "a", 1, false);
        raw.array.n_children = count;
        // SAFETY: the count is rejected.
        let mut array = unsafe { DeviceArray::from_raw(raw) };
        refused(
            array.take_child(0),
            "take_child: child 0: no such child: expected an index below 0",
        );
        let mut raw = array.into_raw();
        raw.array.n_children = 1;
        // SAFETY: as above.
        let mut array = unsafe { DeviceArray::from_raw(raw) };
        drop(array.take_child(0).unwrap());
        let mut raw = array.into_raw();
        // Its release is deferred at this point, and must not read children if there are none.
        raw.array.n_children = count;
        // SAFETY: as above.
        drop(unsafe { DeviceArray::from_raw(raw) });
        log.expect(&["a0", "a", "event"]);
    }
}

#[test]
fn children_are_released_on_many_threads() {
    const CHILDREN: usize = 8;
    let log = Log::default();
    let mut array = device_array(&log, "a", CHILDREN, true);
    let children: Vec<_> = (0..CHILDREN)
        .map(|index| array.take_child(index).unwrap())
        .collect();
    let dictionary = array.take_dictionary().unwrap();
    std::thread::scope(|scope| {
        for child in children {
            scope.spawn(move || drop(child));
        }
        scope.spawn(move || drop(dictionary));
        drop(array);
    });
    let mut lines = log.lines();
    assert_eq!(lines.split_off(CHILDREN + 1), ["a", "event"]);
    lines.sort();
    assert_eq!(
        lines,
        ["a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "ad"]
    );
}

#[test]
fn child_of_parent_with_attached_object_keeps_event() {
    let log = Log::default();
    let mut array = device_array(&log, "a", 2, false);
    let attached = Arc::new(());
    array.attach(Arc::clone(&attached)).unwrap();
    let child = array.take_child(0).unwrap();
    array.attach(Note(log.clone(), "later")).unwrap();
    drop(array);
    log.expect(&["a1", "later"]);
    // It is dropped with the deferred release of the parent.
    assert_eq!(Arc::strong_count(&attached), 2);
    drop(child);
    log.expect(&["a1", "later", "a0", "a", "event"]);
    assert_eq!(Arc::strong_count(&attached), 1);
}

#[test]
fn second_child_after_attach_keeps_event() {
    let log = Log::default();
    let mut array = device_array(&log, "a", 2, false);
    let first = array.take_child(0).unwrap();
    array.attach(Note(log.clone(), "object")).unwrap();
    let second = array.take_child(1).unwrap();
    drop(array);
    drop(first);
    // Children do not keep an object alive that was attached to the parent.
    log.expect(&["object", "a0"]);
    drop(second);
    log.expect(&["object", "a0", "a1", "a", "event"]);
}

#[test]
fn remaining_dictionary_is_released_with_parent() {
    let log = Log::default();
    let mut array = device_array(&log, "a", 1, true);
    let child = array.take_child(0).unwrap();
    drop(array);
    log.expect(&["ad"]);
    drop(child);
    log.expect(&["ad", "a0", "a", "event"]);
}

/// If the parent's release is deferred, the remaining children are moved out before they are
/// released.
#[test]
fn remaining_children_are_moved_before_release() {
    unsafe extern "C" fn note_place(this: *mut ArrowArray) {
        // SAFETY: the test made the child.
        unsafe {
            (*this).release = None;
            let (place, log) = *Box::from_raw((*this).private_data.cast::<(usize, Log)>());
            log.push(if place == this as usize {
                "in place"
            } else {
                "moved"
            });
        }
    }
    let log = Log::default();
    let mut array = device_array(&log, "a", 2, false);
    let place = child_of(&array, 1);
    let mut child = ArrowArray::zeroed();
    child.private_data = Box::into_raw(Box::new((place as usize, log.clone()))).cast();
    child.release = Some(note_place);
    replace(place, child);
    let _first = array.take_child(0).unwrap();
    drop(array);
    log.expect(&["a1", "moved"]);
}

#[test]
fn child_of_cpu_array_is_moved_unchanged() {
    let log = Log::default();
    let mut parent = array(&log, "a", 2);
    let child: Array = parent.take_child(1).unwrap();
    drop(parent);
    log.expect(&["a0", "a"]);
    assert_eq!(child.length(), 1);
    drop(child);
    log.expect(&["a0", "a", "a1"]);
}

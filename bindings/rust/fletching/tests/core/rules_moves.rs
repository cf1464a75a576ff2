// SPDX-License-Identifier: Apache-2.0

//! The rules of moves.

use std::ptr;

use fletching::abi::ArrowDeviceArray;
use fletching::{Array, DeviceArray};

use crate::array_builder::batch;
use crate::foreign::{array, raw_device_array, Log};
use crate::rules_data::nowhere;

#[test]
fn rule_move_marks_source() {
    let log = Log::default();
    let mut raw = array(&log, "a", 0).into_raw();
    // SAFETY: the array is ours.
    let owner = unsafe { Array::move_from(&mut raw) };
    assert!(raw.is_released());
    let mut target = owner.into_raw();
    log.expect(&[]);
    // SAFETY: the array is ours.
    drop(unsafe { Array::move_from(&mut target) });
    log.expect(&["a"]);
}

#[test]
fn rule_device_array_move_marks_source() {
    let log = Log::default();
    let mut raw = raw_device_array(&log, "a", 0, false);
    let event = raw.sync_event;
    // SAFETY: the array is ours.
    let owner = unsafe { DeviceArray::move_from(&mut raw) };
    assert!(raw.array.is_released());
    assert_eq!(owner.sync_event(), event);
    log.expect(&[]);
}

#[test]
fn rule_move_child_then_release_parent() {
    let log = Log::default();
    let mut parent = array(&log, "a", 2);
    let child = parent.take_child(1).unwrap();
    drop(parent);
    log.expect(&["a0", "a"]);
    assert_eq!(child.length(), 1);
    drop(child);
    log.expect(&["a0", "a", "a1"]);
}

#[test]
fn rule_move_no_inner_pointers() {
    let log = Log::default();
    let batch = batch(&log, 2);
    let raw = batch.as_raw();
    let first = ptr::from_ref(raw).addr();
    let inside = first..first + size_of::<ArrowDeviceArray>();
    for address in [
        raw.array.buffers.addr(),
        raw.array.children.addr(),
        raw.array.private_data.addr(),
        raw.sync_event.addr(),
    ] {
        assert!(address != 0 && !inside.contains(&address));
    }
}

/// Parent and children move away, and where they were there is garbage when they are released.
#[test]
fn rule_move_no_stored_address() {
    let log = Log::default();
    let mut batch = batch(&log, 1);
    let place = crate::foreign::child_of(&batch, 0);
    let child = batch.take_child(0).unwrap();
    // SAFETY: the place of a child that was moved out, whose release stays NULL.
    unsafe {
        (*place).private_data = nowhere();
        (*place).n_children = 9;
    }
    let mut parent = Box::new(batch.into_raw());
    let place = &raw mut *parent;
    // SAFETY: as above.
    let moved = unsafe {
        let moved = (*place).move_out();
        (*place).array.private_data = nowhere();
        moved
    };
    // SAFETY: the array is ours.
    drop(unsafe { DeviceArray::from_raw(moved) });
    log.expect(&[]);
    drop(Box::new(child));
    log.expect(&["dropped"]);
}

// SPDX-License-Identifier: Apache-2.0

//! Children that are moved out of a built array. Memory and event are freed once, with the last
//! struct, in any order of releases.

use std::ptr;
use std::sync::Arc;

use fletching::abi::{ArrowArray, ArrowDeviceArray};
use fletching::{ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Node};

/// The memory of three columns and an event. Alive while the token is shared.
struct OnDevice {
    _token: Arc<()>,
    memory: [Box<u32>; 3],
    event: u64,
}

/// Two columns; the second has a dictionary.
fn batch(token: &Arc<()>) -> DeviceArray {
    let object = OnDevice {
        _token: Arc::clone(token),
        memory: [10, 11, 12].map(Box::new),
        event: 7,
    };
    let capacity = ArrayCapacity {
        arrays: 3,
        buffers: 7,
    };
    let mut builder = ArrayBuilder::new(capacity, object).unwrap();
    let memory: [_; 3] =
        std::array::from_fn(|index| ptr::from_ref(&*builder.object().memory[index]).cast());
    builder.set(Node::ROOT, ArrayValues::of(1), &[ptr::null()]);
    let columns = builder.add_children(Node::ROOT, 2);
    builder.set(columns, ArrayValues::of(1), &[ptr::null(), memory[0]]);
    builder.set(
        columns.sibling(1),
        ArrayValues::of(1),
        &[ptr::null(), memory[1]],
    );
    let dictionary = builder.add_dictionary(columns.sibling(1));
    builder.set(dictionary, ArrayValues::of(1), &[ptr::null(), memory[2]]);
    let event = (&raw mut builder.object_mut().event).cast();
    // SAFETY: no code waits on the event.
    unsafe { builder.finish_with_event(ArrowDeviceType::CUDA, 0, event) }.unwrap()
}

/// Moves a child out like a consumer without the crate.
fn take_in_c_style(parent: &DeviceArray, child: *mut ArrowArray) -> DeviceArray {
    let raw = parent.as_raw();
    // SAFETY: the child is not in use elsewhere, and its event lives as long as the child.
    unsafe {
        let array = (*child).move_out();
        DeviceArray::from_raw(ArrowDeviceArray {
            array,
            device_id: raw.device_id,
            device_type: raw.device_type,
            sync_event: raw.sync_event,
            reserved: [0; 3],
        })
    }
}

/// Reads memory and event. Miri detects a read after they are freed.
fn read(part: &DeviceArray) {
    // SAFETY: the event belongs to `batch`.
    assert_eq!(unsafe { *part.sync_event().cast::<u64>() }, 7);
    if let Some(values) = part.buffers().get(1) {
        // SAFETY: the memory belongs to `batch`.
        assert!((10..13).contains(unsafe { &*values.cast::<u32>() }));
    }
}

#[track_caller]
fn assert_freed_with_last(token: &Arc<()>, parts: Vec<DeviceArray>, order: &[usize]) {
    let mut parts: Vec<_> = parts.into_iter().map(Some).collect();
    for index in order {
        assert_eq!(Arc::strong_count(token), 2, "freed before the last release");
        parts.iter().flatten().for_each(read);
        parts[*index] = None;
    }
    assert_eq!(Arc::strong_count(token), 1, "not freed by the last release");
}

fn orders() -> Vec<[usize; 4]> {
    let all = (0..256).map(|number| [number & 3, number >> 2 & 3, number >> 4 & 3, number >> 6]);
    all.filter(|order| (0..4).all(|index| order.contains(&index)))
        .collect()
}

#[test]
fn rule_sync_event_destroyed_by_release() {
    assert_eq!(orders().len(), 24);
    for in_c_style in [false, true] {
        for order in orders() {
            let token = Arc::new(());
            let mut parts = vec![batch(&token)];
            for index in 0..2 {
                let place = crate::foreign::child_of(&parts[0], index);
                let part = match in_c_style {
                    true => take_in_c_style(&parts[0], place),
                    false => parts[0].take_child(index).unwrap(),
                };
                parts.push(part);
            }
            let part = match in_c_style {
                true => take_in_c_style(&parts[2], parts[2].as_raw().array.dictionary),
                false => parts[2].take_dictionary().unwrap(),
            };
            parts.push(part);
            assert_freed_with_last(&token, parts, &order);
        }
    }
}

#[test]
fn memory_outlives_parent_and_one_moved_child() {
    for order in [[0, 1], [1, 0]] {
        for index in 0..2 {
            let token = Arc::new(());
            let mut parent = batch(&token);
            let child = parent.take_child(index).unwrap();
            assert_freed_with_last(&token, vec![parent, child], &order);
        }
    }
    let token = Arc::new(());
    assert_freed_with_last(&token, vec![batch(&token)], &[0]);
}

#[test]
fn children_are_released_on_many_threads() {
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        let token = Arc::new(());
        let mut parent = batch(&token);
        let first = parent.take_child(0).unwrap();
        let mut second = parent.take_child(1).unwrap();
        let dictionary = second.take_dictionary().unwrap();
        std::thread::scope(|scope| {
            for part in [parent, first, second, dictionary] {
                scope.spawn(move || {
                    read(&part);
                    drop(part);
                });
            }
        });
        assert_eq!(Arc::strong_count(&token), 1);
    }
}

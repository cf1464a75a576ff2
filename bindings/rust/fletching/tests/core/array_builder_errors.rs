// SPDX-License-Identifier: Apache-2.0

//! Calls that an array builder rejects.

use fletching::{ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Node};

use crate::array_builder::{batch_of, columns, NONE, NULL};
use crate::foreign::{refused, Log, Note};

/// Checks the error of `requests` on a builder with room for two arrays and three buffers whose
/// root is set.
#[track_caller]
fn refuses(requests: impl FnOnce(&mut ArrayBuilder<()>), message: &str) {
    let capacity = ArrayCapacity {
        arrays: 2,
        buffers: 3,
    };
    let mut builder = ArrayBuilder::new(capacity, ()).unwrap();
    builder.set(Node::ROOT, ArrayValues::of(1), &[NULL]);
    requests(&mut builder);
    match message {
        "" => assert!(builder.finish().is_ok()),
        _ => refused(builder.finish(), &format!("ArrayBuilder: {message}")),
    }
}

/// Makes nested arrays, alternating children and dictionaries.
fn chain(levels: usize) -> Result<fletching::Array, fletching::Error> {
    let capacity = ArrayCapacity {
        arrays: levels - 1,
        buffers: 0,
    };
    let mut builder = ArrayBuilder::new(capacity, ()).unwrap();
    let mut node = Node::ROOT;
    for level in 1..levels {
        builder.set(node, NONE, &[]);
        node = match level % 2 {
            0 => builder.add_children(node, 1),
            _ => builder.add_dictionary(node),
        };
    }
    builder.set(node, NONE, &[]);
    builder.finish()
}

/// A release is recursive.
#[test]
fn finish_rejects_more_than_256_levels() {
    assert!(chain(256).is_ok());
    let why = "ArrayBuilder: the struct or a descendant is nested too deep: expected at most 256 \
               levels";
    refused(chain(257), why);
    refused(chain(if cfg!(miri) { 300 } else { 1 << 20 }), why);
}

/// Many calls do not mean many levels.
#[test]
fn many_siblings_can_have_children() {
    let capacity = ArrayCapacity {
        arrays: 600,
        buffers: 0,
    };
    let mut builder = ArrayBuilder::new(capacity, ()).unwrap();
    builder.set(Node::ROOT, NONE, &[]);
    let first = builder.add_children(Node::ROOT, 300);
    for index in 0..300 {
        builder.set(first.sibling(index), NONE, &[]);
        let child = builder.add_children(first.sibling(index), 1);
        builder.set(child, NONE, &[]);
    }
    assert_eq!(builder.finish().unwrap().children().len(), 300);
}

#[test]
fn exceeded_capacity_is_rejected() {
    refuses(|_| (), "");
    refuses(
        |builder| {
            let first = builder.add_children(Node::ROOT, 2);
            builder
                .set(first, NONE, &[NULL])
                .set(first.sibling(1), NONE, &[NULL]);
        },
        "",
    );
    refuses(
        |builder| _ = builder.add_children(Node::ROOT, 3),
        "capacity.arrays is too small: expected at least 3, got 2",
    );
    refuses(
        |builder| {
            let first = builder.add_children(Node::ROOT, 1);
            builder.set(first, NONE, &[NULL; 3]);
        },
        "capacity.buffers is too small: expected at least 4, got 3",
    );
    refuses(
        |builder| {
            let first = builder.add_children(Node::ROOT, 2);
            builder
                .set(first, NONE, &[])
                .set(first.sibling(1), NONE, &[]);
            let dictionary = builder.add_dictionary(Node::ROOT);
            builder.set(dictionary, NONE, &[]);
        },
        "capacity.arrays is too small: expected at least 3, got 2",
    );
    let most = usize::MAX;
    refuses(
        |builder| _ = builder.add_children(Node::ROOT, most),
        &format!("capacity.arrays is too small: expected at least {most}, got 2"),
    );
}

#[test]
fn rejected_children_can_be_set() {
    refuses(
        |builder| {
            let first = builder.add_children(Node::ROOT, 3);
            for index in 0..3 {
                let child = first.sibling(index);
                builder.set(child, ArrayValues::of(7), &[NULL; 2]);
                let below = builder.add_children(child, 1);
                builder.set(below, NONE, &[]);
                let dictionary = builder.add_dictionary(child);
                builder.set(dictionary, NONE, &[]);
            }
        },
        "capacity.arrays is too small: expected at least 3, got 2",
    );
}

#[test]
fn missing_child_is_rejected() {
    let not_there = "no such child or dictionary: expected one that was added";
    let early = "children or dictionary added too early: expected the array to be set before";
    refuses(
        |builder| {
            let first = builder.add_children(Node::ROOT, 2);
            (0..3).for_each(|index| _ = builder.set(first.sibling(index), NONE, &[]));
        },
        not_there,
    );
    refuses(
        |builder| _ = builder.set(Node::ROOT.sibling(1), NONE, &[]),
        not_there,
    );
    refuses(
        |builder| {
            let first = builder.add_children(Node::ROOT, 1);
            builder.set(first, NONE, &[]);
            builder.add_dictionary(first.sibling(1));
        },
        early,
    );
    refuses(
        |builder| {
            let first = builder.add_children(Node::ROOT, 1);
            builder.set(first, NONE, &[]);
            builder.add_children(first.sibling(usize::MAX), 1);
        },
        early,
    );
}

#[test]
fn rule_array_null_count_range() {
    let values = |length, null_count, offset| {
        let mut builder = ArrayBuilder::new(ArrayCapacity::default(), ()).unwrap();
        let values = ArrayValues {
            length,
            null_count,
            offset,
        };
        builder.set(Node::ROOT, values, &[]);
        builder.finish()
    };
    for (length, null_count, offset) in [
        (-1, 0, 0),
        (i64::MIN, 0, 0),
        (1, -2, 0),
        (1, 2, 0),
        (1, 0, -1),
        (1, 0, i64::MIN),
    ] {
        refused(
            values(length, null_count, offset),
            "ArrayBuilder: length, offset or null_count out of range: expected 0 or more, \
             null_count -1 to length",
        );
    }
    for null_count in -1..=1 {
        assert_eq!(values(1, null_count, 1).unwrap().null_count(), null_count);
    }
    assert!(values(i64::MAX, 0, 0).is_ok());
}

#[test]
fn calls_in_wrong_order_are_rejected() {
    let early = "children or dictionary added too early: expected the array to be set before";
    refuses(
        |builder| _ = builder.set(Node::ROOT, NONE, &[]),
        "array set twice: expected one call for each added array",
    );
    refuses(
        |builder| {
            let child = builder.add_children(Node::ROOT, 1);
            builder.add_children(child, 1);
        },
        early,
    );
    refuses(
        |builder| {
            let child = builder.add_children(Node::ROOT, 1);
            builder.add_dictionary(child);
        },
        early,
    );
    refuses(
        |builder| {
            let child = builder.add_children(Node::ROOT, 1);
            builder.set(child, NONE, &[]);
            builder.add_children(Node::ROOT, 1);
        },
        "children added twice: expected one call",
    );
    refuses(
        |builder| {
            let dictionary = builder.add_dictionary(Node::ROOT);
            builder.set(dictionary, NONE, &[]);
            builder.add_dictionary(Node::ROOT);
        },
        "dictionary added twice: expected one call",
    );
    let not_set = "array added and not set: expected every array to be set";
    refuses(|builder| _ = builder.add_children(Node::ROOT, 1), not_set);
    refuses(|builder| _ = builder.add_dictionary(Node::ROOT), not_set);
    let builder = ArrayBuilder::new(ArrayCapacity::default(), ()).unwrap();
    refused(builder.finish(), &format!("ArrayBuilder: {not_set}"));
}

#[test]
fn finish_returns_first_error() {
    refuses(
        |builder| {
            builder.add_children(Node::ROOT, 3);
            let child = builder.add_children(Node::ROOT, 1);
            builder.set(child, NONE, &[NULL; 9]);
            builder.add_dictionary(Node::ROOT);
            builder.set(Node::ROOT, ArrayValues::of(-1), &[]);
        },
        "capacity.arrays is too small: expected at least 3, got 2",
    );
}

#[test]
#[cfg_attr(miri, ignore = "Miri stops where memory runs out")]
fn new_impossible_capacity_returns_enomem() {
    let log = Log::default();
    let refused = |arrays, buffers| {
        let builder = ArrayBuilder::new(
            ArrayCapacity { arrays, buffers },
            Note(log.clone(), "dropped"),
        );
        let error = builder.err().unwrap();
        assert_eq!(
            (error.code(), error.message()),
            (libc::ENOMEM, "ArrayBuilder: no memory")
        );
    };
    refused(usize::MAX, 0);
    refused(1 << 22, 0);
    refused(0, usize::MAX);
    refused(0, usize::MAX / 8);
    // A valid layout, but more memory than available.
    #[cfg(target_pointer_width = "64")]
    refused(1, isize::MAX as usize / 32);
    let refusals = if cfg!(target_pointer_width = "64") {
        5
    } else {
        4
    };
    assert_eq!(log.lines(), vec!["dropped"; refusals]);
    assert!(ArrayBuilder::new(
        ArrayCapacity {
            arrays: (1 << 22) - 1,
            buffers: 0
        },
        ()
    )
    .is_ok());
}

#[test]
fn rule_sync_event_null_where_none() {
    let log = Log::default();
    let error = batch_of(columns(&log, 1), ArrowDeviceType::CPU)
        .unwrap()
        .into_raw();
    // SAFETY: the array is owned by the test.
    drop(unsafe { DeviceArray::from_raw(error) });
    log.expect(&["dropped"]);
    for device_type in [ArrowDeviceType::EXT_DEV, ArrowDeviceType(9999)] {
        assert!(batch_of(columns(&Log::default(), 0), device_type).is_ok());
    }
    let mut builder = ArrayBuilder::new(ArrayCapacity::default(), columns(&log, 0)).unwrap();
    builder.set(Node::ROOT, NONE, &[]);
    let event = (&raw mut builder.object_mut().event).cast();
    refused(
        // SAFETY: no code waits on the event.
        unsafe { builder.finish_with_event(ArrowDeviceType::CPU, -1, event) },
        "ArrayBuilder: sync_event not NULL: expected NULL, because the device type has no event",
    );
    log.expect(&["dropped", "dropped"]);
}

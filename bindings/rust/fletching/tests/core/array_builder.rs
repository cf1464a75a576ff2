// SPDX-License-Identifier: Apache-2.0

//! Arrays that are built: children that outlive their parent, and requests that are refused.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use fletching::abi::ArrowArray;
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Error, Node,
};

use crate::foreign::{child_of, refused, Log, Note};

const ROWS: i64 = 3;
const NULL: *const c_void = ptr::null();

/// The columns of a batch, and an event.
pub struct Columns {
    _note: Note,
    values: Vec<[i64; ROWS as usize]>,
    event: u64,
}

pub fn columns(log: &Log, count: usize) -> Columns {
    Columns {
        _note: Note(log.clone(), "dropped"),
        values: (0..count as i64)
            .map(|column| [column; ROWS as usize])
            .collect(),
        event: 7,
    }
}

pub fn batch_of(columns: Columns, device_type: ArrowDeviceType) -> Result<DeviceArray, Error> {
    let arrays = columns.values.len();
    let capacity = ArrayCapacity {
        arrays,
        buffers: 1 + 2 * arrays,
    };
    let mut builder = ArrayBuilder::new(capacity, columns)?;
    builder.set(Node::ROOT, ArrayValues::of(ROWS), &[NULL]);
    let first = builder.add_children(Node::ROOT, arrays);
    for index in 0..arrays {
        let values = builder.object().values[index].as_ptr().cast();
        builder.set(first.sibling(index), ArrayValues::of(ROWS), &[NULL, values]);
    }
    if device_type == ArrowDeviceType::CPU {
        return builder.finish_on(device_type, -1);
    }
    let event = (&raw mut builder.object_mut().event).cast();
    // SAFETY: nobody waits on the event.
    unsafe { builder.finish_with_event(device_type, 1, event) }
}

pub fn batch(log: &Log, count: usize) -> DeviceArray {
    batch_of(columns(log, count), ArrowDeviceType::CUDA).unwrap()
}

fn value(buffers: &[*const c_void]) -> i64 {
    // SAFETY: a column of `Columns`.
    unsafe { *buffers[1].cast() }
}

#[test]
fn a_batch_has_what_was_set() {
    let log = Log::default();
    let batch = batch(&log, 2);
    assert_eq!((batch.length(), batch.buffers()), (ROWS, &[NULL][..]));
    assert_eq!(
        (batch.device_type(), batch.device_id()),
        (ArrowDeviceType::CUDA, 1)
    );
    // SAFETY: the event of `Columns`.
    assert_eq!(unsafe { *batch.sync_event().cast::<u64>() }, 7);
    let [Some(first), Some(second)] = batch.children() else {
        panic!("{batch:?}");
    };
    assert_eq!((value(first.buffers()), value(second.buffers())), (0, 1));
    assert_eq!(
        (second.length(), second.null_count(), second.offset()),
        (ROWS, 0, 0)
    );
    log.expect(&[]);
    drop(batch);
    log.expect(&["dropped"]);
}

#[test]
fn child_500_outlives_its_parent() {
    let log = Log::default();
    let mut batch = batch(&log, 1000);
    let child = batch.take_child(500).unwrap();
    drop(batch);
    log.expect(&[]);
    assert_eq!(value(child.buffers()), 500);
    // SAFETY: the event of `Columns`.
    assert_eq!(unsafe { *child.sync_event().cast::<u64>() }, 7);
    drop(child);
    log.expect(&["dropped"]);
}

#[test]
fn children_are_released_on_many_threads() {
    let log = Log::default();
    let mut batch = batch(&log, 16);
    let children: Vec<_> = (0..16)
        .step_by(2)
        .map(|index| batch.take_child(index).unwrap())
        .collect();
    std::thread::scope(|scope| {
        for (index, child) in children.into_iter().enumerate() {
            scope.spawn(move || assert_eq!(value(child.buffers()), 2 * index as i64));
        }
        drop(batch);
    });
    log.expect(&["dropped"]);
}

/// A list of dictionary-encoded values.
fn nested(log: &Log) -> Array {
    let capacity = ArrayCapacity {
        arrays: 3,
        buffers: 8,
    };
    let object = (Note(log.clone(), "dropped"), Box::new(7_i64));
    let mut builder = ArrayBuilder::new(capacity, object).unwrap();
    let values = ptr::from_ref(&*builder.object().1).cast();
    builder.set(Node::ROOT, ArrayValues::of(1), &[NULL]);
    let lists = builder.add_children(Node::ROOT, 1);
    builder.set(lists, ArrayValues::of(1), &[NULL, values]);
    let items = builder.add_children(lists, 1);
    let of_items = ArrayValues {
        length: 1,
        null_count: -1,
        offset: 2,
    };
    builder.set(items, of_items, &[values, values]);
    let dictionary = builder.add_dictionary(items);
    builder.set(dictionary, ArrayValues::of(1), &[NULL, values, values]);
    builder.finish().unwrap()
}

#[test]
fn nested_with_a_dictionary() {
    let log = Log::default();
    let mut array = nested(&log);
    let mut lists = array.take_child(0).unwrap();
    drop(array);
    let mut items = lists.take_child(0).unwrap();
    drop(lists);
    assert_eq!((items.null_count(), items.offset()), (-1, 2));
    let dictionary = items.take_dictionary().unwrap();
    drop(items);
    assert_eq!(
        (value(dictionary.buffers()), dictionary.buffers().len()),
        (7, 3)
    );
    log.expect(&[]);
    drop(dictionary);
    log.expect(&["dropped"]);
    drop(nested(&log));
    log.expect(&["dropped", "dropped"]);
}

/// A consumer may put a hook of its own into a child and leave the child where it is.
#[test]
fn a_hook_in_a_child_that_stays_is_run() {
    type Saved = (
        Option<unsafe extern "C" fn(*mut ArrowArray)>,
        *mut c_void,
        Log,
    );
    unsafe extern "C" fn hook(this: *mut ArrowArray) {
        // SAFETY: the test put it there.
        unsafe {
            let saved = Box::from_raw((*this).private_data.cast::<Saved>());
            ((*this).release, (*this).private_data) = (saved.0, saved.1);
            saved.2.push("hook");
            (*this).release.unwrap()(this);
        }
    }
    let log = Log::default();
    let batch = batch(&log, 3);
    let child = child_of(&batch, 1);
    // SAFETY: the child is used by nobody else.
    unsafe {
        let saved: Saved = ((*child).release, (*child).private_data, log.clone());
        (*child).private_data = Box::into_raw(Box::new(saved)).cast();
        (*child).release = Some(hook);
    }
    drop(batch);
    log.expect(&["hook", "dropped"]);
}

/// The private data of a child stays, and only the callback is another.
#[test]
fn a_callback_in_a_child_that_stays_is_called() {
    thread_local! {
        static SAVED: std::cell::Cell<Option<unsafe extern "C" fn(*mut ArrowArray)>> =
            const { std::cell::Cell::new(None) };
    }
    unsafe extern "C" fn hook(this: *mut ArrowArray) {
        let release = SAVED.take().expect("called once");
        // SAFETY: the test put it there.
        unsafe {
            (*this).release = Some(release);
            release(this);
        }
    }
    let log = Log::default();
    let batch = batch(&log, 2);
    // SAFETY: the child is used by nobody else.
    SAVED.set(unsafe { (*child_of(&batch, 0)).release.replace(hook) });
    drop(batch);
    assert!(SAVED.take().is_none());
    log.expect(&["dropped"]);
}

/// A child of another array of ours has a share of that one.
#[test]
fn a_child_that_was_replaced_by_one_of_ours() {
    let (log, other) = (Log::default(), Log::default());
    let parent = batch(&log, 2);
    let mut donor = batch(&other, 3);
    let child = donor.take_child(1).unwrap();
    crate::foreign::replace(child_of(&parent, 0), child.into_raw().array);
    drop(donor);
    other.expect(&[]);
    drop(parent);
    log.expect(&["dropped"]);
    other.expect(&["dropped"]);
}

#[test]
fn an_object_that_panics_when_it_is_dropped_goes_no_further() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let log = Log::default();
    let object = (Bomb, Note(log.clone(), "dropped"));
    let mut builder = ArrayBuilder::new(ArrayCapacity::default(), object).unwrap();
    builder.set(Node::ROOT, NONE, &[]);
    drop(builder.finish().unwrap());
    log.expect(&["dropped"]);
}

/// A consumer must not, but the memory of another party is not ours to trust.
#[test]
#[cfg_attr(miri, ignore = "it leaks on purpose")]
fn a_count_of_children_that_a_consumer_has_changed() {
    let log = Log::default();
    let mut raw = batch(&log, 2).into_raw();
    raw.array.n_children = -1;
    // SAFETY: a count that the release refuses.
    drop(unsafe { DeviceArray::from_raw(raw) });
    // The children hold shares: the columns leak, and nothing is read beyond the list.
    log.expect(&[]);
}

#[test]
fn a_builder_that_is_dropped_drops_its_object() {
    let log = Log::default();
    let capacity = ArrayCapacity {
        arrays: 1,
        buffers: 1,
    };
    let mut builder = ArrayBuilder::new(capacity, columns(&log, 0)).unwrap();
    builder.set(Node::ROOT, ArrayValues::of(1), &[NULL]);
    let moved = builder;
    log.expect(&[]);
    drop(moved);
    log.expect(&["dropped"]);
}

// --- What is refused ----------------------------------------------------------------------------

/// What `requests` makes a builder say that has room for two arrays and three buffers, and whose
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
        _ => refused(builder.finish(), &format!("array builder: {message}")),
    }
}

const NONE: ArrayValues = ArrayValues::of(0);

#[test]
fn more_than_the_capacity_is_refused() {
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
fn children_that_were_refused_can_be_set() {
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
fn a_child_that_does_not_exist_is_refused() {
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
fn requests_in_the_wrong_order_are_refused() {
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
    refused(builder.finish(), &format!("array builder: {not_set}"));
}

#[test]
fn the_first_error_counts_and_nothing_happens_after_it() {
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
fn impossible_capacities_are_errors() {
    let log = Log::default();
    let refused = |arrays, buffers| {
        let builder = ArrayBuilder::new(
            ArrayCapacity { arrays, buffers },
            Note(log.clone(), "dropped"),
        );
        let error = builder.err().unwrap();
        assert_eq!(
            (error.code(), error.message()),
            (libc::ENOMEM, "array builder: no memory")
        );
    };
    refused(usize::MAX, 0);
    refused(1 << 22, 0);
    refused(0, usize::MAX);
    refused(0, usize::MAX / 8);
    // A layout that there is, of memory that there is not.
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
fn an_event_where_none_is_possible_is_refused_and_the_object_dropped() {
    let log = Log::default();
    let error = batch_of(columns(&log, 1), ArrowDeviceType::CPU)
        .unwrap()
        .into_raw();
    // SAFETY: the array is ours.
    drop(unsafe { DeviceArray::from_raw(error) });
    log.expect(&["dropped"]);
    let mut builder = ArrayBuilder::new(ArrayCapacity::default(), columns(&log, 0)).unwrap();
    builder.set(Node::ROOT, NONE, &[]);
    let event = (&raw mut builder.object_mut().event).cast();
    refused(
        // SAFETY: nobody waits on the event.
        unsafe { builder.finish_with_event(ArrowDeviceType::CPU, -1, event) },
        "array builder: sync_event not NULL: expected NULL, because the device type has no event",
    );
    log.expect(&["dropped", "dropped"]);
}

// --- From a list of numbers ---------------------------------------------------------------------

#[test]
fn values_of_any_owner() {
    fn check<T: fletching::Primitive + PartialEq + std::fmt::Debug>(array: Array, values: &[T]) {
        assert_eq!(
            (array.length(), array.null_count()),
            (values.len() as i64, 0)
        );
        let [bitmap, first] = array.buffers() else {
            panic!("{array:?}");
        };
        assert!(bitmap.is_null());
        // SAFETY: the values of the owner.
        let read = unsafe { std::slice::from_raw_parts(first.cast::<T>(), values.len()) };
        assert_eq!(read, values);
    }
    check(Array::from(vec![1_i32, 2]), &[1, 2]);
    check(Array::from(vec![1.5_f64].into_boxed_slice()), &[1.5]);
    check(Array::from_values::<u64>(Arc::<[u64]>::from([9])), &[9_u64]);
    check(Array::from(Vec::<i8>::new()), &[] as &[i8]);
    #[cfg(feature = "bytes")]
    check(Array::from(bytes::Bytes::from_static(b"ab")), b"ab");
    /// A list inside its owner moves with it: its address is that where it stays.
    struct Inside(Note, [u16; 2]);
    impl AsRef<[u16]> for Inside {
        fn as_ref(&self) -> &[u16] {
            &self.1
        }
    }
    let log = Log::default();
    let inside = Inside(Note(log.clone(), "dropped"), [3, 4]);
    assert_eq!(inside.0 .1, "dropped");
    check(Array::from_values::<u16>(inside), &[3_u16, 4]);
    log.expect(&["dropped"]);
}

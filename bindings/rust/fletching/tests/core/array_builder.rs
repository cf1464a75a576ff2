// SPDX-License-Identifier: Apache-2.0

//! Built arrays: children that outlive their parent, and rejected calls.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use fletching::abi::ArrowArray;
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Error, Node,
};

use crate::foreign::{child_of, Log, Note};

const ROWS: i64 = 3;
pub const NULL: *const c_void = ptr::null();
pub const NONE: ArrayValues = ArrayValues::of(0);

/// The columns of a batch, and an event.
pub struct Columns {
    _note: Note,
    values: Vec<[i64; ROWS as usize]>,
    pub event: u64,
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
    // SAFETY: no code waits on the event.
    unsafe { builder.finish_with_event(device_type, 1, event) }
}

/// Makes a batch without an event, so that the release of a parent is not deferred.
pub fn cpu_batch(log: &Log, count: usize) -> DeviceArray {
    batch_of(columns(log, count), ArrowDeviceType::CPU).unwrap()
}

pub fn batch(log: &Log, count: usize) -> DeviceArray {
    batch_of(columns(log, count), ArrowDeviceType::CUDA).unwrap()
}

fn value(buffers: &[*const c_void]) -> i64 {
    // SAFETY: the buffer is a column of `Columns`.
    unsafe { *buffers[1].cast() }
}

#[test]
fn build_batch_returns_set_values() {
    let log = Log::default();
    let batch = batch(&log, 2);
    assert_eq!((batch.length(), batch.buffers()), (ROWS, &[NULL][..]));
    assert_eq!(
        (batch.device_type(), batch.device_id()),
        (ArrowDeviceType::CUDA, 1)
    );
    // SAFETY: the event belongs to `Columns`.
    assert_eq!(unsafe { *batch.sync_event().cast::<u64>() }, 7);
    let [Some(first), Some(second)] = batch.children() else {
        panic!("{batch:?}");
    };
    assert_eq!((value(first.buffers()), value(second.buffers())), (0, 1));
    assert_eq!(
        (second.length(), second.null_count(), second.offset()),
        (ROWS, 0, 0)
    );
    let raw = second.as_raw();
    assert!(raw.children.is_null() && raw.dictionary.is_null());
    assert_eq!(batch.as_raw().reserved, [0; 3]);
    log.expect(&[]);
    drop(batch);
    log.expect(&["dropped"]);
}

#[test]
fn child_500_outlives_parent() {
    let log = Log::default();
    let mut batch = batch(&log, 1000);
    let child = batch.take_child(500).unwrap();
    drop(batch);
    log.expect(&[]);
    assert_eq!(value(child.buffers()), 500);
    // SAFETY: the event belongs to `Columns`.
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
fn nested_dictionary_outlives_parents() {
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

/// A consumer may hook a child and leave the child in place.
#[test]
fn child_release_hook_with_private_data_is_called() {
    type Saved = (
        Option<unsafe extern "C" fn(*mut ArrowArray)>,
        *mut c_void,
        Log,
    );
    unsafe extern "C" fn hook(this: *mut ArrowArray) {
        // SAFETY: the test stored it there.
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
    // SAFETY: the child is not in use elsewhere.
    unsafe {
        let saved: Saved = ((*child).release, (*child).private_data, log.clone());
        (*child).private_data = Box::into_raw(Box::new(saved)).cast();
        (*child).release = Some(hook);
    }
    drop(batch);
    log.expect(&["hook", "dropped"]);
}

/// Only the callback is replaced, not the private data.
#[test]
fn child_release_hook_without_private_data_is_called() {
    thread_local! {
        static SAVED: std::cell::Cell<Option<unsafe extern "C" fn(*mut ArrowArray)>> =
            const { std::cell::Cell::new(None) };
    }
    unsafe extern "C" fn hook(this: *mut ArrowArray) {
        let release = SAVED.take().expect("called once");
        // SAFETY: the test stored it there.
        unsafe {
            (*this).release = Some(release);
            release(this);
        }
    }
    let log = Log::default();
    let batch = batch(&log, 2);
    // SAFETY: the child is not in use elsewhere.
    SAVED.set(unsafe { (*child_of(&batch, 0)).release.replace(hook) });
    drop(batch);
    assert!(SAVED.take().is_none());
    log.expect(&["dropped"]);
}

/// A child of another array of this crate holds a reference to that array.
#[test]
fn child_replaced_with_built_child_is_released() {
    let (log, other) = (Log::default(), Log::default());
    let parent = cpu_batch(&log, 2);
    let mut donor = cpu_batch(&other, 3);
    let child = donor.take_child(1).unwrap();
    crate::foreign::replace(child_of(&parent, 0), child.into_raw().array);
    drop(donor);
    other.expect(&[]);
    drop(parent);
    log.expect(&["dropped"]);
    other.expect(&["dropped"]);
}

#[test]
fn panic_in_object_drop_is_caught() {
    struct PanicOnDrop;
    impl Drop for PanicOnDrop {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let log = Log::default();
    let object = (PanicOnDrop, Note(log.clone(), "dropped"));
    let mut builder = ArrayBuilder::new(ArrayCapacity::default(), object).unwrap();
    builder.set(Node::ROOT, NONE, &[]);
    drop(builder.finish().unwrap());
    log.expect(&["dropped"]);
}

/// A consumer must not do this, but memory of another party cannot be trusted.
#[test]
#[cfg_attr(miri, ignore = "it leaks on purpose")]
fn changed_child_count_leaks_children() {
    let log = Log::default();
    let mut raw = batch(&log, 2).into_raw();
    raw.array.n_children = -1;
    // SAFETY: the release rejects this count.
    drop(unsafe { DeviceArray::from_raw(raw) });
    // The children keep their references, so the columns leak, but no memory beyond the list is
    // read.
    log.expect(&[]);
}

#[test]
fn dropped_builder_drops_object() {
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

// --- From a list of numbers ---------------------------------------------------------------------

#[test]
fn from_values_accepts_any_owner() {
    fn check<T: fletching::Primitive + PartialEq + std::fmt::Debug>(array: Array, values: &[T]) {
        assert_eq!(
            (array.length(), array.null_count()),
            (values.len() as i64, 0)
        );
        let [bitmap, first] = array.buffers() else {
            panic!("{array:?}");
        };
        assert!(bitmap.is_null());
        // SAFETY: the values belong to the owner.
        let read = unsafe { std::slice::from_raw_parts(first.cast::<T>(), values.len()) };
        assert_eq!(read, values);
    }
    check(Array::from(vec![1_i32, 2]), &[1, 2]);
    check(Array::from(vec![1.5_f64].into_boxed_slice()), &[1.5]);
    check(Array::from_values::<u64>(Arc::<[u64]>::from([9])), &[9_u64]);
    check(Array::from(Vec::<i8>::new()), &[] as &[i8]);
    #[cfg(feature = "bytes")]
    check(Array::from(bytes::Bytes::from_static(b"ab")), b"ab");
    /// A list inside its owner moves with the owner, so the address must be taken after the move.
    struct NotedValues(Note, [u16; 2]);
    impl AsRef<[u16]> for NotedValues {
        fn as_ref(&self) -> &[u16] {
            &self.1
        }
    }
    let log = Log::default();
    let inside = NotedValues(Note(log.clone(), "dropped"), [3, 4]);
    assert_eq!(inside.0 .1, "dropped");
    check(Array::from_values::<u16>(inside), &[3_u16, 4]);
    log.expect(&["dropped"]);
}

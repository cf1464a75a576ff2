// SPDX-License-Identifier: Apache-2.0

//! Nested owners, deeper than any stack. Their drop must not be recursive.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use fletching::abi::ArrowArray;
use fletching::{Array, ArrayBuilder, ArrayCapacity, ArrayValues, Node, Schema, SchemaBuilder};

const LEVELS: usize = if cfg!(miri) { 40 } else { 131_072 };
/// Enough for a few dozen levels in an unoptimized build.
const STACK: usize = 256 * 1024;

/// Nests `first` LEVELS times and drops the result, on a small stack.
fn nested<T: Send + 'static>(first: impl FnOnce() -> T + Send + 'static, nest: fn(T) -> T) {
    let body = move || drop((0..LEVELS).fold(first(), |inner, _| nest(inner)));
    let thread = std::thread::Builder::new().stack_size(STACK);
    thread.spawn(body).unwrap().join().unwrap();
}

fn array() -> Array {
    vec![1i32].into()
}

fn over<T: Send + 'static>(object: T) -> Array {
    let capacity = ArrayCapacity::default();
    let mut builder = ArrayBuilder::new(capacity, object).unwrap();
    builder.set(Node::ROOT, ArrayValues::of(1), &[]);
    builder.finish().unwrap()
}

#[test]
fn attached_arrays() {
    nested(array, |inner| {
        let mut outer = array();
        outer.attach(inner).unwrap();
        outer
    });
}

#[test]
fn attached_shares() {
    nested(array, |inner| {
        let mut outer = array();
        outer.attach(inner.share().unwrap()).unwrap();
        outer.attach(()).unwrap();
        outer
    });
}

#[test]
fn attached_schemas() {
    fn schema() -> Schema {
        SchemaBuilder::new("i").build().unwrap()
    }
    nested(schema, |inner| {
        let mut outer = schema();
        outer.attach(inner).unwrap();
        outer
    });
}

#[test]
fn views_with_attachments() {
    nested(array, |mut inner| {
        inner.attach(()).unwrap();
        inner.share().unwrap().view().unwrap()
    });
}

#[test]
fn arrays_over_arrays() {
    nested(array, over);
}

#[test]
fn arrays_over_shares() {
    nested(array, |inner| over(inner.share().unwrap()));
}

#[test]
fn arrays_attached_to_columns() {
    nested(array, |inner| {
        let mut column = array();
        column.attach(inner).unwrap();
        Array::from_columns([column, array()]).unwrap()
    });
}

/// Adds its number to a list when it is dropped.
struct Listed(Arc<Mutex<Vec<usize>>>, usize);

impl Drop for Listed {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(self.1);
    }
}

#[test]
fn nested_objects_are_dropped_inside_out() {
    let list = Arc::new(Mutex::new(Vec::new()));
    let number = AtomicUsize::new(0);
    let listed = || Listed(Arc::clone(&list), number.fetch_add(1, Ordering::SeqCst));
    let mut array = over(listed());
    for _ in 0..3 {
        array.attach(listed()).unwrap();
        let mut column = over(listed());
        column.attach(array).unwrap();
        column.attach(listed()).unwrap();
        let mut outer = over(Array::from_columns([column]).unwrap());
        outer.attach(listed()).unwrap();
        array = outer.share().unwrap().view().unwrap();
    }
    drop(array);
    // An object is dropped before its attachments, which are dropped in the order of attachment.
    let expected = [10, 6, 2, 0, 1, 3, 4, 5, 7, 8, 9, 11, 12];
    assert_eq!(*list.lock().unwrap(), expected);
}

#[test]
fn parent_object_is_dropped_after_child_contents() {
    let list = Arc::new(Mutex::new(Vec::new()));
    let listed = |number| Listed(Arc::clone(&list), number);
    let capacity = ArrayCapacity {
        arrays: 1,
        buffers: 0,
    };
    let mut builder = ArrayBuilder::new(capacity, listed(1)).unwrap();
    builder.set(Node::ROOT, ArrayValues::of(1), &[]);
    let child = builder.add_children(Node::ROOT, 1);
    builder.set_array(child, over(over(listed(0))));
    drop(over(builder.finish().unwrap()));
    assert_eq!(*list.lock().unwrap(), [0, 1]);
}

#[test]
fn release_inside_foreign_callback_completes_before_return() {
    static RELEASE: Mutex<Option<unsafe extern "C" fn(*mut ArrowArray)>> = Mutex::new(None);
    static ENDED: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    unsafe extern "C" fn release(array: *mut ArrowArray) {
        let release = RELEASE.lock().unwrap().take().unwrap();
        // SAFETY: this is the array's original callback, with its private_data.
        unsafe { release(array) };
        ENDED.lock().unwrap().push(usize::MAX);
    }
    struct Inner;
    impl Drop for Inner {
        fn drop(&mut self) {
            ENDED.lock().unwrap().push(0);
        }
    }
    let mut raw = over(over(Inner)).into_raw();
    *RELEASE.lock().unwrap() = raw.release.replace(release);
    // SAFETY: the callback forwards the release.
    let foreign = unsafe { Array::from_raw(raw) };
    drop(over(over(foreign)));
    assert_eq!(*ENDED.lock().unwrap(), [0, usize::MAX]);
}

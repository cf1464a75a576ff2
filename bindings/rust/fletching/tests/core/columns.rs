// SPDX-License-Identifier: Apache-2.0

//! Arrays of Rust values, batches of arrays, and buffers as slices.

use std::ptr;

use fletching::{Array, ArrayBuilder, ArrayCapacity, ArrayValues, DeviceArray, Node};

use crate::foreign::{refused, Log, Note};

fn bits(bits: fletching::Bits<'_>) -> Vec<bool> {
    bits.iter().collect()
}

/// Returns the validity of an array that the test built.
fn validity(array: &Array) -> Option<Vec<bool>> {
    // SAFETY: buffer 0 of each array in this file is a bitmap or NULL.
    unsafe { array.validity() }.unwrap().map(bits)
}

/// Returns the values of an array that the test built of type `T`.
fn values<T: fletching::Primitive>(array: &Array) -> &[T] {
    // SAFETY: the caller passes the type.
    unsafe { array.values() }.unwrap()
}

#[test]
fn from_options_accepts_nulls() {
    let array = Array::from_options((0..11i32).map(|value| (value != 9).then_some(value)));
    assert_eq!((array.length(), array.null_count()), (11, 1));
    assert_eq!(values::<i32>(&array), [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 10]);
    let expected: Vec<bool> = (0..11).map(|value| value != 9).collect();
    assert_eq!(validity(&array), Some(expected));
    let full = Array::from_options([Some(-7i128)]);
    assert_eq!((full.null_count(), values::<i128>(&full)), (0, &[-7][..]));
    assert!(full.buffers()[0].is_null() && validity(&full).is_none());
    let none = Array::from_options::<f64>([]);
    assert_eq!((none.length(), values::<f64>(&none).len()), (0, 0));
}

#[test]
fn from_bools_accepts_nulls() {
    let array = Array::from_bools([Some(true), None, Some(false), Some(true)]);
    assert_eq!(
        (array.length(), array.null_count(), array.buffers().len()),
        (4, 1, 2)
    );
    // SAFETY: the values are booleans.
    let found = unsafe { array.bools() }.unwrap();
    assert_eq!((found.len(), found.is_empty()), (4, false));
    assert_eq!(bits(found), [true, false, false, true]);
    assert_eq!((found.get(3), found.get(4)), (Some(true), None));
    assert_eq!(validity(&array), Some(vec![true, false, true, true]));
}

#[test]
fn from_strings_accepts_nulls() {
    let array = Array::from_strings([Some("ab"), None, Some(""), Some("ü")]).unwrap();
    assert_eq!((array.length(), array.null_count()), (4, 1));
    // SAFETY: the offsets have 32 bits, there is one more than strings, and the last is the number
    // of bytes.
    unsafe {
        assert_eq!(array.buffer::<i32>(1, 5).unwrap(), [0, 2, 2, 2, 4]);
        assert_eq!(array.buffer::<u8>(2, 4).unwrap(), "abü".as_bytes());
    }
    assert_eq!(validity(&array), Some(vec![true, false, true, true]));
    let owned = Array::from_strings([String::from("x")].map(Some)).unwrap();
    assert_eq!(owned.null_count(), 0);
}

/// The crate never writes NULL for the offsets of an array without rows.
#[test]
fn empty_strings_and_lists_have_one_zero_offset() {
    let texts = Array::from_strings::<&str>([]).unwrap();
    let lists = Array::from_lists([], Array::from(Vec::<i32>::new())).unwrap();
    for array in [&texts, &lists] {
        assert_eq!(array.length(), 0);
        // SAFETY: the offsets have 32 bits.
        assert_eq!(unsafe { array.buffer::<i32>(1, 1) }.unwrap(), [0]);
    }
}

#[test]
fn from_lists_owns_values() {
    let log = Log::default();
    let mut items = Array::from(vec![1i64, 2, 3]);
    items.attach(Note(log.clone(), "items")).unwrap();
    let mut array = Array::from_lists([Some(2), None, Some(0), Some(1)], items).unwrap();
    assert_eq!((array.length(), array.null_count()), (4, 1));
    // SAFETY: the offsets have 32 bits.
    let offsets = unsafe { array.buffer::<i32>(1, 5) }.unwrap();
    assert_eq!(offsets, [0, 2, 2, 2, 3]);
    assert_eq!(validity(&array), Some(vec![true, false, true, true]));
    let child = array.take_child(0).unwrap();
    drop(array);
    assert_eq!(values::<i64>(&child), [1, 2, 3]);
    log.expect(&[]);
    drop(child);
    log.expect(&["items"]);
}

#[test]
fn from_lists_rejects_mismatched_values() {
    let items = || Array::from(vec![1i32, 2]);
    let text = "from_lists: values: expected a live array of length 1, got length 2";
    refused(Array::from_lists([Some(1)], items()), text);
    let text = "from_lists: values: expected a live array of length 0, got length 0";
    refused(Array::from_lists([], Array::default()), text);
    let text = "from_lists: too large for offsets of 32 bits: expected at most 2147483647 in all";
    refused(Array::from_lists([Some(1 << 31)], items()), text);
    let most = (1 << 31) - 1;
    refused(Array::from_lists([Some(most), Some(1)], items()), text);
}

#[test]
fn from_columns_builds_batch() {
    let log = Log::default();
    let mut first = Array::from(vec![1i32, 2]);
    first.attach(Note(log.clone(), "first")).unwrap();
    let list = Array::from_lists([Some(1), Some(0)], Array::from(vec![5u8])).unwrap();
    let mut second = Array::from_columns([list, Array::from(vec![0.5f64, 1.5])]).unwrap();
    second.attach(Note(log.clone(), "second")).unwrap();
    let mut batch = DeviceArray::from(Array::from_columns([first, second]).unwrap());
    assert_eq!(
        (batch.length(), batch.null_count(), batch.buffers()),
        (2, 0, &[ptr::null()][..])
    );
    assert_eq!(values::<i32>(batch.children()[0].unwrap()), [1, 2]);
    let taken = batch.take_child(0).unwrap();
    assert_eq!(batch.children()[1].unwrap().children().len(), 2);
    let view = batch.share().unwrap().column(1).unwrap();
    log.expect(&[]);
    drop(view);
    log.expect(&["second"]);
    assert_eq!(values::<i32>(taken.as_array()), [1, 2]);
    drop(taken);
    log.expect(&["second", "first"]);
    assert_eq!(Array::from_columns([]).unwrap().length(), 0);
}

#[test]
fn from_columns_rejects_and_releases_mismatched_columns() {
    let log = Log::default();
    let column = |length, name| {
        let mut column = Array::from(vec![0u8; length]);
        column.attach(Note(log.clone(), name)).unwrap();
        column
    };
    let text = "from_columns: column 1: expected a live array of length 2, got length 3";
    refused(Array::from_columns([column(2, "a"), column(3, "b")]), text);
    log.expect(&["a", "b"]);
    let text = "from_columns: column 0: expected a live array of length 0, got length 0";
    refused(Array::from_columns([Array::default()]), text);
}

/// Makes a builder with room for two arrays below the root.
fn builder(log: &Log) -> ArrayBuilder<Note> {
    let capacity = ArrayCapacity {
        arrays: 2,
        buffers: 2,
    };
    let mut builder = ArrayBuilder::new(capacity, Note(log.clone(), "builder")).unwrap();
    builder.set(Node::ROOT, ArrayValues::of(0), &[]);
    builder
}

#[test]
fn set_array_rejects_invalid_moves() {
    let log = Log::default();
    let noted = || {
        let mut array = Array::from(vec![1i32]);
        array.attach(Note(log.clone(), "array")).unwrap();
        array
    };
    let refuses = |request: &dyn Fn(&mut ArrayBuilder<Note>), text: &str, lines: &[&str]| {
        let before = log.lines().len();
        let mut builder = builder(&log);
        request(&mut builder);
        refused(builder.finish(), &format!("ArrayBuilder: {text}"));
        assert_eq!(log.lines()[before..], *lines, "{text}");
    };
    refuses(
        &|builder| {
            builder.set_array(Node::ROOT, noted());
        },
        "root set to an array: expected a child or a dictionary",
        &["array", "builder"],
    );
    refuses(
        &|builder| {
            let child = builder.add_children(Node::ROOT, 1);
            builder.set_array(child, Array::default());
        },
        "child or dictionary set to a released array: expected a live one",
        &["builder"],
    );
    refuses(
        &|builder| {
            let child = builder.add_children(Node::ROOT, 1);
            builder.set_array(child, noted()).set_array(child, noted());
        },
        "array set twice: expected one call for each added array",
        &["array", "array", "builder"],
    );
    refuses(
        &|builder| {
            builder.set_array(Node::ROOT.sibling(1), noted());
        },
        "no such child or dictionary: expected one that was added",
        &["array", "builder"],
    );
    refuses(
        &|builder| {
            let child = builder.add_children(Node::ROOT, 1);
            builder.set_array(child, noted()).add_children(child, 1);
        },
        "children or dictionary added to a moved array: expected one that was set",
        &["array", "builder"],
    );
    refuses(
        &|builder| {
            let first = builder.add_children(Node::ROOT, 2);
            builder.set_array(first.sibling(1), noted());
        },
        "array added and not set: expected every array to be set",
        &["array", "builder"],
    );
}

#[test]
fn moved_array_levels_count_toward_limit() {
    let deeper = |array: Array| {
        let mut builder = builder(&Log::default());
        let child = builder.add_children(Node::ROOT, 1);
        builder.set_array(child, array);
        builder.finish()
    };
    let mut array = Array::from(vec![0u8]);
    for _ in 1..256 {
        array = deeper(array).unwrap();
    }
    let text = "ArrayBuilder: the struct or a descendant is nested too deep: expected at most 256 \
                levels";
    refused(deeper(array), text);
}

#[test]
fn buffer_accessors_reject_malformed_arrays() {
    let array = Array::from(vec![1i32, 2]);
    let text = Array::from_strings([Some("a")]).unwrap();
    // SAFETY: a rejected buffer is not read.
    unsafe {
        refused(
            array.buffer::<i32>(2, 1),
            "buffer 2: no such buffer: expected an index below 2",
        );
        refused(
            array.buffer::<i32>(0, 1),
            "buffer 0: NULL: expected 1 values",
        );
        assert!(array.buffer::<i32>(0, 0).unwrap().is_empty());
        let most = usize::MAX / 4;
        let message = "buffer 1: too large";
        let error = array.buffer::<i32>(1, most).unwrap_err();
        assert!(error.message().starts_with(message), "{error}");
        refused(text.values::<i32>(), "values: n_buffers: expected 2, got 3");
        let none = Array::default();
        refused(
            none.values::<i32>(),
            "values: n_buffers: expected at least 2, got 0",
        );
        refused(
            none.validity(),
            "validity: n_buffers: expected at least 1, got 0",
        );
        let odd = Array::from(vec![0u64; 8]); // aligned, so the next byte is not
        let first = odd.buffers()[1].wrapping_byte_add(1);
        let capacity = ArrayCapacity {
            arrays: 0,
            buffers: 2,
        };
        let mut builder = ArrayBuilder::new(capacity, odd).unwrap();
        builder.set(Node::ROOT, ArrayValues::of(2), &[ptr::null(), first]);
        let odd = builder.finish().unwrap();
        let error = [odd.values::<u64>(), odd.buffer(1, 2)].map(Result::unwrap_err);
        assert_eq!(error.map(|error| error.code()), [libc::EINVAL; 2]);
        let mut raw = odd.into_raw();
        raw.length = -1;
        let negative = Array::from_raw(raw);
        refused(
            negative.values::<u8>(),
            "values: length: expected 0 or more, got -1",
        );
    }
}

#[test]
fn values_and_validity_start_at_offset() {
    let numbers = vec![1u16, 2, 3, 4];
    let capacity = ArrayCapacity {
        arrays: 0,
        buffers: 2,
    };
    let mut builder = ArrayBuilder::new(capacity, (numbers, [0b1011_u8])).unwrap();
    let (numbers, bitmap) = builder.object();
    let buffers = [bitmap.as_ptr().cast(), numbers.as_ptr().cast()];
    let shape = ArrayValues {
        length: 2,
        null_count: 1,
        offset: 2,
    };
    builder.set(Node::ROOT, shape, &buffers);
    let array = builder.finish().unwrap();
    assert_eq!(values::<u16>(&array), [3, 4]);
    assert_eq!(validity(&array), Some(vec![false, true]));
}

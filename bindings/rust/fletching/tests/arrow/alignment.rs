// SPDX-License-Identifier: Apache-2.0

//! Buffers at addresses that the interface allows but arrow-rs does not.

use std::ptr;

use crate::arrow::{from_array, to_array, Alignment, Arrays, Converted, ToArrow};
use arrow_array::{Array as _, Decimal128Array, StringArray, StringViewArray, StructArray};
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArrayStream, Error,
    Node, Schema, SchemaBuilder,
};
use libc::{EINVAL, EIO};

const DECIMAL: &str = "d:20,2";

/// Copies the bytes to `shift` bytes after a multiple of 16.
fn shifted(bytes: &[u8], shift: usize) -> (Vec<u128>, *const std::ffi::c_void) {
    let mut memory = vec![0u128; (bytes.len() + shift).div_ceil(16)];
    let first = memory.as_mut_ptr().cast::<u8>();
    // SAFETY: there is room for the bytes.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), first.add(shift), bytes.len()) };
    let at = first.wrapping_add(shift);
    (memory, at.cast_const().cast())
}

fn decimals(shift: usize) -> (Vec<u128>, *const std::ffi::c_void) {
    let bytes: Vec<u8> = [1i128, -2, 3]
        .iter()
        .flat_map(|value| value.to_ne_bytes())
        .collect();
    shifted(&bytes, shift)
}

/// Makes an array of three decimals, or of the last two.
fn array(shift: usize, length: i64) -> (Schema, Array) {
    let (memory, values) = decimals(shift);
    let capacity = ArrayCapacity {
        arrays: 0,
        buffers: 2,
    };
    let mut builder = ArrayBuilder::new(capacity, memory).unwrap();
    let all = ArrayValues {
        offset: 3 - length,
        ..ArrayValues::of(length)
    };
    builder.set(Node::ROOT, all, &[ptr::null(), values]);
    let schema = SchemaBuilder::new(DECIMAL).build().unwrap();
    (schema, builder.finish().unwrap())
}

fn converted((schema, array): (Schema, Array), alignment: Alignment) -> Result<Converted, Error> {
    let options = ToArrow::default().alignment(alignment).validate(true);
    // SAFETY: the buffers match the builder's arguments.
    unsafe { to_array(&schema, array, options) }
}

fn expected() -> Decimal128Array {
    let values = Decimal128Array::from(vec![1, -2, 3]);
    values.with_precision_and_scale(20, 2).unwrap()
}

#[test]
fn aligned_buffers_are_shared() {
    for alignment in [Alignment::Refuse, Alignment::Copy, Alignment::Accept] {
        let there = converted(array(0, 3), alignment).unwrap();
        assert_eq!(&*there.array, &expected() as &dyn arrow_array::Array);
        assert!(there.copied.is_empty());
    }
}

#[test]
fn copied_buffers_lists_copies_of_last_array() {
    let (schema, _) = array(0, 3);
    let items = [8, 0].map(|shift| Ok(array(shift, 3).1.into()));
    let stream = DeviceArrayStream::from_batches(schema, ArrowDeviceType::CPU, items).unwrap();
    let options = ToArrow::default().alignment(Alignment::Copy).validate(true);
    // SAFETY: the buffers match the builder's arguments.
    let mut back = unsafe { Arrays::new(stream.into_iter(), options) }.unwrap();
    for copies in [1, 0] {
        let next = back.next().unwrap().unwrap();
        assert_eq!(&*next, &expected() as &dyn arrow_array::Array);
        assert_eq!(back.copied_buffers().len(), copies);
    }
}

#[test]
fn refuse_rejects_misaligned_buffers_by_name() {
    let error = converted(array(8, 3), Alignment::Refuse).unwrap_err();
    assert_eq!(error.code(), EINVAL);
    let text = error.message();
    assert!(
        text.contains("ArrowArray.buffers[1]: not aligned"),
        "{text}"
    );
    assert!(
        text.contains("Decimal128(20, 2)") && text.contains("Alignment::Copy"),
        "{text}"
    );
    let empty = converted(array(8, 0), Alignment::Refuse);
    // The array is empty, but its offset is 3: arrow-rs needs the values before the offset, so
    // alignment matters.
    assert_eq!(empty.unwrap_err().code(), EINVAL);
}

#[test]
fn copy_copies_misaligned_buffers() {
    for shift in [1, 4, 8, 15] {
        for length in [2, 3] {
            let there = converted(array(shift, length), Alignment::Copy).unwrap();
            let rest = expected().slice(3 - length as usize, length as usize);
            assert_eq!(&*there.array, &rest as &dyn arrow_array::Array);
            assert_eq!(there.copied.len(), 1);
            assert!(there.copied[0].contains("buffers[1]"));
        }
    }
}

// arrow-rs copies or panics, depending on its version.
#[test]
fn accept_passes_misaligned_buffers_to_arrow_rs() {
    match converted(array(8, 3), Alignment::Accept) {
        Ok(there) => {
            assert_eq!(&*there.array, &expected() as &dyn arrow_array::Array);
            assert!(there.copied.is_empty());
        }
        Err(error) => assert_eq!(error.code(), EIO),
    }
}

#[test]
fn empty_array_accepts_any_buffer_address() {
    let capacity = ArrayCapacity {
        arrays: 0,
        buffers: 2,
    };
    let mut builder = ArrayBuilder::new(capacity, ()).unwrap();
    let nowhere = ptr::without_provenance(1);
    builder.set(Node::ROOT, ArrayValues::of(0), &[ptr::null(), nowhere]);
    let schema = SchemaBuilder::new(DECIMAL).build().unwrap();
    let there = converted((schema, builder.finish().unwrap()), Alignment::Refuse).unwrap();
    assert_eq!(there.array.len(), 0);
    assert!(there.copied.is_empty());
}

/// A table with strings whose offsets are misaligned, a list of decimals, and a dictionary of
/// decimals.
fn table(drops: impl Send + 'static) -> (Schema, Array) {
    let bytes = |values: &[i32]| -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect()
    };
    let (offsets, first_offset) = shifted(&bytes(&[0, 1, 3]), 2);
    let (lists, first_list) = shifted(&bytes(&[0, 1, 3]), 1);
    let (values, first_value) = decimals(8);
    let keys = Box::new([2i8, 0]);
    let (text, first_key) = (Box::new(*b"abc"), keys.as_ptr().cast());
    let first_byte = text.as_ptr().cast();
    let capacity = ArrayCapacity {
        arrays: 5,
        buffers: 12,
    };
    let memory = (drops, offsets, lists, values, keys, text);
    let mut builder = ArrayBuilder::new(capacity, memory).unwrap();
    let none = ptr::null();
    builder.set(Node::ROOT, ArrayValues::of(2), &[none]);
    let first = builder.add_children(Node::ROOT, 3);
    builder.set(first, ArrayValues::of(2), &[none, first_offset, first_byte]);
    builder.set(first.sibling(1), ArrayValues::of(2), &[none, first_list]);
    builder.set(first.sibling(2), ArrayValues::of(2), &[none, first_key]);
    let items = builder.add_children(first.sibling(1), 1);
    builder.set(items, ArrayValues::of(3), &[none, first_value]);
    let words = builder.add_dictionary(first.sibling(2));
    builder.set(words, ArrayValues::of(3), &[none, first_value]);
    let list = SchemaBuilder::new("+l").child(SchemaBuilder::new(DECIMAL).name("item"));
    let schema = SchemaBuilder::new("+s")
        .child(SchemaBuilder::new("u").name("text"))
        .child(list.name("list"))
        .child(
            SchemaBuilder::new("c")
                .name("words")
                .dictionary(SchemaBuilder::new(DECIMAL)),
        );
    (schema.build().unwrap(), builder.finish().unwrap())
}

struct DropFlag(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn misaligned_buffers_of_descendants_are_found() {
    let error = converted(table(()), Alignment::Refuse).unwrap_err();
    assert!(
        error
            .message()
            .contains("ArrowArray.children[0].buffers[1]"),
        "{error}"
    );
    let dropped = std::sync::Arc::default();
    let Converted { array, copied, .. } = converted(
        table(DropFlag(std::sync::Arc::clone(&dropped))),
        Alignment::Copy,
    )
    .unwrap();
    let places: Vec<_> = copied
        .iter()
        .map(|text| text.split(':').next().unwrap())
        .collect();
    let expected_places = [
        "ArrowArray.children[0].buffers[1]",
        "ArrowArray.children[1].buffers[1]",
        "ArrowArray.children[1].children[0].buffers[1]",
        "ArrowArray.children[2].dictionary.buffers[1]",
    ];
    assert_eq!(places, expected_places);
    let columns = array.as_any().downcast_ref::<StructArray>().unwrap();
    let text = StringArray::from(vec!["a", "bc"]);
    assert_eq!(&**columns.column(0), &text as &dyn arrow_array::Array);
    let list = columns
        .column(1)
        .as_any()
        .downcast_ref::<arrow_array::ListArray>()
        .unwrap();
    assert_eq!(
        &*list.value(1),
        &expected().slice(1, 2) as &dyn arrow_array::Array
    );
    let is_dropped = || dropped.load(std::sync::atomic::Ordering::SeqCst);
    assert!(!is_dropped());
    drop(array);
    assert!(is_dropped());
}

#[test]
fn view_buffer_sizes_are_aligned() {
    let views = StringViewArray::from(vec!["longer than twelve bytes", "x"]);
    let (schema, array) = from_array(&views).unwrap();
    let list = array.buffers().to_vec();
    let (sizes, first) = shifted(&24i64.to_ne_bytes(), 4);
    let capacity = ArrayCapacity {
        arrays: 0,
        buffers: 4,
    };
    let mut builder = ArrayBuilder::new(capacity, (array, sizes)).unwrap();
    builder.set(
        Node::ROOT,
        ArrayValues::of(2),
        &[list[0], list[1], list[2], first],
    );
    let array = builder.finish().unwrap();
    let there = converted((schema, array), Alignment::Copy).unwrap();
    assert_eq!(&*there.array, &views as &dyn arrow_array::Array);
    assert!(there.copied[0].contains("buffers[3]"), "{:?}", there.copied);
}

/// The count determines which buffer has the sizes; arrow-rs computes an index below 0.
#[test]
fn view_array_without_sizes_is_rejected() {
    for buffers in 0..=3 {
        let capacity = ArrayCapacity { arrays: 0, buffers };
        let mut builder = ArrayBuilder::new(capacity, ()).unwrap();
        let none = [ptr::null(); 3];
        builder.set(Node::ROOT, ArrayValues::of(0), &none[..buffers]);
        let schema = SchemaBuilder::new("vu").build().unwrap();
        let there = converted((schema, builder.finish().unwrap()), Alignment::Accept);
        match buffers {
            0..3 => {
                let error = there.unwrap_err();
                let text = format!(
                    "ArrowArray.n_buffers: wrong for Utf8View: expected at least 3, got {buffers}"
                );
                assert_eq!(error.code(), EINVAL);
                assert!(error.message().starts_with(&text), "{error}");
            }
            _ => assert_eq!(there.unwrap().array.len(), 0),
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

//! Arrays and record batches, to arrow-rs and back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use crate::arrow::{
    from_array, from_record_batch, to_array, to_ffi_schema, to_record_batch, ToArrow,
};
use arrow_array::builder::{
    FixedSizeListBuilder, Int32Builder, ListBuilder, MapBuilder, StringBuilder, StringViewBuilder,
};
use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::types::{Int32Type, Int8Type};
use arrow_array::*;
use arrow_schema::{ArrowError, DataType, Field, UnionFields};
use fletching::{ArrowDeviceType, DeviceArray, Error, SchemaBuilder};
use libc::{EINVAL, EIO, ENOSYS};

/// Options that validate but do not align.
pub fn checked() -> ToArrow {
    ToArrow::default().validate(true)
}

fn union_of(offsets: Option<Vec<i32>>, ids: Vec<i8>) -> ArrayRef {
    let fields = [
        (0, Arc::new(Field::new("a", DataType::Int32, true))),
        (5, Arc::new(Field::new("b", DataType::Utf8, true))),
    ];
    let fields: UnionFields = fields.into_iter().collect();
    let children: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![1, 2, 3])),
        Arc::new(StringArray::from(vec!["x", "y", "z"])),
    ];
    Arc::new(UnionArray::try_new(fields, ids.into(), offsets.map(Into::into), children).unwrap())
}

fn arrays() -> Vec<ArrayRef> {
    let text = [Some("a"), None, Some("longer than twelve bytes")];
    let mut views = StringViewBuilder::new();
    views.extend(text);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("k");
    map.values().append_value(7);
    map.append(true).unwrap();
    map.append(false).unwrap();
    let lists = || vec![Some(vec![Some(1), None]), None, Some(vec![])];
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(lists());
    let mut sizes = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    sizes.values().append_slice(&[1, 2]);
    sizes.append(true);
    let mut nested = ListBuilder::new(ListBuilder::new(Int32Builder::new()));
    nested.values().values().append_value(1);
    nested.values().append(true);
    nested.append(true);
    let words: DictionaryArray<Int8Type> = vec!["a", "b", "a"].into_iter().collect();
    let runs = RunArray::<Int32Type>::try_new(
        &Int32Array::from(vec![2, 3]),
        &StringArray::from(vec!["a", "b"]),
    );
    let decimals = Decimal128Array::from(vec![Some(1), None, Some(-3)]);
    let columns = StructArray::from(vec![
        (
            Arc::new(Field::new("list", list.data_type().clone(), true)),
            Arc::new(list.clone()) as ArrayRef,
        ),
        (
            Arc::new(Field::new("text", DataType::Utf8, true)),
            Arc::new(StringArray::from(text.to_vec())),
        ),
    ]);
    vec![
        Arc::new(NullArray::new(3)),
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        Arc::new(Int8Array::from(vec![1, -1])),
        Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])),
        Arc::new(Float64Array::from(vec![0.5, f64::INFINITY])),
        Arc::new(StringArray::from(text.to_vec())),
        Arc::new(LargeStringArray::from(text.to_vec())),
        Arc::new(BinaryArray::from(vec![&b"ab"[..], b"", b"\xff"])),
        Arc::new(FixedSizeBinaryArray::try_from_iter([[1u8, 2], [3, 4]].iter()).unwrap()),
        Arc::new(views.finish()),
        Arc::new(BinaryViewArray::from(vec![
            &b"a"[..],
            b"longer than twelve bytes",
        ])),
        Arc::new(StringViewArray::from(vec!["short"])),
        Arc::new(Date32Array::from(vec![1, 2])),
        Arc::new(Time64NanosecondArray::from(vec![1, 2])),
        Arc::new(TimestampMicrosecondArray::from(vec![1, 2]).with_timezone("+01:00")),
        Arc::new(DurationSecondArray::from(vec![1, 2])),
        Arc::new(IntervalYearMonthArray::from(vec![1, 2])),
        Arc::new(decimals.with_precision_and_scale(20, 3).unwrap()),
        Arc::new(list.slice(1, 2)),
        Arc::new(list),
        Arc::new(LargeListArray::from_iter_primitive::<Int32Type, _, _>(
            lists(),
        )),
        Arc::new(sizes.finish()),
        Arc::new(nested.finish()),
        Arc::new(columns.slice(1, 2)),
        Arc::new(columns),
        Arc::new(map.finish()),
        Arc::new(words),
        Arc::new(runs.unwrap()),
        union_of(None, vec![0, 5, 0]),
        union_of(Some(vec![2, 0, 1, 1]), vec![0, 5, 0, 5]),
        Arc::new(Int32Array::from(Vec::<i32>::new())),
        Arc::new(StringArray::from(Vec::<&str>::new())),
        Arc::new(Int32Array::from(vec![1, 2, 3, 4]).slice(2, 1)),
        Arc::new(StringArray::from(vec!["ab", "c"]).slice(1, 0)),
    ]
}

#[test]
fn arrays_round_trip() {
    for array in arrays() {
        let (schema, there) = from_array(&array).unwrap();
        assert_eq!(there.length(), array.len() as i64);
        // SAFETY: the array comes from arrow-rs.
        let back = unsafe { to_array(&schema, there, checked()) };
        let back = back.unwrap_or_else(|error| panic!("{}: {error}", array.data_type()));
        assert_eq!(back.array.data_type(), array.data_type());
        assert_eq!(&*back.array, &*array, "{}", array.data_type());
        assert!(back.copied.is_empty());
    }
}

#[test]
fn round_trip_shares_buffers() {
    let array = Int32Array::from(vec![1, 2, 3]);
    let (schema, there) = from_array(&array).unwrap();
    assert_eq!(there.buffers()[1], array.values().as_ptr().cast());
    // SAFETY: the array comes from arrow-rs.
    let back = unsafe { to_array(&schema, there, checked()) }
        .unwrap()
        .array;
    let back = back.as_any().downcast_ref::<Int32Array>().unwrap();
    assert_eq!(back.values().as_ptr(), array.values().as_ptr());
}

#[test]
fn ffi_conversion_moves_structs() {
    let array = Int32Array::from(vec![1, 2, 3]);
    let (schema, array) = from_array(&array).unwrap();
    let first = array.buffers()[1];
    let ffi = FFI_ArrowArray::try_from(array).unwrap();
    // SAFETY: its metadata is not changed.
    let schema = unsafe { to_ffi_schema(schema) };
    assert_eq!((ffi.len(), schema.format()), (3, "i"));
    let (array, schema) = (fletching::Array::from(ffi), fletching::Schema::from(schema));
    assert_eq!((array.buffers()[1], schema.format()), (first, c"i"));
}

/// A safe function of arrow-rs would read the freed lists of the child.
#[test]
fn ffi_conversion_rejects_moved_out_child() {
    let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let field = Arc::new(Field::new("a", DataType::Int32, false));
    let (_, mut array) = from_array(&StructArray::from(vec![(field, column)])).unwrap();
    drop(array.take_child(0).unwrap());
    let refused = FFI_ArrowArray::try_from(array).map(|ffi| ffi.child(0).buffer(1));
    let error = refused.unwrap_err();
    let text = "array: the struct or a descendant is released or moved out";
    assert_eq!((error.code(), error.message()), (EINVAL, text));
}

/// The first offset is not 0.
#[test]
fn empty_slices_round_trip() {
    let texts = ["a", "bc", "d"];
    let lists = vec![Some(vec![Some(1), None]), None, Some(vec![])];
    let field = |of: &ArrayRef| Arc::new(Field::new("a", of.data_type().clone(), true));
    let mut all: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(texts.to_vec())),
        Arc::new(LargeStringArray::from(texts.to_vec())),
        Arc::new(BinaryArray::from_iter_values(texts)),
        Arc::new(LargeBinaryArray::from_iter_values(texts)),
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)),
    ];
    all.push(Arc::new(StructArray::from(vec![(
        field(&all[0]),
        Arc::clone(&all[0]),
    )])));
    for array in all {
        let slice = array.slice(1, 0);
        let (schema, there) = from_array(&slice).unwrap();
        // SAFETY: the array comes from arrow-rs.
        let back = unsafe { to_array(&schema, there, checked()) };
        assert_eq!(&back.unwrap().array, &slice);
    }
}

struct DropCounter(Arc<AtomicUsize>);

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn producer_is_released_with_last_buffer() {
    let drops = Arc::new(AtomicUsize::new(0));
    let mut array = fletching::Array::from(vec![1i32, 2, 3]);
    array.attach(DropCounter(Arc::clone(&drops))).unwrap();
    let schema = SchemaBuilder::new("i").build().unwrap();
    // SAFETY: the buffers belong to the vector.
    let there = unsafe { to_array(&schema, array, checked()) }
        .unwrap()
        .array;
    let slice = there.slice(1, 2);
    drop((there, schema));
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    drop(slice);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn failed_conversion_releases_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    for format in ["?", "u", "+s", "+l"] {
        let mut array = fletching::Array::from(vec![1i32, 2, 3]);
        array.attach(DropCounter(Arc::clone(&drops))).unwrap();
        let schema = SchemaBuilder::new(format).build().unwrap();
        // SAFETY: offsets and children are checked before they are read.
        let refused = unsafe { to_array(&schema, array, checked()) };
        refused.unwrap_err();
    }
    assert_eq!(drops.load(Ordering::SeqCst), 4);
}

#[test]
fn to_array_rejects_released_structs() {
    let schema = SchemaBuilder::new("+s").child(SchemaBuilder::new("i"));
    let schema = schema.build().unwrap();
    let released = || fletching::Array::default();
    // SAFETY: the arrays are not read.
    unsafe {
        let refused = |schema: &fletching::Schema, array| {
            to_array(schema, array, checked()).unwrap_err().code()
        };
        assert_eq!(refused(&schema, released()), EINVAL);
        let array = fletching::Array::from(vec![1i32]);
        assert_eq!(refused(&fletching::Schema::default(), array), EINVAL);
        let columns = StructArray::from(vec![(
            Arc::new(Field::new("", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![1])) as ArrayRef,
        )]);
        let (_, mut array) = from_array(&columns).unwrap();
        drop(array.take_child(0).unwrap());
        assert_eq!(refused(&schema, array), EINVAL);
    }
}

#[test]
fn to_array_rejects_invalid_offsets() {
    let mut array = fletching::Array::from(vec![0i32, 5, 3, 4]).into_raw();
    array.length = 3;
    let text = c"abcd";
    // Decreasing offsets.
    let mut buffers = [
        std::ptr::null(),
        // SAFETY: an array of numbers has two buffers.
        unsafe { *array.buffers.add(1) },
        text.as_ptr().cast(),
    ];
    (array.buffers, array.n_buffers) = (buffers.as_mut_ptr(), 3);
    let schema = SchemaBuilder::new("u").build().unwrap();
    // SAFETY: the last offset is valid.
    let error = unsafe { to_array(&schema, fletching::Array::from_raw(array), checked()) };
    assert_eq!(error.unwrap_err().code(), EINVAL);
}

#[test]
fn arrow_rs_panic_becomes_error() {
    let schema = SchemaBuilder::new("w:-1").build().unwrap();
    // SAFETY: the array is not read.
    let error = unsafe { to_array(&schema, fletching::Array::from(vec![1i32]), checked()) };
    assert!([EINVAL, EIO].contains(&error.unwrap_err().code()));
}

#[test]
fn record_batches_round_trip() {
    let metadata = HashMap::from([("key".to_string(), "value".to_string())]);
    let batch = RecordBatch::try_from_iter([
        (
            "number",
            Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef,
        ),
        ("text", Arc::new(StringArray::from(vec!["a", "b"]))),
    ]);
    let batch = batch.unwrap();
    let schema = batch.schema().as_ref().clone().with_metadata(metadata);
    let batch = batch.with_schema(Arc::new(schema)).unwrap();
    let (schema, array) = from_record_batch(&batch).unwrap();
    assert_eq!(schema.metadata().unwrap().get(b"key"), Some(&b"value"[..]));
    // SAFETY: the arrays come from arrow-rs.
    unsafe {
        let back = to_record_batch(&schema, array, checked()).unwrap();
        assert_eq!(back, batch);
        let (schema, array) = from_array(&Int32Array::from(vec![1])).unwrap();
        let refused = to_record_batch(&schema, array, checked());
        assert!(refused
            .unwrap_err()
            .message()
            .contains("expected a struct, got Int32"));
    }
    let none = RecordBatch::try_new_with_options(
        Arc::new(arrow_schema::Schema::empty()),
        vec![],
        &RecordBatchOptions::new().with_row_count(Some(5)),
    );
    let (schema, array) = from_record_batch(&none.unwrap()).unwrap();
    // SAFETY: as above.
    let back = unsafe { to_record_batch(&schema, array, checked()) }.unwrap();
    assert_eq!((back.num_rows(), back.num_columns()), (5, 0));
}

#[test]
fn to_record_batch_rejects_null_rows() {
    let field = Arc::new(Field::new("", DataType::Int32, true));
    let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![1, 2]))];
    let nulls = Some(vec![true, false].into());
    let rows = StructArray::new(vec![field].into(), columns, nulls);
    let (schema, array) = from_array(&rows).unwrap();
    // SAFETY: the array comes from arrow-rs.
    let refused = unsafe { to_record_batch(&schema, array, checked()) };
    assert!(refused.unwrap_err().message().contains("null rows"));
}

#[test]
fn array_conversion_rejects_other_devices() {
    let array = |device_type, event| {
        let mut raw = DeviceArray::from(fletching::Array::from(vec![1i32])).into_raw();
        (raw.device_type, raw.sync_event) = (device_type, event);
        // SAFETY: the event is not used.
        fletching::Array::try_from(unsafe { DeviceArray::from_raw(raw) })
    };
    let none = std::ptr::null_mut();
    assert!(array(ArrowDeviceType::CPU, none).is_ok());
    let error = array(ArrowDeviceType::CUDA, none).unwrap_err();
    assert!(
        error.message().contains("expected cpu, got cuda"),
        "{error}"
    );
    let error = array(ArrowDeviceType::CPU, std::ptr::dangling_mut()).unwrap_err();
    assert!(error.message().contains("sync_event"), "{error}");
}

#[test]
fn error_conversion_keeps_code() {
    let back = Error::from(ArrowError::from(Error::new(71, "lost")));
    assert_eq!((back.code(), back.message()), (71, "lost"));
    let code = |error| Error::from(error).code();
    assert_eq!(code(ArrowError::NotYetImplemented(String::new())), ENOSYS);
    assert_eq!(code(ArrowError::MemoryError(String::new())), libc::ENOMEM);
    assert_eq!(code(ArrowError::ParseError(String::new())), EINVAL);
    assert_eq!(code(ArrowError::ExternalError("x".into())), EINVAL);
    let io = std::io::Error::from_raw_os_error(libc::ENOSPC);
    assert_eq!(code(ArrowError::IoError(String::new(), io)), libc::ENOSPC);
    let io = std::io::Error::other("x");
    assert_eq!(code(ArrowError::IoError(String::new(), io)), EIO);
    let unsupported = || std::io::Error::from(std::io::ErrorKind::Unsupported);
    let io = ArrowError::IoError(String::new(), unsupported());
    assert_eq!(code(io), ENOSYS);
    assert_eq!(
        code(ArrowError::ExternalError(Box::new(unsupported()))),
        ENOSYS
    );
}

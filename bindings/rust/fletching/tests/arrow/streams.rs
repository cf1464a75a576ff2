// SPDX-License-Identifier: Apache-2.0

//! Streams converted to and from arrow-rs.

use std::sync::Arc;

use crate::arrow::{from_array, from_arrays, from_reader, to_ffi_stream, Arrays, RecordBatches};
use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array as _, ArrayRef, Int32Array, RecordBatch, RecordBatchIterator, RecordBatchReader,
    StringArray, StructArray,
};
use arrow_schema::{ArrowError, DataType, Field};
use fletching::{ArrayStream, ArrowDeviceType, DeviceArray, DeviceArrayStream, Error, Options};
use fletching::{SchemaBuilder, StreamReader};
use libc::{EINVAL, ENOMEM};

use crate::arrays::checked;

pub fn batches() -> Vec<RecordBatch> {
    let batch = |first| {
        let numbers = Arc::new(Int32Array::from(vec![first, first + 1])) as ArrayRef;
        let words = Arc::new(StringArray::from(vec![Some("a"), None])) as ArrayRef;
        RecordBatch::try_from_iter([("number", numbers), ("word", words)]).unwrap()
    };
    vec![batch(1), batch(7)]
}

/// A reader of the batches, optionally followed by an error.
fn reader(error: Option<ArrowError>) -> impl RecordBatchReader + Send + 'static {
    let schema = batches()[0].schema();
    let items = batches().into_iter().map(Ok).chain(error.map(Err));
    RecordBatchIterator::new(items.collect::<Vec<_>>(), schema)
}

fn arrays<S: fletching::RawStream>(reader: StreamReader<S>) -> Result<Arrays<S>, Error> {
    // SAFETY: the arrays come from arrow-rs, or are rejected.
    unsafe { Arrays::new(reader, checked()) }
}

#[test]
fn record_batches_round_trip() {
    let stream = from_reader(reader(None)).unwrap();
    assert_eq!(stream.device_type(), ArrowDeviceType::CPU);
    let mut back = RecordBatches::try_from(arrays(stream.into_iter()).unwrap()).unwrap();
    assert_eq!(back.schema(), batches()[0].schema());
    let all: Result<Vec<_>, _> = back.by_ref().collect();
    assert_eq!(all.unwrap(), batches());
    assert!(back.next().is_none());
}

#[test]
fn cpu_streams_round_trip() {
    let stream = ArrayStream::from(FFI_ArrowArrayStream::new(Box::new(reader(None))));
    let back = RecordBatches::try_from(arrays(stream.into_iter()).unwrap()).unwrap();
    let again = ArrayStream::from(FFI_ArrowArrayStream::new(Box::new(back)));
    #[allow(deprecated, reason = "the new name is not in the oldest arrow-rs")]
    // SAFETY: the arrays come from arrow-rs.
    let theirs =
        arrow_array::ffi_stream::ArrowArrayStreamReader::try_new(unsafe { to_ffi_stream(again) });
    let all: Result<Vec<_>, _> = theirs.unwrap().collect();
    assert_eq!(all.unwrap(), batches());
}

/// arrow-rs' readers are safe functions that trust the schema about the buffers.
#[test]
#[allow(
    clippy::needless_borrow,
    reason = "by the reference the other trait is found"
)]
fn array_stream_has_no_safe_ffi_conversion() {
    struct Probe<T>(std::marker::PhantomData<T>);
    trait Fallback {
        fn converts(&self) -> bool {
            false
        }
    }
    impl<T> Fallback for &Probe<T> {}
    trait Converts {
        fn converts(&self) -> bool {
            true
        }
    }
    impl<T: Into<FFI_ArrowArrayStream>> Converts for Probe<T> {}
    assert!((&Probe::<FFI_ArrowArrayStream>(Default::default())).converts());
    assert!(!(&Probe::<ArrayStream>(Default::default())).converts());
}

#[test]
fn non_struct_arrays_round_trip() {
    let field = Field::new("number", DataType::Int32, true);
    let array = |first| Arc::new(Int32Array::from(vec![Some(first), None])) as ArrayRef;
    let stream = from_arrays(&field, [Ok(array(1)), Ok(array(5))]).unwrap();
    let mut back = arrays(stream.into_iter()).unwrap();
    assert_eq!(back.field(), &field);
    for expected in [array(1), array(5)] {
        assert_eq!(&*back.next().unwrap().unwrap(), &*expected);
        assert!(back.copied_buffers().is_empty());
    }
    assert!(back.next().is_none());
    let stream = from_arrays(&field, [Ok(array(1))]).unwrap();
    let refused = RecordBatches::try_from(arrays(stream.into_iter()).unwrap());
    assert_eq!(refused.unwrap_err().code(), EINVAL);
}

#[test]
fn stream_error_reaches_arrow_rs() {
    let schema = SchemaBuilder::new("i").build().unwrap();
    let good: DeviceArray = fletching::Array::from(vec![1i32]).into();
    let items = [Ok(good), Err(Error::new(71, "lost"))];
    let stream = DeviceArrayStream::from_batches(schema, ArrowDeviceType::CPU, items).unwrap();
    let mut back = arrays(stream.into_iter()).unwrap();
    assert!(back.next().unwrap().is_ok());
    let error = Error::from(back.next().unwrap().unwrap_err());
    assert_eq!((error.code(), error.message()), (71, "lost"));
    assert!(back.next().is_none());
}

#[test]
fn arrow_rs_error_reaches_stream() {
    let failing = || reader(Some(ArrowError::MemoryError("later".into())));
    let play = |items: Vec<Result<(), Error>>| {
        let error = items[2].as_ref().unwrap_err();
        assert_eq!((items.len(), error.code()), (3, ENOMEM));
        assert!(error.message().contains("later"), "{error}");
    };
    let stream = from_reader(failing()).unwrap();
    play(stream.into_iter().map(|item| item.map(drop)).collect());
    let stream = ArrayStream::from(FFI_ArrowArrayStream::new(Box::new(failing())));
    play(stream.into_iter().map(|item| item.map(drop)).collect());
    let code = reader(Some(Error::new(71, "lost").into()));
    let last = from_reader(code).unwrap().into_iter().last();
    assert_eq!(last.unwrap().unwrap_err().code(), 71);
}

#[test]
fn arrays_reject_other_devices() {
    let schema = || SchemaBuilder::new("i").build().unwrap();
    let batch = |device_type, event| {
        let mut raw = DeviceArray::from(fletching::Array::from(vec![1i32])).into_raw();
        (raw.device_type, raw.sync_event) = (device_type, event);
        // SAFETY: the event is not used.
        Ok(unsafe { DeviceArray::from_raw(raw) })
    };
    let none = std::ptr::null_mut();
    let on = |device_type, items: [Result<DeviceArray, Error>; 1]| {
        let stream = DeviceArrayStream::from_batches(schema(), device_type, items).unwrap();
        arrays(stream.reader(Options::default()))
    };
    let cuda = on(ArrowDeviceType::CUDA, [batch(ArrowDeviceType::CUDA, none)]);
    assert!(cuda
        .unwrap_err()
        .message()
        .contains("expected cpu, got cuda"));
    // A CPU stream may contain host-readable memory, which may have an event.
    for event in [none, std::ptr::dangling_mut()] {
        let pinned = batch(ArrowDeviceType::CUDA_HOST, event);
        let mut pinned = on(ArrowDeviceType::CPU, [pinned]).unwrap();
        let error = Error::from(pinned.next().unwrap().unwrap_err());
        assert_eq!(error.code(), EINVAL);
        assert!(pinned.next().is_none());
    }
}

#[test]
fn null_rows_end_record_batches() {
    let columns = StructArray::from(batches()[0].clone());
    let (schema, _) = from_array(&columns).unwrap();
    let rows = |nulls: [bool; 2]| {
        let (fields, arrays, _) = columns.clone().into_parts();
        let array = StructArray::new(fields, arrays, Some(nulls.to_vec().into()));
        // An array with a known null count is rejected earlier.
        let mut raw = from_array(&array)?.1.into_raw();
        raw.null_count = raw.null_count.signum().wrapping_neg();
        // SAFETY: the array was just exported.
        Ok(unsafe { fletching::Array::from_raw(raw) })
    };
    let items = [rows([true, true]), rows([true, false]), rows([true, true])];
    let stream = ArrayStream::from_batches(schema, items).unwrap();
    let mut back = RecordBatches::try_from(arrays(stream.into_iter()).unwrap()).unwrap();
    assert_eq!(back.next().unwrap().unwrap(), batches()[0]);
    let error = Error::from(back.next().unwrap().unwrap_err());
    assert_eq!(error.code(), EINVAL);
    assert!(error.message().contains("null rows"), "{error}");
    assert!(back.next().is_none());
}

fn error_of(stream: Result<DeviceArrayStream, Error>) -> String {
    let mut reader = stream.unwrap().into_iter();
    let error = reader.find_map(Result::err).expect("it is refused");
    assert_eq!(error.code(), EINVAL);
    error.message().to_owned()
}

#[test]
fn array_of_other_type_is_rejected() {
    let number = |first: i32| Arc::new(Int32Array::from(vec![first])) as ArrayRef;
    let wide = Field::new("number", DataType::Int64, true);
    let wides = Arc::new(arrow_array::Int64Array::from(vec![1])) as ArrayRef;
    let stream = from_arrays(&wide, [Ok(wides), Ok(number(2))]);
    assert_eq!(error_of(stream), r#"batch 1: expected format "l", got "i""#);
    // Names, metadata and flags may differ.
    let items = |name: &str| {
        let item = Field::new(name, DataType::Int32, name == "a");
        let mut list = ListBuilder::new(Int32Builder::new()).with_field(item);
        list.append_value([Some(1)]);
        Arc::new(list.finish()) as ArrayRef
    };
    let field = Field::new("list", items("items").data_type().clone(), true);
    let stream = from_arrays(&field, [Ok(items("items")), Ok(items("a"))]);
    assert!(stream.unwrap().into_iter().all(|batch| batch.is_ok()));
}

#[test]
fn record_batch_of_other_schema_is_rejected() {
    let item = |data_type| Arc::new(Field::new("items", data_type, true));
    let column = |of: DataType| DataType::List(item(of));
    let schema = |of| arrow_schema::Schema::new(vec![Field::new("a", column(of), true)]);
    let empty = RecordBatch::new_empty(Arc::new(schema(DataType::Int64)));
    let reader = |of| {
        let schema = Arc::new(schema(of));
        RecordBatchIterator::new(vec![Ok(empty.clone())], schema)
    };
    assert_eq!(
        error_of(from_reader(reader(DataType::Float64))),
        r#"batch 0: field "a.items": expected format "g", got "l""#
    );
    let mut same = from_reader(reader(DataType::Int64)).unwrap().into_iter();
    assert!(same.next().unwrap().is_ok());
}

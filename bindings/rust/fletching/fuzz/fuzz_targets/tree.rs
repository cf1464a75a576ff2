// SPDX-License-Identifier: Apache-2.0

//! Trees of schemas and arrays: formats are read, a copy and a view equal the tree or fail, and
//! everything is released once.

#![no_main]

use std::ptr;

use fletching::dlpack::{to_dlpack, ExportOptions, MAX_DIMENSIONS};
use fletching::{Array, DeviceArray, Schema, SchemaBuilder};
use fletching_fuzz::{Input, Trees};
use libfuzzer_sys::fuzz_target;

fn compare(left: &Schema, right: &Schema) {
    assert_eq!(left.format(), right.format());
    assert_eq!(left.name(), right.name());
    assert_eq!(left.flags(), right.flags());
    match (left.metadata(), right.metadata()) {
        (Ok(pairs), Ok(others)) => assert!(pairs.iter().eq(others.iter())),
        (pairs, others) => assert_eq!(pairs.is_ok(), others.is_ok()),
    }
    let (children, others) = (left.children(), right.children());
    assert_eq!(children.len(), others.len());
    for (child, other) in children.iter().zip(others) {
        compare(child.unwrap(), other.unwrap());
    }
    assert_eq!(left.dictionary().is_some(), right.dictionary().is_some());
    if let (Some(values), Some(others)) = (left.dictionary(), right.dictionary()) {
        compare(values, others);
    }
}

fn compare_arrays(left: &Array, right: &Array) {
    assert_eq!(
        (left.length(), left.offset()),
        (right.length(), right.offset())
    );
    assert_eq!(left.null_count(), right.null_count());
    assert!(ptr::eq(left.buffers(), right.buffers()));
    assert_eq!(left.children().len(), right.children().len());
    for (child, other) in left.children().iter().zip(right.children()) {
        compare_arrays(child.unwrap(), other.unwrap());
    }
    assert_eq!(left.dictionary().is_some(), right.dictionary().is_some());
    if let (Some(values), Some(others)) = (left.dictionary(), right.dictionary()) {
        compare_arrays(values, others);
    }
}

/// Copies a schema and makes views of it.
fn read_schema(schema: Schema) {
    if let Ok(builder) = SchemaBuilder::from_schema(&schema) {
        match builder.build() {
            Ok(copy) => compare(&schema, &copy),
            Err(error) => assert!(error.message().contains("format: empty"), "{error}"),
        }
    }
    let Ok(shared) = schema.share() else { return };
    let view = shared.view();
    for index in 0..shared.children().len() {
        let column = shared.column(index);
        assert!(view.is_err() || column.is_ok());
    }
    let Ok(mut view) = view else { return };
    compare(&shared, &view);
    if !view.children().is_empty() {
        let child = view.take_child(0).unwrap();
        drop(view);
        compare(shared.children()[0].unwrap(), &child);
        let shared_child = child.share().unwrap();
        compare(&shared_child, &shared_child.view().unwrap());
    }
}

fn read_array(array: Array) {
    let Ok(shared) = array.share() else { return };
    let Ok(mut view) = shared.view() else { return };
    compare_arrays(&shared, &view);
    drop(view.take_dictionary());
    if !view.children().is_empty() {
        let child = view.take_child(0).unwrap();
        drop(view);
        compare_arrays(shared.children()[0].unwrap(), &child);
    }
}

/// Exports both as a tensor, or checks that an error leaves the array unchanged.
fn export(schema: &Schema, array: &mut DeviceArray, as_storage: bool) {
    let options = ExportOptions::default().as_storage(as_storage);
    let (live, length) = (!array.is_released(), array.length());
    match to_dlpack(schema, array, &options) {
        Ok(tensor) => {
            assert!(live && array.is_released());
            let raw = tensor.tensor().unwrap();
            // SAFETY: the tensor was just exported.
            let (shape, strides) = unsafe { (raw.shape_slice(), raw.strides_slice()) };
            assert_eq!(shape[0], length);
            assert!(shape.iter().all(|extent| *extent >= 0));
            assert_eq!(shape.len(), strides.len());
            assert!((1..=MAX_DIMENSIONS).contains(&shape.len()));
            assert_eq!(raw.data.is_null(), shape.contains(&0));
        }
        Err(error) => {
            assert_eq!((live, length), (!array.is_released(), array.length()));
            assert!(!error.message().is_empty());
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let count = |of: fn(Schema, Array)| {
        let mut trees = Trees::new(Input(bytes));
        let (schema, array) = trees.owners();
        let live = (!schema.is_released(), !array.is_released());
        of(schema, array);
        assert_eq!(Trees::releases(), (live.0.into(), live.1.into()));
    };
    count(|schema, array| {
        read_schema(schema);
        read_array(array);
    });
    for as_storage in [false, true] {
        let of: fn(Schema, Array) = match as_storage {
            false => |schema, array| export(&schema, &mut array.into(), false),
            true => |schema, array| export(&schema, &mut array.into(), true),
        };
        count(of);
    }
});

// SPDX-License-Identifier: Apache-2.0

//! Helpers for tests of imported tensors.

use std::ffi::c_void;

use fletching::abi::DLDataType;
use fletching::dlpack::{from_dlpack, Dimensions, ImportOptions, Imported, Strided};
use fletching::{Error, Schema};

use crate::support::*;

pub fn shared() -> ImportOptions {
    ImportOptions::default()
}

pub fn lists() -> ImportOptions {
    shared().dimensions(Dimensions::FixedSizeLists)
}

pub fn copies() -> ImportOptions {
    shared().strided(Strided::Copy(readable()))
}

pub fn storage() -> ImportOptions {
    shared().as_storage(true)
}

pub fn imported(tensor: &ForeignTensor, options: ImportOptions) -> Imported {
    from_dlpack(tensor.versioned(), &options).unwrap()
}

/// Returns the error, and checks that the tensor was deleted once.
#[track_caller]
pub fn refused(tensor: &ForeignTensor, options: ImportOptions) -> Error {
    let before = tensor.deleted();
    let error = from_dlpack(tensor.versioned(), &options).unwrap_err();
    assert_eq!(tensor.deleted(), before + 1);
    error
}

/// Returns length, offset and values of the innermost array.
pub fn leaf(tensor: &Imported) -> (i64, i64, *const c_void) {
    let mut child = tensor.array.children().first().copied().flatten();
    while let Some(below) = child.and_then(|child| child.children().first().copied().flatten()) {
        child = Some(below);
    }
    match child {
        Some(leaf) => (leaf.length(), leaf.offset(), leaf.buffers()[1]),
        None => {
            let array = &tensor.array;
            (array.length(), array.offset(), array.buffers()[1])
        }
    }
}

pub fn integers(tensor: &Imported) -> Vec<i32> {
    let (length, _, first) = leaf(tensor);
    // SAFETY: the tensors of the tests have this many values.
    unsafe { std::slice::from_raw_parts(first.cast::<i32>(), length as usize) }.to_vec()
}

/// Returns the format, and the extension's name and parameters.
pub fn parameters(schema: &Schema) -> (String, String) {
    let pairs = schema.metadata().unwrap();
    let text = |key: &str| pairs.get(key.as_bytes()).unwrap_or_default();
    let extension = [
        text("ARROW:extension:name"),
        text("ARROW:extension:metadata"),
    ]
    .concat();
    let extension = String::from_utf8(extension).unwrap();
    (schema.format().to_str().unwrap().into(), extension)
}

pub fn of(format: &str, extension: &str) -> (String, String) {
    (format.into(), extension.into())
}

pub fn lanes(lanes: u16, shape: &[i64], strides: &[i64]) -> ForeignTensor {
    ForeignTensor::new(DLDataType { lanes, ..INT32 }, values(), shape, strides)
}

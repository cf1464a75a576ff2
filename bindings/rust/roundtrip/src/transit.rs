// SPDX-License-Identifier: Apache-2.0

//! The C functions that `transit.h` declares.

use std::ffi::{c_char, c_int};

use fletching_abi::{ArrowDeviceArray, ArrowSchema};

use crate::check::check_array;
use crate::error::{guard, Error};
use crate::forward::{exported, forward_array, forward_tree, released};
use crate::owned::Owned;

/// `FletchingTransitArray`
///
/// # Safety
///
/// The structs are NULL or keep to the specification; the message has room for `capacity` bytes.
#[unsafe(export_name = "FletchingTransitArray")]
pub unsafe extern "C" fn transit_array(
    schema: *mut ArrowSchema,
    array: *mut ArrowDeviceArray,
    out_schema: *mut ArrowSchema,
    out_array: *mut ArrowDeviceArray,
    message: *mut c_char,
    capacity: usize,
) -> c_int {
    // SAFETY: the caller's promise, and NULL is looked for.
    let outcome = guard(|| unsafe {
        let (Some(schema), Some(array)) = (schema.as_mut(), array.as_mut()) else {
            return Err(Error::invalid("schema or array is NULL"));
        };
        if out_schema.is_null() || out_array.is_null() {
            return Err(Error::invalid("out_schema or out_array is NULL"));
        }
        check_array(schema, &array.array)?;
        let (schema, array) = (Owned::take(schema), Owned::take(array));
        out_schema.write(forward_tree(schema).into_raw());
        out_array.write(forward_array(array).into_raw());
        Ok(())
    });
    let (code, text) = match outcome {
        Ok(()) => (0, String::new()),
        Err(error) => (error.code, error.to_string()),
    };
    // SAFETY: the caller's promise.
    unsafe { write_message(&text, message, capacity) };
    code
}

/// `FletchingTransitExported`
#[unsafe(export_name = "FletchingTransitExported")]
pub extern "C" fn transit_exported() -> i64 {
    exported() as i64
}

/// `FletchingTransitReleased`
#[unsafe(export_name = "FletchingTransitReleased")]
pub extern "C" fn transit_released() -> i64 {
    released() as i64
}

/// Copies the text, cut at a character boundary when it is too long, and ends it with NUL.
unsafe fn write_message(text: &str, message: *mut c_char, capacity: usize) {
    if message.is_null() || capacity == 0 {
        return;
    }
    let mut size = text.len().min(capacity - 1);
    while !text.is_char_boundary(size) {
        size -= 1;
    }
    // SAFETY: there is room for the bytes and the NUL.
    unsafe {
        message.copy_from_nonoverlapping(text.as_ptr().cast(), size);
        message.add(size).write(0);
    }
}

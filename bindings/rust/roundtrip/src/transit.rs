// SPDX-License-Identifier: Apache-2.0

//! The C functions that `transit.h` declares.

use std::ffi::{c_char, c_int};
use std::panic::{catch_unwind, AssertUnwindSafe};

use fletching::abi::{ArrowDeviceArray, ArrowSchema};
use fletching::{DeviceArray, Error, Schema};

use crate::reexport::{exported, released, view_of};

/// `FletchingTransitArray`
///
/// # Safety
///
/// The structs are NULL or as the specification asks; the message has room for `capacity` bytes.
#[unsafe(export_name = "FletchingTransitArray")]
pub unsafe extern "C" fn transit_array(
    schema: *mut ArrowSchema,
    array: *mut ArrowDeviceArray,
    out_schema: *mut ArrowSchema,
    out_array: *mut ArrowDeviceArray,
    message: *mut c_char,
    capacity: usize,
) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for (name, is_null) in [
            ("schema", schema.is_null()),
            ("array", array.is_null()),
            ("out_schema", out_schema.is_null()),
            ("out_array", out_array.is_null()),
        ] {
            if is_null {
                return Err(Error::new(libc::EINVAL, format!("{name} is NULL")));
            }
        }
        // SAFETY: the caller vouches for all four.
        unsafe { pass(schema, array, out_schema, out_array) }
    }));
    let outcome = outcome.unwrap_or_else(|_| Err(Error::new(libc::EIO, "panic")));
    let (code, text) = match &outcome {
        Ok(()) => (0, ""),
        Err(error) => (error.code(), error.message()),
    };
    // SAFETY: the caller vouches for the message.
    unsafe { write_message(text, message, capacity) };
    code
}

/// What cannot be exported again goes back to where it was.
///
/// # Safety
///
/// All four are as the specification asks.
unsafe fn pass(
    schema: *mut ArrowSchema,
    array: *mut ArrowDeviceArray,
    out_schema: *mut ArrowSchema,
    out_array: *mut ArrowDeviceArray,
) -> Result<(), Error> {
    // SAFETY: the caller vouches for all four.
    unsafe {
        if (*schema).is_released() || (*array).is_released() {
            return Err(Error::new(libc::EINVAL, "schema or array is released"));
        }
        let shared = (
            Schema::move_from(schema).share()?,
            DeviceArray::move_from(array).share()?,
        );
        let views = view_of(&shared.0).and_then(|schema| Ok((schema, view_of(&shared.1)?)));
        match views {
            Ok(views) => {
                views.0.move_to(out_schema);
                views.1.move_to(out_array);
                Ok(())
            }
            Err(error) => {
                // Nothing shows them any more.
                shared.0.try_unwrap().unwrap_or_default().move_to(schema);
                shared.1.try_unwrap().unwrap_or_default().move_to(array);
                Err(error)
            }
        }
    }
}

/// `FletchingTransitExported`
#[unsafe(export_name = "FletchingTransitExported")]
pub extern "C" fn transit_exported() -> i64 {
    exported()
}

/// `FletchingTransitReleased`
#[unsafe(export_name = "FletchingTransitReleased")]
pub extern "C" fn transit_released() -> i64 {
    released()
}

/// Copies the text, cut at a character boundary when it is too long, and ends it with NUL.
///
/// # Safety
///
/// `message` is NULL or has room for `capacity` bytes.
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

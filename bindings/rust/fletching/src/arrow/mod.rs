// SPDX-License-Identifier: Apache-2.0

//! To [arrow-rs](https://docs.rs/arrow) and back: the structs by move, arrays and streams without a
//! copy. Needs the feature `arrow`.
//!
//! ```
//! use fletching::arrow::{from_array, to_array, ToArrow};
//!
//! let (schema, array) = from_array(&arrow_array::Int32Array::from(vec![1, 2, 3]))?;
//! // SAFETY: the array is arrow-rs' own.
//! let there = unsafe { to_array(&schema, array, ToArrow::default()) }?;
//! assert_eq!(there.array.len(), 3);
//! # Ok::<(), fletching::Error>(())
//! ```
//!
//! [`Schema`], [`Array`] and [`ArrayStream`] convert with `From` from arrow-rs' `FFI_ArrowSchema`,
//! `FFI_ArrowArray` and `FFI_ArrowArrayStream`, which are the same structs, and an array to one with
//! `TryFrom`.
//! [`to_ffi_schema`] and [`to_ffi_stream`] are unsafe, because of what safe code of arrow-rs does with
//! a schema that it has not made, and with the buffers of a stream.
//!
//! arrow-rs reads host memory and knows no events: an array on another device than the CPU, and one
//! with a `sync_event`, is the error EINVAL.
//!
//! # Checks
//!
//! Every import compares the array with its schema before arrow-rs is called: the format, the numbers
//! of buffers and children, lengths, null counts, NULL buffers and the dictionary. A difference is the
//! error EINVAL with the place: `ArrowArray.children[0].n_buffers: wrong for Int64: expected 2, got 3`.
//!
//! # Fields
//!
//! [`to_field`] and [`from_field`] keep names, flags and metadata, or refuse them with the path of the
//! field. arrow-rs has no place for the metadata and the order of a dictionary's values, for a second
//! value of a metadata key, and for texts that are not UTF-8: these are refused. arrow-rs 54 also drops
//! the order of every dictionary that it imports and that of the keys of every map that it exports; the
//! functions here keep both.
//!
//! # Arrays without rows
//!
//! An array without rows may have NULL for its offsets. arrow-rs refuses that, so the imports here give
//! it one zero offset. An array or a stream that is handed on keeps the buffers that it came with, also
//! NULL offsets.
//!
//! # Alignment
//!
//! The interface allows any address. arrow-rs needs that of the Rust type, 16 bytes for decimal128
//! on most targets; what it does with others depends on its version: it panics, or copies without a
//! word. Here the choice is yours: [`Alignment`].

mod align;
mod check;
mod convert;
mod field;
#[cfg(feature = "arrow-async")]
mod nonblocking;
mod stream;

use std::mem::ManuallyDrop;
use std::ptr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::ArrowError;

pub use align::Alignment;
pub use convert::{from_array, from_record_batch, to_array, to_record_batch, Converted, ToArrow};
pub use field::{from_field, to_field};
#[cfg(feature = "arrow-async")]
pub use nonblocking::AsyncRecordBatches;
pub use stream::{from_arrays, from_reader, Arrays, RecordBatches};

use crate::error::{errno_of, Error};
use crate::owner::{Array, ArrayStream, Owner, Schema};
use crate::raw::sealed::Raw as _;
use crate::raw::{Nested, Raw};
use crate::tree::walk;

macro_rules! from_arrow {
    ($($owner:ident: $ffi:ident;)*) => {$(
        /// By move.
        impl From<$ffi> for $owner {
            fn from(ffi: $ffi) -> Self {
                // SAFETY: both are the struct of the interface; arrow-rs keeps its rules. What was
                // moved is not dropped.
                unsafe { Owner::move_from((&raw mut *ManuallyDrop::new(ffi)).cast()) }
            }
        }
    )*};
}

from_arrow! {
    Schema: FFI_ArrowSchema;
    Array: FFI_ArrowArray;
    ArrayStream: FFI_ArrowArrayStream;
}

/// Moves a struct out for `take`, a `from_raw` of arrow-rs.
fn move_out<R: Raw, F>(owner: Owner<R>, take: unsafe fn(*mut F) -> F) -> F {
    let mut raw = owner.into_raw();
    const { assert!(size_of::<F>() == size_of::<R>() && align_of::<F>() == align_of::<R>()) };
    // SAFETY: both are the struct of the interface; it is moved out of `raw`.
    unsafe { take((&raw mut raw).cast()) }
}

/// Errors: EINVAL when the struct or one below it is released or malformed. arrow-rs would panic, or
/// never return.
fn check_alive<R: Nested>(what: &str, root: &Owner<R>) -> Result<(), Error> {
    let root = ptr::from_ref(root.as_raw().base()).cast_mut();
    // SAFETY: see Owner::from_raw; the walk only reads.
    unsafe {
        walk(what, root, &mut |node| match (*node).is_released() {
            true => Err("is released or moved out"),
            false => Ok(()),
        })
    }
}

/// By move. Errors: EINVAL for an array of which a part was moved out, and for a malformed one: safe
/// functions of arrow-rs read the lists of a child that is released.
impl TryFrom<Array> for FFI_ArrowArray {
    type Error = Error;

    fn try_from(array: Array) -> Result<Self, Error> {
        check_alive("array", &array)?;
        Ok(move_array(array))
    }
}

/// An array that was checked.
fn move_array(array: Array) -> FFI_ArrowArray {
    move_out(array, FFI_ArrowArray::from_raw)
}

/// A schema for arrow-rs, by move.
///
/// # Safety
///
/// `with_metadata` of the result is not called: it takes any schema for one that arrow-rs has made,
/// and is a safe function in the older versions.
#[must_use]
pub unsafe fn to_ffi_schema(schema: Schema) -> FFI_ArrowSchema {
    move_out(schema, FFI_ArrowSchema::from_raw)
}

/// A stream for the readers of arrow-rs, by move.
///
/// # Safety
///
/// Every array is as for [`to_array`], and of the type of the stream's schema.
#[must_use]
pub unsafe fn to_ffi_stream(stream: ArrayStream) -> FFI_ArrowArrayStream {
    move_out(stream, FFI_ArrowArrayStream::from_raw)
}

/// As `ExternalError`, out of which the conversion back takes it.
impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        Self::ExternalError(Box::new(error))
    }
}

/// With the errno value that arrow-rs has for its kind in the C stream interface.
impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        let error = match error {
            ArrowError::ExternalError(source) => match source.downcast::<Self>() {
                Ok(ours) => return *ours,
                Err(source) => ArrowError::ExternalError(source),
            },
            error => error,
        };
        let code = match &error {
            ArrowError::NotYetImplemented(_) => crate::errno::ENOSYS,
            ArrowError::MemoryError(_) => crate::errno::ENOMEM,
            ArrowError::IoError(_, error) => errno_of(error),
            ArrowError::ExternalError(error) => {
                error.downcast_ref().map_or(crate::errno::EINVAL, errno_of)
            }
            _ => crate::errno::EINVAL,
        };
        Self::with_source(code, error.to_string(), error)
    }
}

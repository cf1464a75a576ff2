// SPDX-License-Identifier: Apache-2.0

//! The conversions, compiled once for each version of arrow-rs: arrow_versions.rs.

mod align;
mod check;
pub(super) mod convert;
pub(super) mod field;
mod stream;

use std::mem::ManuallyDrop;
use std::ptr;

use super::arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use super::arrow_array::ffi_stream::FFI_ArrowArrayStream;
use super::arrow_schema::ArrowError;
use super::{arrow_array, arrow_data, arrow_schema};

pub use align::Alignment;
pub use convert::{from_array, from_record_batch, to_array, to_record_batch, Converted, ToArrow};
pub use field::{from_field, to_field};
pub use stream::{from_arrays, from_reader, Arrays, RecordBatches};

use crate::error::{errno_of, Error};
use crate::owner::{Array, ArrayStream, Owner, Schema};
use crate::raw::sealed::Raw as _;
use crate::raw::{Nested, Raw};
use crate::tree::walk;

macro_rules! from_arrow {
    ($($owner:ident: $ffi:ident;)*) => {$(
        /// Moves the struct.
        impl From<$ffi> for $owner {
            fn from(ffi: $ffi) -> Self {
                // SAFETY: both types are the struct of the interface, and arrow-rs conforms to it.
                // The moved value is not dropped.
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

/// Moves a struct to `take`, a `from_raw` function of arrow-rs.
fn move_out<R: Raw, F>(owner: Owner<R>, take: unsafe fn(*mut F) -> F) -> F {
    let mut raw = owner.into_raw();
    const { assert!(size_of::<F>() == size_of::<R>() && align_of::<F>() == align_of::<R>()) };
    // SAFETY: both types are the struct of the interface; the struct is moved out of `raw`.
    unsafe { take((&raw mut raw).cast()) }
}

/// Errors: EINVAL if the struct or a descendant is released or malformed. arrow-rs would panic or
/// loop forever.
fn check_alive<R: Nested>(what: &str, root: &Owner<R>) -> Result<(), Error> {
    let root = ptr::from_ref(root.as_raw().base()).cast_mut();
    // SAFETY: guaranteed by the contract of `Owner::from_raw`; the walk only reads.
    unsafe {
        walk(what, root, &mut |node| match (*node).is_released() {
            true => Err("is released or moved out"),
            false => Ok(()),
        })
    }
}

/// Moves the struct. Errors: EINVAL for an array that is malformed or of which a descendant was
/// moved out: safe functions of arrow-rs read the lists of a released child.
impl TryFrom<Array> for FFI_ArrowArray {
    type Error = Error;

    fn try_from(array: Array) -> Result<Self, Error> {
        check_alive("array", &array)?;
        Ok(move_array(array))
    }
}

/// Moves an array that was checked.
fn move_array(array: Array) -> FFI_ArrowArray {
    move_out(array, FFI_ArrowArray::from_raw)
}

/// Moves a schema to arrow-rs.
///
/// # Safety
///
/// `with_metadata` of the result is not called: it assumes that arrow-rs made the schema, and is a
/// safe function in older versions.
#[must_use]
pub unsafe fn to_ffi_schema(schema: Schema) -> FFI_ArrowSchema {
    move_out(schema, FFI_ArrowSchema::from_raw)
}

/// Moves a stream to the readers of arrow-rs.
///
/// # Safety
///
/// Every array meets the requirements of [`to_array`] and has the type of the stream's schema.
#[must_use]
pub unsafe fn to_ffi_stream(stream: ArrayStream) -> FFI_ArrowArrayStream {
    move_out(stream, FFI_ArrowArrayStream::from_raw)
}

/// Wraps the error as `ExternalError`. The reverse conversion unwraps it.
impl From<Error> for ArrowError {
    fn from(error: Error) -> Self {
        Self::ExternalError(Box::new(error))
    }
}

/// Uses the errno value that arrow-rs returns for this kind of error in the C stream interface.
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

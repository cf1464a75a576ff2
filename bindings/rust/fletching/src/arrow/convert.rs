// SPDX-License-Identifier: Apache-2.0

//! Arrays and record batches.

use std::ptr;
use std::sync::Arc;

use arrow_array::ffi::{from_ffi_and_data_type, to_ffi, FFI_ArrowSchema};
use arrow_array::{make_array, Array as _, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{Field, SchemaRef};

use super::align::align;
use crate::error::{guarded, Error};
use crate::owner::{Array, Owner, Schema};
use crate::raw::sealed::Raw as _;
use crate::raw::Nested;
use crate::tree::walk;

/// What happens with a buffer that is not aligned as arrow-rs needs it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alignment {
    /// EINVAL, with the buffer and the type in the message.
    #[default]
    Refuse,
    /// It is copied, and [`Converted::copied`] says so.
    Copy,
    /// arrow-rs gets it as it is: it copies or panics, which becomes EIO. Offsets and the sizes of
    /// view buffers have to be aligned, because arrow-rs reads them before it looks.
    Accept,
}

/// How an array is converted to arrow-rs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToArrow {
    /// What happens with a buffer that is not aligned.
    pub alignment: Alignment,
    /// Every value is checked, `ArrayData::validate_full`; offsets have to be inside their buffer
    /// in any case.
    pub validate: bool,
}

/// An array of arrow-rs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Converted {
    /// The array, which keeps the producer's.
    pub array: ArrayRef,
    /// The buffers that were copied: where, for which type, what was expected.
    pub copied: Vec<String>,
}

/// Errors: EINVAL when the struct or one below it is released or malformed. arrow-rs would panic, or
/// never return.
pub(super) fn check_alive<R: Nested>(what: &str, root: &Owner<R>) -> Result<(), Error> {
    let root = ptr::from_ref(root.as_raw().base()).cast_mut();
    // SAFETY: see Owner::from_raw; the walk only reads.
    unsafe {
        walk(what, root, &mut |node| match (*node).is_released() {
            true => Err("is released or moved out"),
            false => Ok(()),
        })
    }
}

/// The field that a schema describes. Errors: EINVAL for a schema that is malformed, and what
/// arrow-rs says.
pub(super) fn field(schema: &Schema) -> Result<Field, Error> {
    check_alive("schema", schema)?;
    // SAFETY: both are the struct of the interface.
    let ffi = unsafe { &*ptr::from_ref(schema).cast::<FFI_ArrowSchema>() };
    guarded(|| Ok(Field::try_from(ffi)?))
}

/// An array as one of arrow-rs. Of a device array on the CPU, `Array::try_from` first.
///
/// Ownership: the array is consumed, on an error too, and released when the last reference to its
/// buffers is dropped.
///
/// Errors: EINVAL for a released schema or array, for children that do not fit the type, for
/// alignment, and for what arrow-rs refuses; EIO for a panic in arrow-rs.
///
/// # Safety
///
/// The buffers are as the type, the length and the offset ask for, offsets and sizes of buffers in
/// them included; without [`validate`](ToArrow::validate) the other values are right too.
pub unsafe fn to_array(
    schema: &Schema,
    array: Array,
    options: ToArrow,
) -> Result<Converted, Error> {
    // SAFETY: the caller vouches for the buffers.
    unsafe { convert(array, &field(schema)?, options) }
}

/// # Safety
///
/// As for [`to_array`].
pub(super) unsafe fn convert(
    array: Array,
    field: &Field,
    options: ToArrow,
) -> Result<Converted, Error> {
    check_alive("array", &array)?;
    let data_type = field.data_type();
    guarded(|| {
        // SAFETY: the caller vouches for the buffers.
        let (array, copied) = unsafe { align(array, data_type, options.alignment)? };
        // SAFETY: the caller vouches for the buffers.
        let mut data =
            unsafe { from_ffi_and_data_type(super::move_array(array), data_type.clone())? };
        // What is empty may have any address.
        data.align_buffers();
        if options.validate {
            data.validate_full()?;
        }
        let array = make_array(data);
        Ok(Converted { array, copied })
    })
}

/// A struct array as a record batch. Errors: also EINVAL for another type, and for rows that are
/// null.
///
/// # Safety
///
/// As for [`to_array`].
pub unsafe fn to_record_batch(
    schema: &Schema,
    array: Array,
    options: ToArrow,
) -> Result<RecordBatch, Error> {
    let field = field(schema)?;
    let columns = schema_of(&field)?;
    // SAFETY: the caller vouches for the buffers.
    let converted = unsafe { convert(array, &field, options)? };
    batch(&converted.array, columns)
}

/// The schema of a batch whose columns are the children of a struct.
pub(super) fn schema_of(field: &Field) -> Result<SchemaRef, Error> {
    let arrow_schema::DataType::Struct(fields) = field.data_type() else {
        return Err(Error::invalid(format!(
            "record batch: wrong type: expected a struct, got {}",
            field.data_type()
        )));
    };
    let schema = arrow_schema::Schema::new(fields.clone());
    Ok(Arc::new(schema.with_metadata(field.metadata().clone())))
}

pub(super) fn batch(array: &ArrayRef, schema: SchemaRef) -> Result<RecordBatch, Error> {
    let rows = array.as_any().downcast_ref::<StructArray>();
    let rows = rows.filter(|rows| rows.null_count() == 0).ok_or_else(|| {
        Error::invalid("record batch: array with null rows: expected a struct array without")
    })?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(
        schema,
        rows.columns().to_vec(),
        &options,
    )?)
}

/// An array of arrow-rs, which is kept until the result is released. Errors: what arrow-rs says to
/// the type.
pub fn from_array(array: &dyn arrow_array::Array) -> Result<(Schema, Array), Error> {
    guarded(|| {
        let (array, schema) = to_ffi(&array.to_data())?;
        Ok((schema.into(), array.into()))
    })
}

/// A record batch as a struct array, with the metadata of its schema.
pub fn from_record_batch(batch: &RecordBatch) -> Result<(Schema, Array), Error> {
    let (_, array) = from_array(&StructArray::from(batch.clone()))?;
    let schema = FFI_ArrowSchema::try_from(&*batch.schema())?;
    Ok((schema.into(), array))
}

// SPDX-License-Identifier: Apache-2.0

//! Arrays and record batches.

use std::sync::Arc;

use super::arrow_array::ffi::{from_ffi_and_data_type, FFI_ArrowArray};
use super::arrow_array::{
    make_array, Array as _, ArrayRef, RecordBatch, RecordBatchOptions, StructArray,
};
use super::arrow_schema::{Field, SchemaRef};

use super::align::{prepare, Alignment};
use super::field::{from_field, from_schema, to_field};
use super::{check_alive, move_array};
use crate::error::{guarded, Error};
use crate::options::setters;
use crate::owner::{Array, Schema};

/// Options for the conversion to arrow-rs.
#[cfg_attr(feature = "arrow-60", doc = "\n```")]
#[cfg_attr(not(feature = "arrow-60"), doc = "\n```ignore")]
/// use fletching::arrow_60::{Alignment, ToArrow};
///
/// let options = ToArrow::default().alignment(Alignment::Copy).validate(true);
/// assert!(options.validate);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToArrow {
    /// The treatment of misaligned buffers.
    pub alignment: Alignment,
    /// Validates every value with `ArrayData::validate_full`. Offsets must be inside their buffer
    /// in any case.
    pub validate: bool,
}

setters! { ToArrow { alignment: Alignment, validate: bool, } }

/// An arrow-rs array.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Converted {
    /// The array. It keeps the producer's array alive.
    pub array: ArrayRef,
    /// The buffers that were copied: their place, their type and the required alignment.
    pub copied: Vec<String>,
}

/// Converts an array to arrow-rs. For a device array on the CPU, call `Array::try_from` first.
///
/// Ownership: the array is consumed, also on error, and released when the last reference to its
/// buffers is dropped.
///
/// Errors: EINVAL for a released schema or array, for children that do not match the type, for a
/// misaligned buffer, and for errors of arrow-rs; EIO for a panic in arrow-rs.
///
/// # Safety
///
/// The buffers match the type, the length and the offset, including the offsets and buffer sizes
/// stored in them. Without [`validate`](ToArrow::validate), all other values are valid too.
pub unsafe fn to_array(
    schema: &Schema,
    array: Array,
    options: ToArrow,
) -> Result<Converted, Error> {
    // SAFETY: the caller guarantees that the buffers are valid.
    unsafe { convert(array, &to_field(schema)?, options) }
}

/// # Safety
///
/// As for [`to_array`].
pub(crate) unsafe fn convert(
    array: Array,
    field: &Field,
    options: ToArrow,
) -> Result<Converted, Error> {
    check_alive("array", &array)?;
    let data_type = field.data_type();
    guarded(|| {
        // SAFETY: the caller guarantees that the buffers are valid.
        let (array, copied) = unsafe { prepare(array, data_type, options.alignment)? };
        // SAFETY: the caller guarantees that the buffers are valid.
        let mut data = unsafe { from_ffi_and_data_type(move_array(array), data_type.clone())? };
        // Empty buffers may have any address.
        data.align_buffers();
        if options.validate {
            data.validate_full()?;
        }
        let array = make_array(data);
        Ok(Converted { array, copied })
    })
}

/// Converts a struct array to a record batch. Errors: also EINVAL for another type, and for null
/// rows.
///
/// # Safety
///
/// As for [`to_array`].
pub unsafe fn to_record_batch(
    schema: &Schema,
    array: Array,
    options: ToArrow,
) -> Result<RecordBatch, Error> {
    let field = to_field(schema)?;
    let columns = schema_of(&field)?;
    // SAFETY: the caller guarantees that the buffers are valid.
    let converted = unsafe { convert(array, &field, options)? };
    batch(&converted.array, columns)
}

/// The schema of a batch whose columns are the children of a struct field.
pub(crate) fn schema_of(field: &Field) -> Result<SchemaRef, Error> {
    let super::arrow_schema::DataType::Struct(fields) = field.data_type() else {
        return Err(Error::invalid(format!(
            "record batch: wrong type: expected a struct, got {}",
            field.data_type()
        )));
    };
    let schema = super::arrow_schema::Schema::new(fields.clone());
    Ok(Arc::new(schema.with_metadata(field.metadata().clone())))
}

pub(crate) fn batch(array: &ArrayRef, schema: SchemaRef) -> Result<RecordBatch, Error> {
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

/// Converts an arrow-rs array, which is kept alive until the result is released.
///
/// The schema has no name and is nullable, because an arrow-rs array has no field. To keep the
/// name, flags, metadata and the order of a dictionary, use [`from_field`] with the array's field.
///
/// Errors: as for [`from_field`].
pub fn from_array(array: &dyn super::arrow_array::Array) -> Result<(Schema, Array), Error> {
    let schema = from_field(&Field::new("", array.data_type().clone(), true))?;
    guarded(|| Ok((schema, FFI_ArrowArray::new(&array.to_data()).into())))
}

/// Converts a record batch to a struct array, with the metadata of its schema. Errors: as for
/// [`from_field`].
pub fn from_record_batch(batch: &RecordBatch) -> Result<(Schema, Array), Error> {
    let schema = from_schema(&batch.schema())?;
    Ok((schema, from_array(&StructArray::from(batch.clone()))?.1))
}

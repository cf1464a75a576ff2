// SPDX-License-Identifier: Apache-2.0

//! Arrays and record batches.

use std::sync::Arc;

use arrow_array::ffi::{from_ffi_and_data_type, FFI_ArrowArray};
use arrow_array::{make_array, Array as _, ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{Field, SchemaRef};

use super::align::{prepare, Alignment};
use super::field::{from_field, from_schema, to_field};
use super::{check_alive, move_array};
use crate::error::{guarded, Error};
use crate::options::setters;
use crate::owner::{Array, Schema};

/// How an array is converted to arrow-rs.
///
/// ```
/// use fletching::arrow::{Alignment, ToArrow};
///
/// let options = ToArrow::default().alignment(Alignment::Copy).validate(true);
/// assert!(options.validate);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToArrow {
    /// What happens with a buffer that is not aligned.
    pub alignment: Alignment,
    /// Every value is checked, `ArrayData::validate_full`; offsets have to be inside their buffer
    /// in any case.
    pub validate: bool,
}

setters! { ToArrow { alignment: Alignment, validate: bool, } }

/// An array of arrow-rs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Converted {
    /// The array, which keeps the producer's.
    pub array: ArrayRef,
    /// The buffers that were copied: where, for which type, what was expected.
    pub copied: Vec<String>,
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
    unsafe { convert(array, &to_field(schema)?, options) }
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
        let (array, copied) = unsafe { prepare(array, data_type, options.alignment)? };
        // SAFETY: the caller vouches for the buffers.
        let mut data = unsafe { from_ffi_and_data_type(move_array(array), data_type.clone())? };
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
    let field = to_field(schema)?;
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

/// An array of arrow-rs, which is kept until the result is released.
///
/// An array has no field: the schema has no name and is nullable. For the name, flags, metadata
/// and order of a dictionary use [`from_field`] with the array's field.
///
/// Errors: as for [`from_field`].
pub fn from_array(array: &dyn arrow_array::Array) -> Result<(Schema, Array), Error> {
    let schema = from_field(&Field::new("", array.data_type().clone(), true))?;
    guarded(|| Ok((schema, FFI_ArrowArray::new(&array.to_data()).into())))
}

/// A record batch as a struct array, with the metadata of its schema. Errors: as for
/// [`from_field`].
pub fn from_record_batch(batch: &RecordBatch) -> Result<(Schema, Array), Error> {
    let schema = from_schema(&batch.schema())?;
    Ok((schema, from_array(&StructArray::from(batch.clone()))?.1))
}

// SPDX-License-Identifier: Apache-2.0

//! Streams as arrow-rs iterators, and the reverse.

use super::arrow_array::{ArrayRef, RecordBatch, RecordBatchReader, StructArray};
use super::arrow_schema::{ArrowError, Field, SchemaRef};
use fletching_abi::ArrowDeviceType;

use super::convert::{batch, convert, from_array, schema_of, ToArrow};
use super::field::{from_field, from_schema, to_field};
use crate::batch_type::BatchType;
use crate::error::Error;
use crate::owner::{Array, DeviceArray, DeviceArrayStream, Schema};
use crate::stream::{BatchOf, RawStream, StreamReader};

/// The arrays of a stream of any type. Ends after the first error.
#[derive(Debug)]
pub struct Arrays<S: RawStream> {
    reader: StreamReader<S>,
    field: Field,
    options: ToArrow,
    copied: Vec<String>,
    failed: bool,
}

impl<S: RawStream> Arrays<S> {
    /// Reads the schema. Errors: EINVAL for a device stream that is not on the CPU, errors of the
    /// stream, and errors of arrow-rs for the type.
    ///
    /// # Safety
    ///
    /// Every array meets the requirements of [`to_array`](super::to_array).
    pub unsafe fn new(mut reader: StreamReader<S>, options: ToArrow) -> Result<Self, Error> {
        let device_type = reader.device_type();
        if device_type != ArrowDeviceType::CPU {
            return Err(Error::invalid(format!(
                "stream: wrong device type: expected cpu, got {device_type}"
            )));
        }
        Ok(Self {
            field: to_field(&reader.schema()?)?,
            reader,
            options,
            copied: Vec::new(),
            failed: false,
        })
    }

    /// The type of the arrays.
    #[must_use]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// The buffers of the last array that were copied, see [`Converted`](super::Converted).
    #[must_use]
    pub fn copied_buffers(&self) -> &[String] {
        &self.copied
    }
}

impl<S: RawStream> Iterator for Arrays<S>
where
    DeviceArray: From<BatchOf<S>>,
{
    type Item = Result<ArrayRef, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let converted = self.reader.next()?.and_then(|array| {
            let array = Array::try_from(DeviceArray::from(array))?;
            // SAFETY: guaranteed by the caller of `new`.
            unsafe { convert(array, &self.field, self.options) }
        });
        self.failed = converted.is_err();
        Some(converted.map_err(ArrowError::from).map(|converted| {
            self.copied = converted.copied;
            converted.array
        }))
    }
}

/// The record batches of a stream of struct arrays.
#[derive(Debug)]
pub struct RecordBatches<S: RawStream> {
    arrays: Arrays<S>,
    schema: SchemaRef,
}

/// Errors: EINVAL for a stream of a type other than struct.
impl<S: RawStream> TryFrom<Arrays<S>> for RecordBatches<S> {
    type Error = Error;

    fn try_from(arrays: Arrays<S>) -> Result<Self, Error> {
        let schema = schema_of(arrays.field())?;
        Ok(Self { arrays, schema })
    }
}

impl<S: RawStream> Iterator for RecordBatches<S>
where
    DeviceArray: From<BatchOf<S>>,
{
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let array = self.arrays.next()?;
        let rows = array.and_then(|array| Ok(batch(&array, SchemaRef::clone(&self.schema))?));
        self.arrays.failed |= rows.is_err();
        Some(rows)
    }
}

impl<S: RawStream> RecordBatchReader for RecordBatches<S>
where
    DeviceArray: From<BatchOf<S>>,
{
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}

/// Exports arrow-rs arrays as a device stream on the CPU. The stream returns the errors of the
/// iterator, and EINVAL for an array of another type; names, metadata and flags are not compared.
///
/// Errors: as for [`from_field`](super::from_field).
pub fn from_arrays<I>(field: &Field, arrays: I) -> Result<DeviceArrayStream, Error>
where
    I: IntoIterator<Item = Result<ArrayRef, ArrowError>, IntoIter: Send + 'static>,
{
    export(from_field(field)?, arrays)
}

/// Exports the record batches of a reader as a device stream on the CPU. For a stream without
/// devices, use `ArrayStream::from(FFI_ArrowArrayStream::new(reader))`. Errors: as for
/// [`from_field`](super::from_field).
pub fn from_reader<R>(reader: R) -> Result<DeviceArrayStream, Error>
where
    R: RecordBatchReader + Send + 'static,
{
    let schema = from_schema(&reader.schema())?;
    let rows = |batch: RecordBatch| -> ArrayRef { std::sync::Arc::new(StructArray::from(batch)) };
    export(schema, reader.map(move |batch| batch.map(rows)))
}

fn export<I>(schema: Schema, arrays: I) -> Result<DeviceArrayStream, Error>
where
    I: IntoIterator<Item = Result<ArrayRef, ArrowError>, IntoIter: Send + 'static>,
{
    let batch_type = BatchType::of(&schema)?;
    let batches = arrays.into_iter().enumerate().map(move |(number, array)| {
        let (found, array) = from_array(&array?)?;
        let refused = |why| Error::invalid(format!("batch {number}: {why}"));
        batch_type.check_type(&found).map_err(refused)?;
        Ok(array.into())
    });
    DeviceArrayStream::from_batches(schema, ArrowDeviceType::CPU, batches)
}

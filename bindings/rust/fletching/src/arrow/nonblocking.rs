// SPDX-License-Identifier: Apache-2.0

//! An async stream as an asynchronous arrow-rs stream of record batches.

use std::pin::Pin;
use std::task::{ready, Context, Poll};

use super::arrow_array::nonblocking::RecordBatchStream;
use super::arrow_array::RecordBatch;
use super::arrow_schema::{ArrowError, Field, SchemaRef};
use futures_core::Stream;

use super::conversions::convert::{batch, convert, schema_of, ToArrow};
use super::conversions::field::to_field;
use crate::error::Error;
use crate::owner::{Array, DeviceArray, Schema};

/// Converts device arrays on the CPU to record batches as they arrive. Ends after the first error,
/// which drops the source stream.
#[derive(Debug)]
pub struct AsyncRecordBatches<S> {
    /// None after an error.
    arrays: Option<S>,
    field: Field,
    schema: SchemaRef,
    options: ToArrow,
}

impl<S> AsyncRecordBatches<S> {
    /// Makes a stream of the batches of `arrays`, whose type is `schema`. Errors: EINVAL for a type
    /// other than struct, and errors of arrow-rs.
    ///
    /// # Safety
    ///
    /// Every array meets the requirements of [`to_array`](super::to_array).
    pub unsafe fn new(schema: &Schema, arrays: S, options: ToArrow) -> Result<Self, Error> {
        Self::of(to_field(schema)?, arrays, options)
    }

    fn of(field: Field, arrays: S, options: ToArrow) -> Result<Self, Error> {
        Ok(Self {
            arrays: Some(arrays),
            schema: schema_of(&field)?,
            field,
            options,
        })
    }
}

#[cfg(feature = "async")]
impl AsyncRecordBatches<crate::AsyncStream> {
    /// Waits for the schema of `stream`, and makes a stream of its batches. Errors: those of
    /// [`AsyncStream::schema`](crate::AsyncStream::schema) and [`new`](Self::new), which cancel the
    /// stream.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new).
    pub async unsafe fn open(
        mut stream: crate::AsyncStream,
        options: ToArrow,
    ) -> Result<Self, Error> {
        Self::of(to_field(stream.schema().await?)?, stream, options)
    }
}

impl<S> Stream for AsyncRecordBatches<S>
where
    S: Stream<Item = Result<DeviceArray, Error>> + Unpin,
{
    type Item = Result<RecordBatch, ArrowError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(arrays) = &mut self.arrays else {
            return Poll::Ready(None);
        };
        let Some(array) = ready!(Pin::new(arrays).poll_next(context)) else {
            return Poll::Ready(None);
        };
        let rows = array.and_then(Array::try_from).and_then(|array| {
            // SAFETY: guaranteed by the caller of `new`.
            let converted = unsafe { convert(array, &self.field, self.options)? };
            batch(&converted.array, SchemaRef::clone(&self.schema))
        });
        if rows.is_err() {
            self.arrays = None;
        }
        Poll::Ready(Some(rows.map_err(ArrowError::from)))
    }
}

impl<S> RecordBatchStream for AsyncRecordBatches<S>
where
    S: Stream<Item = Result<DeviceArray, Error>> + Unpin,
{
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

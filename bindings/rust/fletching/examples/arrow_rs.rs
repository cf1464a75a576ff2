// SPDX-License-Identifier: Apache-2.0

//! Converts an arrow-rs record batch to a device array and back, without a copy.
//!
//! Prints: the last price is 99

use std::sync::Arc;

use arrow_array_60::{cast::AsArray, types::Float64Type, ArrayRef, Float64Array, RecordBatch};
use fletching::arrow_60::{from_record_batch, to_record_batch, ToArrow};
use fletching::{DeviceArray, Error};

fn main() -> Result<(), Error> {
    let prices: ArrayRef = Arc::new(Float64Array::from(vec![1.5, 20.0, 99.0]));
    let batch = RecordBatch::try_from_iter([("price", prices)])
        .map_err(|error| Error::with_source(libc::EINVAL, "batch", error))?;

    // The producer.
    let (schema, array) = from_record_batch(&batch)?;
    let array = DeviceArray::from(array);

    // The consumer: the array is in host memory and has no event. A buffer that arrow-rs cannot use
    // in place would be an error.
    let array = fletching::Array::try_from(array)?;
    // SAFETY: the buffers come from the batch, so they match the schema.
    let batch = unsafe { to_record_batch(&schema, array, ToArrow::default()) }?;
    let prices = batch.column(0).as_primitive::<Float64Type>();
    println!("the last price is {}", prices.value(prices.len() - 1));
    Ok(())
}

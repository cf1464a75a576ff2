//! Moves a record batch from one version of arrow-rs to another in the same program.

use std::sync::Arc;

use arrow_array_58::{ArrayRef, Int64Array, RecordBatch};
use arrow_array_60::cast::AsArray;
use fletching::{arrow_58, arrow_60, Error};

fn main() -> Result<(), Error> {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let batch = RecordBatch::try_from_iter([("n", numbers)])?;
    let (schema, array) = arrow_58::from_record_batch(&batch)?;
    let options = arrow_60::ToArrow::default();
    // SAFETY: the buffers come from the batch, so they match the schema.
    let there = unsafe { arrow_60::to_record_batch(&schema, array, options) }?;
    let numbers = there.column(0).as_primitive::<arrow_array_60::types::Int64Type>();
    assert_eq!(numbers.iter().collect::<Vec<_>>(), [Some(1), None, Some(3)]);
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0

//! Runs a DataFusion query on the batches of an async device stream, as they arrive.
//!
//! Prints: the sum of the keys above 1 is 11

use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{nonblocking::RecordBatchStream, AsArray};
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::{col, lit, SessionContext};
use fletching::arrow_58::{AsyncRecordBatches, ToArrow};
use fletching::{
    Array, ArrowDeviceType, AsyncHandler, AsyncOptions, AsyncProducer, AsyncStream, DeviceArray,
    Error, SchemaBuilder,
};
use futures::{stream, StreamExt, TryStreamExt};

/// The producer: sends three batches to the handler of a consumer.
async fn produce(handler: AsyncHandler) -> Result<(), Error> {
    let schema = SchemaBuilder::new("+s").child(SchemaBuilder::new("l").name("key"));
    let batches = stream::iter([vec![1, 2], vec![0], vec![9i64]])
        .map(|keys| Ok(DeviceArray::from(Array::from_columns([keys.into()])?)));
    let producer = AsyncProducer::new(schema.build()?, ArrowDeviceType::CPU, batches);
    producer.send(handler).await
}

/// A table over the stream. A second query finds no rows.
#[derive(Debug)]
struct Once(SchemaRef, Mutex<Option<AsyncRecordBatches<AsyncStream>>>);

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.0
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = self.1.lock().expect("no panic").take();
        let batches = stream::iter(batches).flatten().map_err(Into::into);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.0), batches))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (handler, stream) = AsyncStream::new(AsyncOptions::default().window(2));
    let producer = tokio::spawn(produce(handler));
    // SAFETY: the producer, above, sends arrays of its schema.
    let batches = unsafe { AsyncRecordBatches::open(stream, ToArrow::default()) }.await?;
    let schema = Arc::clone(batches.schema());
    let table = Arc::new(Once(Arc::clone(&schema), Mutex::new(Some(batches))));
    let query = SessionContext::new()
        .read_table(Arc::new(StreamingTable::try_new(schema, vec![table])?))?
        .filter(col("key").gt(lit(1)))?
        .aggregate(vec![], vec![sum(col("key"))])?;
    let sums = query.collect().await?;
    producer.await??;
    let sum = sums[0].column(0).as_primitive::<Int64Type>().value(0);
    println!("the sum of the keys above 1 is {sum}");
    Ok(())
}

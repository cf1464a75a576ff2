// SPDX-License-Identifier: Apache-2.0

//! Sends batches from an async stream, and receives them on another thread with back-pressure.
//!
//! Prints: a batch of 3

use fletching::{
    Array, ArrowDeviceType, AsyncHandler, AsyncOptions, AsyncProducer, AsyncStream, Error,
    SchemaBuilder,
};
use smol::stream::{iter, StreamExt};

/// The producer: sends batches to a consumer's handler, on a separate executor.
async fn produce(handler: AsyncHandler) -> Result<(), Error> {
    let schema = SchemaBuilder::new("l").name("key").build()?;
    let batches = iter(1..=3).map(|length| {
        let values: Vec<i64> = (0..length).collect();
        Ok(fletching::DeviceArray::from(Array::from(values)))
    });
    let producer = AsyncProducer::new(schema, ArrowDeviceType::CPU, batches);
    producer.send(handler).await
}

fn main() -> Result<(), Error> {
    // At most two batches are in flight.
    let (handler, mut stream) = AsyncStream::new(AsyncOptions::default().window(2));
    let producer = std::thread::spawn(move || smol::block_on(produce(handler)));
    smol::block_on(async {
        println!("schema {:?}", stream.schema().await?.name());
        while let Some(batch) = stream.next().await {
            println!("a batch of {}", batch?.length());
        }
        Ok::<_, Error>(())
    })?;
    producer.join().expect("the producer does not panic")
}

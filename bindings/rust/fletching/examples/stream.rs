// SPDX-License-Identifier: Apache-2.0

//! Exports an iterator of batches as a device stream, and reads it as a consumer.
//!
//! Prints: a batch of 3

use fletching::abi::ArrowDeviceArrayStream;
use fletching::{Array, ArrowDeviceType, DeviceArrayStream, Error, SchemaBuilder};

/// The producer. In a real program, this is a C function.
fn produce(out: &mut ArrowDeviceArrayStream) -> Result<(), Error> {
    let schema = SchemaBuilder::new("l").name("key").build()?;
    let batches = (1..=3).map(|length| Ok(Array::from((0..length).collect::<Vec<i64>>()).into()));
    *out = DeviceArrayStream::from_batches(schema, ArrowDeviceType::CPU, batches)?.into_raw();
    Ok(())
}

fn main() -> Result<(), Error> {
    let mut raw = ArrowDeviceArrayStream::zeroed();
    produce(&mut raw)?;
    // SAFETY: the producer has filled the struct, and no other code releases it.
    let stream = unsafe { DeviceArrayStream::from_raw(raw) };
    for batch in stream {
        println!("a batch of {}", batch?.length());
    }
    Ok(())
}

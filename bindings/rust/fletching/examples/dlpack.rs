// SPDX-License-Identifier: Apache-2.0

//! Exports a column as a DLPack tensor, and imports the tensor as an array, without a copy.
//!
//! Prints: format "f", last value 3.5

use fletching::dlpack::{from_dlpack, to_dlpack};
use fletching::{Array, DeviceArray, Error, SchemaBuilder};

fn main() -> Result<(), Error> {
    let schema = SchemaBuilder::new("f").build()?;
    let mut column = DeviceArray::from(Array::from(vec![1.5f32, 2.5, 3.5]));
    let tensor = to_dlpack(&schema, &mut column, &Default::default())?;
    println!("a tensor of {:?}", tensor.tensor()?.ndim);

    // To pass the tensor to a C function, use tensor.into_raw().
    let imported = from_dlpack(tensor, &Default::default())?;
    let (values, length) = (imported.array.buffers()[1], imported.array.length());
    // SAFETY: the address points to the values of the Vec above, in CPU memory.
    let values = unsafe { std::slice::from_raw_parts(values.cast::<f32>(), length as usize) };
    println!(
        "format {:?}, last value {}",
        imported.schema.format(),
        values[2]
    );
    Ok(())
}

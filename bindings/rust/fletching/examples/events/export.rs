// SPDX-License-Identifier: Apache-2.0

//! Exports an array while a CUDA stream still writes to it. Its event completes when the stream is
//! done.

use std::ptr;

use fletching::runtime::Stream;
use fletching::{
    ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Error, Node,
};

use crate::cuda::{self, DeviceMemory};

pub fn produce(length: usize, stream: &Stream) -> Result<DeviceArray, Error> {
    let memory = DeviceMemory::new(length)?;
    cuda::fill(&memory, 7, stream)?; // in place of your kernels

    let capacity = ArrayCapacity {
        arrays: 0,
        buffers: 2,
    };
    let mut builder = ArrayBuilder::new(capacity, memory)?;
    let buffers = [ptr::null(), builder.object().address()];
    builder.set(Node::ROOT, ArrayValues::of(length as i64), &buffers);
    let mut array = builder.finish_on(ArrowDeviceType::CUDA, 0)?;
    array.export_with_event(stream)?;
    Ok(array)
}

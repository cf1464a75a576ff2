// SPDX-License-Identifier: Apache-2.0

//! A DLPack tensor as a device array, without a copy unless the caller asks for one.

use std::ptr;

use fletching_abi::{
    ArrowDeviceType, DLPACK_FLAG_BITMASK_IS_COPIED, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED,
    DLPACK_FLAG_BITMASK_READ_ONLY,
};

use super::extension::{TensorShape, BOOL8, FIXED_SHAPE_TENSOR, NAME_KEY, PARAMETERS_KEY};
use super::layout::{Arrangement, Layout};
use super::options::{Dimensions, ImportOptions, Strided};
use super::tensor::{ManagedTensor, Tensor};
use super::types::{arrow_type, is_host_readable, ArrowType};
use crate::array_builder::{ArrayBuilder, ArrayCapacity, ArrayValues, Node};
use crate::error::Error;
use crate::owner::{DeviceArray, Schema};
use crate::schema_builder::SchemaBuilder;

/// A tensor as Arrow has it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Imported {
    /// The type of the array; it has no name.
    pub schema: Schema,
    /// The values. Without a stream in the options it has no `sync_event`.
    pub array: DeviceArray,
    /// The memory is read-only. Always true for a struct without the flag.
    pub read_only: bool,
    /// The memory is a copy for this import only, made by the producer or here.
    pub copied: bool,
}

/// `tensor` as a schema and a device array.
///
/// Shape: the first dimension is the array's length; the others become arrow.fixed_shape_tensor or
/// fixed-size lists, as the options say. A tensor without dimensions is an array of length 1.
/// `byte_offset` is added to the pointer, or to `ArrowArray.offset` where the memory has no
/// addresses. NULL strides mean compact ones, whatever the version. A copy that is made here is on
/// the CPU, and has no event.
///
/// Ownership: the tensor is consumed in any case. Its deleter is called when the array and every
/// child moved out of it are released, from whatever thread; at once when the import fails or
/// copies. DLPack has no counterpart to the event when the array is released: work that may still
/// read it then has to be waited for.
///
/// Errors: ENOTSUP for types, layouts and strides that Arrow has not and for another major version,
/// of which nothing but the deleter is used; EINVAL for a malformed tensor; ENOMEM; and the errors
/// of recording an event.
///
/// Text: dlpack.h.
pub fn from_dlpack<M: ManagedTensor>(
    tensor: Tensor<M>,
    options: &ImportOptions,
) -> Result<Imported, Error> {
    let (raw, flags) = tensor.read()?;
    let is_set = |flag| flags & flag != 0;
    let is_padded = is_set(DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
    let element = arrow_type(raw.dtype, options.as_storage, is_padded)?;
    let layout = Layout::read(raw, &element)?;
    let arranged = layout.arrange(raw, options.dimensions);
    let device_type = ArrowDeviceType::from(raw.device.device_type);
    let device_id = match device_type {
        ArrowDeviceType::CPU => -1,
        _ => raw.device.device_id.into(),
    };
    let is_copied = match (&arranged, options.strided) {
        (Err(error), Strided::Copy(_)) => {
            error.code() == crate::errno::ENOTSUP && is_host_readable(device_type)
        }
        _ => false,
    };
    if is_copied {
        if let Some(stream) = &options.stream {
            stream.finish((device_type, device_id))?;
        }
        // SAFETY: the promise of Strided::Copy. What has no place but for ENOTSUP has data.
        let values = unsafe { layout.copy(raw) }?;
        let arrangement = Arrangement {
            order: (1..layout.dimensions.len()).collect(),
            buffer: values.as_ptr().cast(),
            offset: 0,
        };
        let device = (ArrowDeviceType::CPU, -1);
        let (schema, array) = build(&layout, &element, &arrangement, options, device, values)?;
        return Ok(Imported {
            schema,
            array,
            read_only: false,
            copied: true,
        });
    }
    let device = (device_type, device_id);
    let (schema, mut array) = build(&layout, &element, &arranged?, options, device, tensor)?;
    if let Some(stream) = &options.stream {
        stream.record(&mut array)?;
    }
    Ok(Imported {
        schema,
        array,
        read_only: is_set(DLPACK_FLAG_BITMASK_READ_ONLY),
        copied: is_set(DLPACK_FLAG_BITMASK_IS_COPIED),
    })
}

/// The lists around the values, from the outside in: how long each is, and the parameters of
/// arrow.fixed_shape_tensor when it is one.
fn lists_around(
    layout: &Layout,
    order: &[usize],
    wanted: Dimensions,
) -> Result<Vec<(i64, Option<String>)>, Error> {
    let shape: Vec<i64> = order
        .iter()
        .map(|axis| layout.dimensions[*axis].extent)
        .collect();
    let lists = if wanted == Dimensions::FixedSizeLists || shape.is_empty() {
        shape.into_iter().map(|size| (size, None)).collect()
    } else {
        let size = match shape.contains(&0) {
            true => 0,
            false => shape
                .iter()
                .fold(1i64, |size, extent| size.saturating_mul(*extent)),
        };
        let mut permutation = vec![0; order.len()];
        for (index, axis) in order.iter().enumerate() {
            permutation[axis - 1] = index;
        }
        vec![(size, Some(TensorShape { shape, permutation }.to_json()))]
    };
    ensure!(
        lists.iter().all(|(size, _)| *size <= i32::MAX.into()),
        ENOTSUP,
        "DLTensor.shape: inner dimensions too large for a fixed-size list: expected at most \
         2147483647 elements"
    );
    Ok(lists)
}

/// Lists within each other around the values; `memory` owns these.
fn build<T: Send + 'static>(
    layout: &Layout,
    element: &ArrowType,
    arrangement: &Arrangement,
    options: &ImportOptions,
    (device_type, device_id): (ArrowDeviceType, i64),
    memory: T,
) -> Result<(Schema, DeviceArray), Error> {
    let lists = lists_around(layout, &arrangement.order, options.dimensions)?;
    let mut schema = SchemaBuilder::new(element.format);
    if element.is_bool {
        schema = schema
            .metadata(NAME_KEY, BOOL8)
            .metadata(PARAMETERS_KEY, "");
    }
    for (size, parameters) in lists.iter().rev() {
        schema = SchemaBuilder::new(format!("+w:{size}")).child(schema.name("item"));
        if let Some(parameters) = parameters {
            schema = schema
                .metadata(NAME_KEY, FIXED_SHAPE_TENSOR)
                .metadata(PARAMETERS_KEY, parameters.as_str());
        }
    }
    let capacity = ArrayCapacity {
        arrays: lists.len(),
        buffers: lists.len() + 2,
    };
    let mut builder = ArrayBuilder::new(capacity, memory)?;
    let mut node = Node::ROOT;
    let mut length = layout.dimensions.first().map_or(1, |rows| rows.extent);
    for (size, _) in &lists {
        builder.set(node, ArrayValues::of(length), &[ptr::null()]);
        node = builder.add_children(node, 1);
        length = match length.checked_mul(*size) {
            Some(length) => length,
            None => bail!(
                EINVAL,
                "DLTensor.shape: too many elements: expected less than 2^63; hint: fix the producer"
            ),
        };
    }
    let values = ArrayValues {
        offset: arrangement.offset,
        ..ArrayValues::of(length)
    };
    builder.set(node, values, &[ptr::null(), arrangement.buffer]);
    Ok((schema.build()?, builder.finish_on(device_type, device_id)?))
}

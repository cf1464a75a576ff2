// SPDX-License-Identifier: Apache-2.0

//! A DLPack tensor as a device array, without a copy unless the caller asks for one.

use std::ptr;

use fletching_abi::{DLPACK_FLAG_BITMASK_IS_COPIED, DLPACK_FLAG_BITMASK_READ_ONLY};

use super::options::ImportOptions;
use super::stream::ConsumerStream;
use super::tensor::{ManagedTensor, Tensor};
use crate::c_core::checked;
use crate::error::Error;
use crate::owner::{DeviceArray, Schema};

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
    let (mut schema, mut array, mut flags) = (Schema::default(), DeviceArray::default(), 0);
    let stream = options.stream.map(ConsumerStream::to_core);
    let stream = stream.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the tensor is as Tensor::from_raw asks for it, and a stream as its read does. The core
    // takes the tensor in any case, and fills released structs. It reads no element but for a copy,
    // which needs the promise of Strided::Copy.
    unsafe {
        checked("from_dlpack", |message| {
            let (schema, array) = (schema.out(), array.out());
            let options = options.to_core();
            M::import(
                tensor.into_raw(),
                stream,
                options,
                schema,
                array,
                &mut flags,
                message,
            )
        })?;
    }
    Ok(Imported {
        schema,
        array,
        read_only: flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0,
        copied: flags & DLPACK_FLAG_BITMASK_IS_COPIED != 0,
    })
}

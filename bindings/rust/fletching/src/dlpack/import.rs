// SPDX-License-Identifier: Apache-2.0

//! Imports a DLPack tensor as a device array, without a copy unless the caller requests one.

use std::ptr;

use fletching_abi::{DLPACK_FLAG_BITMASK_IS_COPIED, DLPACK_FLAG_BITMASK_READ_ONLY};

use super::options::ImportOptions;
use super::stream::ConsumerStream;
use super::tensor::{ManagedTensor, Tensor};
use crate::c_core::checked;
use crate::error::Error;
use crate::owner::{DeviceArray, Schema};

/// The result of an import.
#[derive(Debug)]
#[non_exhaustive]
pub struct Imported {
    /// The type of the array, without a name.
    pub schema: Schema,
    /// The values. They have a `sync_event` only if the options have a stream.
    pub array: DeviceArray,
    /// Whether the memory is read-only. Always true for a struct without this flag.
    pub read_only: bool,
    /// Whether the memory is a copy for this import only, made by the producer or by the import.
    pub copied: bool,
}

/// Imports `tensor` as a schema and a device array.
///
/// Shape: the first dimension is the array's length; the others are arrow.fixed_shape_tensor or
/// fixed-size lists, depending on the options. A tensor without dimensions is an array of length 1.
/// `byte_offset` is added to the pointer, or to `ArrowArray.offset` if the memory has no addresses.
/// NULL strides mean compact strides, in every version. A copy made by the import is on the CPU and
/// has no event.
///
/// Ownership: the tensor is always consumed. Its deleter is called when the array and every child
/// moved out of it are released, on any thread, or at once if the import fails or copies. DLPack
/// has no event for the release of the array, so wait for work that may still read it before you
/// release it.
///
/// Errors: ENOTSUP for types, layouts and strides that Arrow lacks, and for another major version,
/// of which only the deleter is used; EINVAL for a malformed tensor; ENOMEM; and the errors of
/// recording an event.
///
/// See dlpack.h.
pub fn from_dlpack<M: ManagedTensor>(
    tensor: Tensor<M>,
    options: &ImportOptions,
) -> Result<Imported, Error> {
    let (mut schema, mut array, mut flags) = (Schema::default(), DeviceArray::default(), 0);
    let stream = options.stream.map(ConsumerStream::to_core);
    let stream = stream.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the tensor meets the contract of `Tensor::from_raw`, and the stream the contract of
    // `ConsumerStream::read`. The core always takes the tensor, and fills released structs. It
    // reads elements only for a copy, with the guarantee of Strided::Copy.
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

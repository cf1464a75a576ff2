// SPDX-License-Identifier: Apache-2.0

//! Exports a device array as a DLPack tensor, without a copy.

use std::ptr;

use fletching_abi::{
    DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLPACK_MAJOR_VERSION,
};

use super::options::ExportOptions;
use super::stream::ConsumerStream;
use super::tensor::{DlpackTensor, LegacyDlpackTensor, ManagedTensor, Tensor};
use crate::c_core::checked;
use crate::error::Error;
use crate::handover::Handover;
use crate::owner::{DeviceArray, Schema};

/// Exports `array`, whose type is `schema`, as a tensor.
///
/// Shape: the array's length, then one dimension for each fixed-size list around the values, or the
/// dimensions of arrow.fixed_shape_tensor. Strides are always set, in elements. Nothing is copied.
/// A tensor without elements has a NULL pointer.
///
/// Ownership: on success, the array is moved into the tensor, whose deleter releases it, on any
/// thread. On failure, the caller keeps the array.
///
/// Errors: ENOTSUP for a type or nulls that DLPack lacks; EINVAL for a malformed schema or array,
/// for a released descendant, and for an event without `stream` and `event_handled`; ERANGE for a
/// device id; ENOMEM; and the errors of the wait for the event.
///
/// See dlpack.h and `__dlpack__` in the Python array API.
pub fn to_dlpack(
    schema: &Schema,
    array: &mut DeviceArray,
    options: &ExportOptions,
) -> Result<DlpackTensor, Error> {
    export::<DLManagedTensorVersioned>("to_dlpack", schema, array, options)
}

/// [`to_dlpack`] for the struct used before DLPack 1.0. The struct cannot mark memory as read-only
/// or as a copy: EINVAL unless `access` is [`Access::Writable`](super::Access::Writable). It also
/// has no flag for values that are padded to a byte: ENOTSUP.
pub fn to_legacy_dlpack(
    schema: &Schema,
    array: &mut DeviceArray,
    options: &ExportOptions,
) -> Result<LegacyDlpackTensor, Error> {
    export::<DLManagedTensor>("to_legacy_dlpack", schema, array, options)
}

/// Whether a consumer that passes this `max_version` to `__dlpack__` expects [`to_legacy_dlpack`].
#[must_use]
pub fn is_legacy_expected(max_version: Option<DLPackVersion>) -> bool {
    max_version.is_none_or(|version| version.major < DLPACK_MAJOR_VERSION)
}

fn export<M: ManagedTensor>(
    operation: &str,
    schema: &Schema,
    array: &mut DeviceArray,
    options: &ExportOptions,
) -> Result<Tensor<M>, Error> {
    let stream = options.stream.map(ConsumerStream::to_core);
    let stream = stream.as_ref().map_or(ptr::null(), ptr::from_ref);
    let mut tensor = ptr::null_mut();
    // SAFETY: both structs meet the contract of `Owner::from_raw`, and the stream the contract of
    // `ConsumerStream::read`. The core moves the array out of the owner. It only reads validity
    // bitmaps, and only with the guarantee of Nulls::Count.
    unsafe {
        checked(operation, |message| {
            let array = array.as_mut_ptr();
            let options = options.to_core();
            M::export(
                schema.as_raw(),
                array,
                stream,
                options,
                &mut tensor,
                message,
            )
        })?;
        Tensor::new(tensor, Handover::Export)
    }
}

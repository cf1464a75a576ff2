// SPDX-License-Identifier: Apache-2.0

//! A device array as a DLPack tensor, without a copy.

use std::ptr;

use fletching_abi::{
    DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLPACK_MAJOR_VERSION,
};

use super::options::ExportOptions;
use super::stream::{ConsumerStream, Ordering};
use super::tensor::{DlpackTensor, LegacyDlpackTensor, ManagedTensor, Tensor};
use crate::c_core::checked;
use crate::error::Error;
use crate::owner::{DeviceArray, Schema};

/// `array`, whose type is `schema`, as a tensor.
///
/// Shape: the array's length, then one dimension for each fixed-size list around the values, or the
/// dimensions of arrow.fixed_shape_tensor. Strides are always set, in elements. Nothing is copied;
/// a tensor without elements has a NULL pointer.
///
/// Ownership: on success the array has moved into the tensor, whose deleter releases it, from
/// whatever thread. On failure it is still the caller's.
///
/// Errors: ENOTSUP for a type or nulls that DLPack has not, EINVAL for a malformed schema or array,
/// for one of which a part is released, and for an event without `stream` and `event_handled`,
/// ERANGE for a device id, ENOMEM, and the errors of the wait for the event.
///
/// Text: dlpack.h; array API, `__dlpack__`.
pub fn to_dlpack(
    schema: &Schema,
    array: &mut DeviceArray,
    options: &ExportOptions,
) -> Result<DlpackTensor, Error> {
    export::<DLManagedTensorVersioned>(schema, array, options)
}

/// The same as the struct from before DLPack 1.0. It cannot say that memory is read-only or a copy:
/// EINVAL unless `access` is [`Access::Writable`](super::Access::Writable). ENOTSUP for values that
/// are padded to a byte, for which it has no flag either.
pub fn to_legacy_dlpack(
    schema: &Schema,
    array: &mut DeviceArray,
    options: &ExportOptions,
) -> Result<LegacyDlpackTensor, Error> {
    export::<DLManagedTensor>(schema, array, options)
}

/// Whether a consumer that passes this `max_version` to `__dlpack__` expects [`to_legacy_dlpack`].
#[must_use]
pub fn is_legacy_expected(max_version: Option<DLPackVersion>) -> bool {
    max_version.is_none_or(|version| version.major < DLPACK_MAJOR_VERSION)
}

fn export<M: ManagedTensor>(
    schema: &Schema,
    array: &mut DeviceArray,
    options: &ExportOptions,
) -> Result<Tensor<M>, Error> {
    // The part that may fail with a text about this crate's functions.
    let operation = match options.stream.map(|stream| stream.ordering()) {
        Some(Ordering::Host) => "synchronize",
        Some(Ordering::Stream(_)) => "wait_on",
        _ => "to_dlpack",
    };
    let stream = options.stream.map(ConsumerStream::to_core);
    let stream = stream.as_ref().map_or(ptr::null(), ptr::from_ref);
    let mut tensor = ptr::null_mut();
    // SAFETY: both structs are as Owner::from_raw asks for them, and a stream as its read does. The
    // core moves the array out of the owner. It reads no buffer but validity bitmaps, and these only
    // with the promise of Nulls::Count.
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
        Tensor::from_raw(tensor)
    }
}

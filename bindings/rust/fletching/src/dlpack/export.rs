// SPDX-License-Identifier: Apache-2.0

//! A device array as a DLPack tensor, without a copy.

use std::ffi::c_void;
use std::ptr;

use fletching_abi::{
    ArrowDeviceType, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
    DLPACK_FLAG_BITMASK_IS_COPIED, DLPACK_FLAG_BITMASK_READ_ONLY, DLPACK_MAJOR_VERSION,
};

use super::options::{Access, ExportOptions};
use super::stream::Ordering;
use super::tensor::{DlpackTensor, LegacyDlpackTensor, ManagedTensor, Tensor};
use super::types::{dlpack_device, is_address, is_host_readable};
use super::walk::{View, Walk};
use crate::error::{discard, Error};
use crate::owner::{Array, DeviceArray, Schema};

/// The alignment of `DLTensor.data`.
const ALIGNMENT: usize = 256;

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
/// ERANGE for a device id, and the errors of the wait for the event.
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
/// EINVAL unless `access` is [`Access::Writable`].
pub fn to_legacy_dlpack(
    schema: &Schema,
    array: &mut DeviceArray,
    options: &ExportOptions,
) -> Result<LegacyDlpackTensor, Error> {
    ensure!(
        !matches!(options.access, Access::ReadOnly),
        EINVAL,
        "DLManagedTensor: no flag for read-only memory; hint: export a versioned tensor, or pass \
         Access::Writable"
    );
    export::<DLManagedTensor>(schema, array, options)
}

/// Whether a consumer that passes this `max_version` to `__dlpack__` expects [`to_legacy_dlpack`].
#[must_use]
pub fn is_legacy_expected(max_version: Option<DLPackVersion>) -> bool {
    max_version.is_none_or(|version| version.major < DLPACK_MAJOR_VERSION)
}

/// The tensor, and what it keeps.
#[repr(C)]
struct Exported<M> {
    managed: M,
    _kept: (DeviceArray, Vec<i64>, Vec<i64>),
}

unsafe extern "C" fn delete<M: ManagedTensor>(this: *mut M) {
    // SAFETY: the consumer passes a tensor of `export`, once. It is the first of what was allocated.
    discard(unsafe { Box::from_raw(this.cast::<Exported<M>>()) });
}

fn export<M: ManagedTensor>(
    schema: &Schema,
    array: &mut DeviceArray,
    options: &ExportOptions,
) -> Result<Tensor<M>, Error> {
    ensure!(
        !schema.is_released() && !array.is_released(),
        EINVAL,
        "to_dlpack: schema or array is released: expected live ones"
    );
    let has_event = !array.sync_event().is_null();
    let has_waited = match &options.stream {
        Some(stream) => stream.wait_for(array)? == Ordering::Host,
        None => false,
    };
    ensure!(
        !has_event || options.stream.is_some() || options.event_handled.is_some(),
        EINVAL,
        "ArrowDeviceArray.sync_event: not NULL: expected NULL, because a tensor has no event; hint: \
         pass the consumer's stream, or wait and pass event_handled"
    );
    let device_type = array.device_type();
    let walk = Walk {
        options,
        host_readable: (has_waited || !has_event) && is_host_readable(device_type),
        levels: Vec::new(),
    };
    // SAFETY: an owner is laid out as its struct, of which the array is the first member.
    let view = walk.run(schema, unsafe { &*ptr::from_ref(&*array).cast::<Array>() })?;
    let device = dlpack_device(device_type, array.device_id())?;
    let (data, byte_offset) = place(&view, device_type, options.aligned)?;
    let (mut shape, mut strides): (Vec<_>, Vec<_>) = view.dimensions.into_iter().unzip();
    let tensor = DLTensor {
        data,
        device,
        ndim: shape.len() as i32,
        dtype: view.dtype,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset,
    };
    let flags = match options.access {
        Access::ReadOnly => DLPACK_FLAG_BITMASK_READ_ONLY,
        Access::Writable(_) => 0,
        Access::Copied(_) => DLPACK_FLAG_BITMASK_IS_COPIED,
    };
    let exported = Box::into_raw(Box::new(Exported {
        managed: M::new(tensor, flags, delete::<M>),
        _kept: (std::mem::take(array), shape, strides),
    }));
    // SAFETY: the tensor is ours; the lists are on the heap.
    unsafe { Tensor::from_raw(exported.cast()) }
}

/// The members data and byte_offset.
fn place(
    view: &View,
    device_type: ArrowDeviceType,
    aligned: bool,
) -> Result<(*mut c_void, u64), Error> {
    let item = i64::from(view.dtype.bits / 8);
    let (skipped, end) = (view.first * item, (view.first + view.count) * item);
    let buffer = view.buffer.cast_mut();
    if view.count == 0 {
        return Ok((ptr::null_mut(), 0));
    }
    if !is_address(device_type) {
        return Ok((buffer, skipped as u64));
    }
    ensure!(
        usize::try_from(end).is_ok_and(|end| end <= usize::MAX - buffer.addr()),
        EINVAL,
        "ArrowArray: offset or length out of range: expected elements within the address space; \
         hint: fix the producer"
    );
    let first = buffer.wrapping_byte_add(skipped as usize);
    let byte_offset = if aligned { first.addr() % ALIGNMENT } else { 0 };
    Ok((first.wrapping_byte_sub(byte_offset), byte_offset as u64))
}

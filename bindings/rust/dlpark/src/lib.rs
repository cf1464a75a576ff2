// SPDX-License-Identifier: Apache-2.0

//! Conversions between `fletching` and `dlpark` tensors, for `tests/`.

use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use dlpark::Managed;
use fletching::dlpack::{DlpackTensor, LegacyDlpackTensor};

/// Moves the tensor to dlpark.
pub fn to_dlpark(tensor: DlpackTensor) -> Managed<DLManagedTensorVersioned> {
    // SAFETY: both types are the struct of dlpack.h, and the tensor is owned.
    unsafe { Managed::from_raw(tensor.into_raw().cast()) }.unwrap()
}

/// Moves a legacy tensor, from before DLPack 1.0, to dlpark.
pub fn to_legacy_dlpark(tensor: LegacyDlpackTensor) -> Managed<DLManagedTensor> {
    // SAFETY: as above.
    unsafe { Managed::from_raw(tensor.into_raw().cast()) }.unwrap()
}

/// Moves the tensor from dlpark.
pub fn from_dlpark(tensor: Managed<DLManagedTensorVersioned>) -> DlpackTensor {
    // SAFETY: as above.
    unsafe { DlpackTensor::from_raw(tensor.into_raw().cast()) }.unwrap()
}

/// Moves a legacy tensor, from before DLPack 1.0, from dlpark.
pub fn from_legacy_dlpark(tensor: Managed<DLManagedTensor>) -> LegacyDlpackTensor {
    // SAFETY: as above.
    unsafe { LegacyDlpackTensor::from_raw(tensor.into_raw().cast()) }.unwrap()
}

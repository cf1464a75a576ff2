// SPDX-License-Identifier: Apache-2.0

//! Tensors over the caller's memory, without an Arrow schema.

use std::ffi::c_void;
use std::ptr;

use fletching_abi::{DLDataType, DLDevice, DLDeviceType, DLTensor, DLPACK_FLAG_BITMASK_READ_ONLY};

use super::element::DlpackElement;
use super::tensor::{DlpackTensor, Tensor};
use crate::c_core::call;
use crate::error::{discard, Error};
use crate::handover::Handover;

/// The description of a tensor: `TensorParts::new(data, dtype, &[2, 3]).read_only()`. The defaults
/// are CPU memory, row-major order and write access.
#[derive(Clone, Debug)]
pub struct TensorParts<'a> {
    data: *mut c_void,
    byte_offset: u64,
    dtype: DLDataType,
    shape: &'a [i64],
    strides: Option<&'a [i64]>,
    device: DLDevice,
    flags: u64,
}

impl<'a> TensorParts<'a> {
    /// `data` is the address of the first element, or the handle of a buffer.
    #[must_use]
    pub fn new(data: *mut c_void, dtype: DLDataType, shape: &'a [i64]) -> Self {
        Self {
            data,
            byte_offset: 0,
            dtype,
            shape,
            strides: None,
            device: CPU,
            flags: 0,
        }
    }

    /// Sets the distance from `data` to the first element, in bytes.
    #[must_use]
    pub fn byte_offset(mut self, byte_offset: u64) -> Self {
        self.byte_offset = byte_offset;
        self
    }

    /// Sets the distance to the next element in each dimension, in elements.
    #[must_use]
    pub fn strides(mut self, strides: &'a [i64]) -> Self {
        self.strides = Some(strides);
        self
    }

    /// Sets the device of the memory.
    #[must_use]
    pub fn device(mut self, device: DLDevice) -> Self {
        self.device = device;
        self
    }

    /// Forbids the consumer to write to the memory.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
        self
    }

    /// Sets all `DLPACK_FLAG_BITMASK_...` flags.
    #[must_use]
    pub fn flags(mut self, flags: u64) -> Self {
        self.flags = flags;
        self
    }
}

/// Device 0 of type 1, `kDLCPU`.
const CPU: DLDevice = DLDevice {
    device_type: DLDeviceType(1),
    device_id: 0,
};

impl DlpackTensor {
    /// Makes a tensor from a `Vec` of values in row-major order, without a copy. The consumer may
    /// write to them. Errors: EINVAL unless the product of the sizes is the number of values;
    /// ENOMEM.
    ///
    /// ```
    /// use fletching::dlpack::DlpackTensor;
    ///
    /// let tensor = DlpackTensor::from_vec(vec![1.5f32, 2.5, 3.5, 4.5], &[2, 2])?;
    /// assert_eq!(tensor.shape()?, [2, 2]);
    /// # Ok::<(), fletching::Error>(())
    /// ```
    pub fn from_vec<T: DlpackElement>(values: Vec<T>, shape: &[i64]) -> Result<Self, Error> {
        const OPERATION: &str = "DlpackTensor::from_vec";
        check_count(OPERATION, shape, values.len())?;
        let owner = Box::into_raw(Box::new(values));
        // SAFETY: the list does not move, and nobody else uses it.
        unsafe {
            let data = (*owner).as_mut_ptr().cast();
            create(OPERATION, &TensorParts::new(data, T::DTYPE, shape), owner)
        }
    }

    /// Makes a read-only tensor from the values in a list of any owner type, in row-major order and
    /// without a copy: `Arc<[T]>`, `bytes::Bytes` as `u8`, a memory map. The owner is dropped with
    /// the tensor, on any thread. Errors: as for [`from_vec`](Self::from_vec).
    pub fn from_values<T: DlpackElement>(
        owner: impl AsRef<[T]> + Send + 'static,
        shape: &[i64],
    ) -> Result<Self, Error> {
        const OPERATION: &str = "DlpackTensor::from_values";
        let owner = Box::into_raw(Box::new(owner));
        // SAFETY: the owner does not move, and is borrowed until it is dropped.
        unsafe {
            // Borrow after boxing, because a slice may be inside the owner itself.
            let values: &[T] = (*owner).as_ref();
            if let Err(error) = check_count(OPERATION, shape, values.len()) {
                drop(Box::from_raw(owner));
                return Err(error);
            }
            let data = values.as_ptr().cast_mut().cast();
            create(
                OPERATION,
                &TensorParts::new(data, T::DTYPE, shape).read_only(),
                owner,
            )
        }
    }

    /// Makes a tensor of memory that `owner` keeps alive. The owner is dropped with the tensor, on
    /// any thread. Errors: EINVAL for a negative size, more than 64 dimensions, 2^63 or more
    /// elements, a wrong number of strides, and an unknown flag; ENOMEM. After an error, the owner
    /// is dropped.
    ///
    /// # Safety
    ///
    /// While the owner is alive, the memory matches the parts: every element is on the device, and
    /// may be read by any code and, unless it is read-only, written. Pending work on it is done, or
    /// the consumer's work is ordered after it.
    pub unsafe fn from_parts<T: Send + 'static>(
        parts: &TensorParts<'_>,
        owner: T,
    ) -> Result<Self, Error> {
        // SAFETY: the caller guarantees that the memory is valid; the owner is new.
        unsafe {
            create(
                "DlpackTensor::from_parts",
                parts,
                Box::into_raw(Box::new(owner)),
            )
        }
    }
}

/// [`from_parts`](DlpackTensor::from_parts) for an owner made by `Box::into_raw`.
///
/// # Safety
///
/// As for `from_parts`, and no other code uses `owner`.
unsafe fn create<T: Send + 'static>(
    operation: &str,
    parts: &TensorParts<'_>,
    owner: *mut T,
) -> Result<DlpackTensor, Error> {
    // SAFETY: the caller guarantees that no other code uses `owner`; it is dropped only if no
    // tensor owns it.
    let give_back = |error| unsafe {
        drop(Box::from_raw(owner));
        Err(error)
    };
    let strides = parts.strides.unwrap_or_default();
    if parts.strides.is_some() && strides.len() != parts.shape.len() {
        return give_back(Error::invalid(format!(
            "{operation}: DLTensor.strides: wrong number: expected {}, got {}",
            parts.shape.len(),
            strides.len()
        )));
    }
    let is_empty = parts.shape.contains(&0);
    let like = DLTensor {
        data: if is_empty {
            ptr::null_mut()
        } else {
            parts.data
        },
        device: parts.device,
        ndim: i32::try_from(parts.shape.len()).unwrap_or(i32::MAX),
        dtype: parts.dtype,
        shape: parts.shape.as_ptr().cast_mut(),
        strides: match parts.strides {
            Some(strides) if !strides.is_empty() => strides.as_ptr().cast_mut(),
            _ => ptr::null_mut(),
        },
        byte_offset: if is_empty { 0 } else { parts.byte_offset },
    };
    let mut tensor = ptr::null_mut();
    // SAFETY: the lists have the right lengths, and the core copies them; the owner is a `T`.
    let created = unsafe {
        let (flags, owner) = (parts.flags, owner.cast());
        call!(
            operation,
            TensorCreate(&like, flags, owner, Some(drop_owner::<T>), &mut tensor)
        )
    };
    match created {
        // SAFETY: the core made a new tensor with separate lists.
        Ok(()) => unsafe { Tensor::new(tensor, Handover::Export) },
        Err(error) => give_back(error),
    }
}

/// Called by the core's deleter, once.
unsafe extern "C" fn drop_owner<T>(owner: *mut c_void) {
    // SAFETY: the owner is a `T` and was made by `Box::into_raw`.
    discard(unsafe { Box::from_raw(owner.cast::<T>()) });
}

/// Checks that the product of the sizes is `count`.
fn check_count(operation: &str, shape: &[i64], count: usize) -> Result<(), Error> {
    let product = match shape.contains(&0) {
        true => Some(0),
        false => shape.iter().try_fold(1usize, |product, size| {
            product.checked_mul(usize::try_from(*size).ok()?)
        }),
    };
    ensure!(
        product == Some(count),
        EINVAL,
        "{operation}: DLTensor.shape: {shape:?} has another number of elements: expected {count}"
    );
    Ok(())
}

// SPDX-License-Identifier: Apache-2.0

//! Tensors of memory that is the caller's, without an Arrow schema.

use std::ffi::c_void;
use std::ptr;

use fletching_abi::{DLDataType, DLDevice, DLDeviceType, DLTensor, DLPACK_FLAG_BITMASK_READ_ONLY};

use super::element::DlpackElement;
use super::tensor::{DlpackTensor, Tensor};
use crate::c_core::call;
use crate::error::{discard, Error};

/// The description of a tensor: `TensorParts::new(data, dtype, &[2, 3]).read_only()`. It is on the
/// CPU, in row-major order and writable unless a method says otherwise.
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

    /// From `data` to the first element.
    #[must_use]
    pub fn byte_offset(mut self, byte_offset: u64) -> Self {
        self.byte_offset = byte_offset;
        self
    }

    /// The distance to the next element in each dimension, in elements.
    #[must_use]
    pub fn strides(mut self, strides: &'a [i64]) -> Self {
        self.strides = Some(strides);
        self
    }

    /// The device of the memory.
    #[must_use]
    pub fn device(mut self, device: DLDevice) -> Self {
        self.device = device;
        self
    }

    /// The consumer may not write to the memory.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
        self
    }

    /// All of `DLPACK_FLAG_BITMASK_...`.
    #[must_use]
    pub fn flags(mut self, flags: u64) -> Self {
        self.flags = flags;
        self
    }
}

/// The device 0 of type 1, `kDLCPU`.
const CPU: DLDevice = DLDevice {
    device_type: DLDeviceType(1),
    device_id: 0,
};

impl DlpackTensor {
    /// A tensor of the values of a `Vec` in row-major order, which the consumer may write. Copies
    /// nothing. Errors: EINVAL unless the sizes multiply to the number of values; ENOMEM.
    ///
    /// ```
    /// use fletching::dlpack::DlpackTensor;
    ///
    /// let tensor = DlpackTensor::from_vec(vec![1.5f32, 2.5, 3.5, 4.5], &[2, 2])?;
    /// assert_eq!(tensor.shape()?, [2, 2]);
    /// # Ok::<(), fletching::Error>(())
    /// ```
    pub fn from_vec<T: DlpackElement>(values: Vec<T>, shape: &[i64]) -> Result<Self, Error> {
        check_count(shape, values.len())?;
        let owner = Box::into_raw(Box::new(values));
        // SAFETY: the list stays where it is, and nobody else uses it.
        unsafe {
            let data = (*owner).as_mut_ptr().cast();
            create(&TensorParts::new(data, T::DTYPE, shape), owner)
        }
    }

    /// A tensor of the values of any owner of a list, in row-major order, which the consumer may
    /// read: `Arc<[T]>`, `bytes::Bytes` as `u8`, a memory map. The owner is dropped with the
    /// tensor, on any thread. Copies nothing. Errors: as of [`from_vec`](Self::from_vec).
    pub fn from_values<T: DlpackElement>(
        owner: impl AsRef<[T]> + Send + 'static,
        shape: &[i64],
    ) -> Result<Self, Error> {
        let owner = Box::into_raw(Box::new(owner));
        // SAFETY: the owner stays where it is, borrowed until it is dropped.
        unsafe {
            // The owner's memory at this address: a slice inside the owner must not move.
            let values: &[T] = (*owner).as_ref();
            if let Err(error) = check_count(shape, values.len()) {
                drop(Box::from_raw(owner));
                return Err(error);
            }
            let data = values.as_ptr().cast_mut().cast();
            create(&TensorParts::new(data, T::DTYPE, shape).read_only(), owner)
        }
    }

    /// A tensor of memory that `owner` keeps, which is dropped with the tensor, on any thread.
    /// Errors: EINVAL for a negative size, more than 64 of them, 2^63 or more elements, another
    /// number of strides, and an unknown flag; ENOMEM. After an error the owner is dropped.
    ///
    /// # Safety
    ///
    /// As long as the owner lives, the memory is as the parts say: every element is on the device
    /// and may be read by any code, and written unless it is read-only. Work on it is done, or the
    /// consumer's is ordered behind it.
    pub unsafe fn from_parts<T: Send + 'static>(
        parts: &TensorParts<'_>,
        owner: T,
    ) -> Result<Self, Error> {
        // SAFETY: the caller vouches for the memory; the owner is new.
        unsafe { create(parts, Box::into_raw(Box::new(owner))) }
    }
}

/// As `from_parts`, of which the owner is made by `Box::into_raw`.
///
/// # Safety
///
/// As of `from_parts`, and `owner` is used by nobody else.
unsafe fn create<T: Send + 'static>(
    parts: &TensorParts<'_>,
    owner: *mut T,
) -> Result<DlpackTensor, Error> {
    // SAFETY: the caller vouches for the owner, which is taken back when no tensor has it.
    let give_back = |error| unsafe {
        drop(Box::from_raw(owner));
        Err(error)
    };
    let strides = parts.strides.unwrap_or_default();
    if parts.strides.is_some() && strides.len() != parts.shape.len() {
        return give_back(Error::invalid(format!(
            "DLTensor.strides: wrong number: expected {}, got {}",
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
    // SAFETY: the lists have so many numbers, which the core copies; the owner is of this type.
    let created = unsafe {
        let (flags, owner) = (parts.flags, owner.cast());
        call!(
            "tensor",
            TensorCreate(&like, flags, owner, Some(drop_owner::<T>), &mut tensor)
        )
    };
    match created {
        // SAFETY: a new tensor of the core, with its own lists.
        Ok(()) => unsafe { Tensor::from_raw(tensor) },
        Err(error) => give_back(error),
    }
}

/// Called by the core's deleter, once.
unsafe extern "C" fn drop_owner<T>(owner: *mut c_void) {
    // SAFETY: made by `Box::into_raw`, of this type.
    discard(unsafe { Box::from_raw(owner.cast::<T>()) });
}

/// The list has as many values as the shape.
fn check_count(shape: &[i64], count: usize) -> Result<(), Error> {
    let product = match shape.contains(&0) {
        true => Some(0),
        false => shape.iter().try_fold(1usize, |product, size| {
            product.checked_mul(usize::try_from(*size).ok()?)
        }),
    };
    ensure!(
        product == Some(count),
        EINVAL,
        "DLTensor.shape: {shape:?} has another number of elements: expected {count}"
    );
    Ok(())
}

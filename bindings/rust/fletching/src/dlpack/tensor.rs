// SPDX-License-Identifier: Apache-2.0

//! Owners of DLPack tensors.

use std::ffi::{c_int, c_void};
use std::ptr::NonNull;

use fletching_abi::{
    ArrowDeviceArray, ArrowSchema, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned,
    DLPackVersion, DLTensor, DLPACK_FLAG_BITMASK_IS_COPIED as COPIED,
    DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED as PADDED,
    DLPACK_FLAG_BITMASK_READ_ONLY as READ_ONLY, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION,
};

use super::devices::is_address;
use super::MAX_DIMENSIONS;
use crate::c_core::{self as core, FletchingMessage, FletchingTensorStream};
use crate::error::Error;
use crate::handover::{Handover, Kind};

/// A tensor with a deleter: [`DLManagedTensorVersioned`], or [`DLManagedTensor`] from before DLPack
/// 1.0. Sealed.
pub trait ManagedTensor: sealed::Managed {}

impl ManagedTensor for DLManagedTensorVersioned {}
impl ManagedTensor for DLManagedTensor {}

pub(super) mod sealed {
    use super::*;

    pub trait Managed: Sized + 'static {
        const KIND: Kind;

        /// Returns the tensor and the flags if the layout of its version is known.
        ///
        /// # Safety
        ///
        /// `this` points to a struct that meets the requirements of [`Tensor::from_raw`].
        unsafe fn read<'a>(this: *const Self) -> Result<(&'a DLTensor, u64), Error>;

        /// # Safety
        ///
        /// As for `release_once` of `fletching-abi`.
        unsafe fn delete(this: *mut Self);

        /// Calls the core's export.
        ///
        /// # Safety
        ///
        /// See `tensor.h` of the core.
        unsafe fn export(
            schema: *const ArrowSchema,
            array: *mut ArrowDeviceArray,
            stream: *const FletchingTensorStream,
            options: u32,
            tensor: *mut *mut Self,
            message: *mut FletchingMessage,
        ) -> c_int;

        /// Calls the core's import.
        ///
        /// # Safety
        ///
        /// See `tensor.h` of the core.
        unsafe fn import(
            this: *mut Self,
            stream: *const FletchingTensorStream,
            options: u32,
            schema: *mut ArrowSchema,
            array: *mut ArrowDeviceArray,
            flags: *mut u64,
            message: *mut FletchingMessage,
        ) -> c_int;
    }
}

macro_rules! managed {
    ($struct:ident is $kind:ident, $export:ident, $import:ident, $read:item) => {
        impl sealed::Managed for $struct {
            const KIND: Kind = Kind::$kind;

            $read

            unsafe fn delete(this: *mut Self) {
                // SAFETY: guaranteed by the caller.
                unsafe { Self::release_once(this) }
            }

            unsafe fn export(
                schema: *const ArrowSchema,
                array: *mut ArrowDeviceArray,
                stream: *const FletchingTensorStream,
                options: u32,
                tensor: *mut *mut Self,
                message: *mut FletchingMessage,
            ) -> c_int {
                // SAFETY: guaranteed by the caller.
                unsafe { core::$export(schema, array, stream, options, tensor, message) }
            }

            unsafe fn import(
                this: *mut Self,
                stream: *const FletchingTensorStream,
                options: u32,
                schema: *mut ArrowSchema,
                array: *mut ArrowDeviceArray,
                flags: *mut u64,
                message: *mut FletchingMessage,
            ) -> c_int {
                // SAFETY: guaranteed by the caller.
                unsafe { core::$import(this, stream, options, schema, array, flags, message) }
            }
        }
    };
}

managed! {
    DLManagedTensorVersioned is Tensor, TensorExport, TensorImport,
    unsafe fn read<'a>(this: *const Self) -> Result<(&'a DLTensor, u64), Error> {
        // SAFETY: the caller guarantees that `this` is valid. The first three members are the same
        // in every major version.
        let DLPackVersion { major, minor } = unsafe { (*this).version };
        ensure!(
            major == DLPACK_MAJOR_VERSION,
            ENOTSUP,
            "DLManagedTensorVersioned.version: unknown layout: expected major version \
             {DLPACK_MAJOR_VERSION}, got {major}.{minor}; hint: pass max_version to the producer"
        );
        // SAFETY: as above, and the version is known.
        let (tensor, flags) = unsafe { (&(*this).dl_tensor, (*this).flags) };
        // Later minor versions may add bits, which do not change the meaning of other fields.
        ensure!(
            flags & !(READ_ONLY | COPIED | PADDED) == 0 || minor > DLPACK_MINOR_VERSION,
            ENOTSUP,
            "DLManagedTensorVersioned.flags: unknown bit: expected those of version \
             {DLPACK_MAJOR_VERSION}.{DLPACK_MINOR_VERSION}, got {flags}; hint: fix the producer"
        );
        Ok((tensor, flags))
    }
}

// The struct has no flags, so its memory counts as read-only.
managed! {
    DLManagedTensor is LegacyTensor, LegacyTensorExport, LegacyTensorImport,
    unsafe fn read<'a>(this: *const Self) -> Result<(&'a DLTensor, u64), Error> {
        // SAFETY: the caller guarantees that `this` is valid.
        Ok(unsafe { (&(*this).dl_tensor, READ_ONLY) })
    }
}

/// Owns a tensor. Calls its deleter once, on drop, unless the deleter is NULL.
///
/// See `DLManagedTensorVersioned` in dlpack.h.
#[derive(Debug)]
pub struct Tensor<M: ManagedTensor>(NonNull<M>);

/// Owns a [`DLManagedTensorVersioned`].
pub type DlpackTensor = Tensor<DLManagedTensorVersioned>;
/// Owns a [`DLManagedTensor`], the struct from before DLPack 1.0, which has no version and flags.
pub type LegacyDlpackTensor = Tensor<DLManagedTensor>;

// SAFETY: `from_raw` requires that the deleter may run on any thread.
unsafe impl<M: ManagedTensor> Send for Tensor<M> {}

impl<M: ManagedTensor> Tensor<M> {
    /// Takes ownership of a producer's tensor. Errors: EINVAL for NULL.
    ///
    /// # Safety
    ///
    /// `raw` is NULL, or the struct conforms to dlpack.h. If `ndim` is 0 to 64, `shape` and
    /// `strides` are NULL or lists of `ndim` numbers, which do not change. The deleter may run on
    /// any thread, and no other code calls it. For another major version, the same applies to the
    /// members up to `deleter`. `data` may point to anything.
    pub unsafe fn from_raw(raw: *mut M) -> Result<Self, Error> {
        // SAFETY: guaranteed by the caller.
        unsafe { Self::new(raw, Handover::Import) }
    }

    /// [`from_raw`](Self::from_raw), for [`Handover::Export`] of a tensor that this library made.
    ///
    /// # Safety
    ///
    /// As for `from_raw`.
    pub(super) unsafe fn new(mut raw: *mut M, handover: Handover) -> Result<Self, Error> {
        // SAFETY: guaranteed by the caller.
        unsafe { handover.validate(M::KIND, &raw mut raw) };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self(raw)),
            None => bail!(EINVAL, "Tensor::from_raw: NULL: expected a tensor"),
        }
    }

    /// Returns the tensor for another owner, such as a capsule, which must call the deleter.
    #[must_use = "the deleter must be called"]
    pub fn into_raw(self) -> *mut M {
        std::mem::ManuallyDrop::new(self).0.as_ptr()
    }

    /// The address of the struct, which the owner keeps.
    #[must_use]
    pub fn as_ptr(&self) -> *const M {
        self.0.as_ptr()
    }

    /// The tensor. Its pointers are valid while the owner is alive.
    ///
    /// Errors of this function and of all functions that read a part of the tensor: ENOTSUP for
    /// another major version and for unknown flags.
    pub fn tensor(&self) -> Result<&DLTensor, Error> {
        Ok(self.read()?.0)
    }

    /// The size of each dimension as set by the producer, possibly negative. Errors: EINVAL unless
    /// there is a list for 0 to 64 dimensions.
    pub fn shape(&self) -> Result<&[i64], Error> {
        let tensor = self.tensor()?;
        check_dimensions(tensor)?;
        // SAFETY: guaranteed by the contract of `from_raw`; the number of dimensions is in range.
        Ok(unsafe { tensor.shape_slice() })
    }

    /// The distance to the next element in each dimension, in elements, or `None` for row-major
    /// order. Errors: as for [`shape`](Self::shape).
    pub fn strides(&self) -> Result<Option<&[i64]>, Error> {
        let tensor = self.tensor()?;
        check_dimensions(tensor)?;
        // SAFETY: as above.
        Ok((!tensor.strides.is_null()).then(|| unsafe { tensor.strides_slice() }))
    }

    /// The type of an element.
    pub fn dtype(&self) -> Result<DLDataType, Error> {
        Ok(self.tensor()?.dtype)
    }

    /// The device of the memory.
    pub fn device(&self) -> Result<DLDevice, Error> {
        Ok(self.tensor()?.device)
    }

    /// The `DLPACK_FLAG_BITMASK_...` flags. A [`DLManagedTensor`] has no flags and is reported as
    /// read-only.
    pub fn flags(&self) -> Result<u64, Error> {
        Ok(self.read()?.1)
    }

    /// The address of the first element: `data` plus `byte_offset`. NULL for a tensor without
    /// elements.
    ///
    /// Errors: ENOTSUP for a device whose buffers are handles, to which no offset can be added;
    /// EINVAL if the sum is beyond the address space.
    pub fn data(&self) -> Result<*mut c_void, Error> {
        let tensor = self.tensor()?;
        let device_type = tensor.device.device_type.into();
        ensure!(
            is_address(device_type),
            ENOTSUP,
            "DLTensor.data: a handle on {device_type}: expected an address; hint: read data and \
             byte_offset of tensor()"
        );
        let offset = usize::try_from(tensor.byte_offset).ok();
        let Some(offset) = offset.filter(|offset| *offset <= usize::MAX - tensor.data.addr())
        else {
            bail!(
                EINVAL,
                "DLTensor.byte_offset: out of range: expected an address, got {}; hint: fix the \
                 producer",
                tensor.byte_offset
            )
        };
        match tensor.data.is_null() {
            true => Ok(tensor.data),
            false => Ok(tensor.data.wrapping_byte_add(offset)),
        }
    }

    pub(super) fn read(&self) -> Result<(&DLTensor, u64), Error> {
        // SAFETY: guaranteed by the contract of `from_raw`; the struct is valid while the owner is
        // alive.
        unsafe { M::read(self.as_ptr()) }
    }
}

impl<M: ManagedTensor> Drop for Tensor<M> {
    fn drop(&mut self) {
        // SAFETY: guaranteed by the contract of `from_raw`; the tensor is owned, so no other code
        // uses it.
        unsafe { M::delete(self.0.as_ptr()) }
    }
}

/// Checks that lists of `ndim` numbers can be read.
fn check_dimensions(tensor: &DLTensor) -> Result<(), Error> {
    let most = MAX_DIMENSIONS as i32;
    ensure!(
        (0..=most).contains(&tensor.ndim),
        EINVAL,
        "DLTensor.ndim: out of range: expected 0 to {most}, got {}; hint: fix the producer",
        tensor.ndim
    );
    ensure!(
        tensor.ndim == 0 || !tensor.shape.is_null(),
        EINVAL,
        "DLTensor.shape: NULL: expected ndim sizes; hint: fix the producer"
    );
    Ok(())
}

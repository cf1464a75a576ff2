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

/// A tensor with a deleter: [`DLManagedTensorVersioned`], or [`DLManagedTensor`] from before DLPack
/// 1.0. Sealed.
pub trait ManagedTensor: sealed::Managed {}

impl ManagedTensor for DLManagedTensorVersioned {}
impl ManagedTensor for DLManagedTensor {}

pub(super) mod sealed {
    use super::*;

    pub trait Managed: Sized + 'static {
        /// The tensor and the flags, when the version is one whose layout is known.
        ///
        /// # Safety
        ///
        /// `this` points to a struct as [`Tensor::from_raw`] asks for it.
        unsafe fn read<'a>(this: *const Self) -> Result<(&'a DLTensor, u64), Error>;

        /// # Safety
        ///
        /// As for `release_once` of `fletching-abi`.
        unsafe fn delete(this: *mut Self);

        /// Calls the core's export.
        ///
        /// # Safety
        ///
        /// As `tensor.h` of the core says.
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
        /// As `tensor.h` of the core says.
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
    ($struct:ident, $export:ident, $import:ident, $read:item) => {
        impl sealed::Managed for $struct {
            $read

            unsafe fn delete(this: *mut Self) {
                // SAFETY: the caller vouches for it.
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
                // SAFETY: the caller vouches for it.
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
                // SAFETY: the caller vouches for it.
                unsafe { core::$import(this, stream, options, schema, array, flags, message) }
            }
        }
    };
}

managed! {
    DLManagedTensorVersioned, TensorExport, TensorImport,
    unsafe fn read<'a>(this: *const Self) -> Result<(&'a DLTensor, u64), Error> {
        // SAFETY: the caller vouches for the struct. Of another major version the first three
        // members are the same.
        let DLPackVersion { major, minor } = unsafe { (*this).version };
        ensure!(
            major == DLPACK_MAJOR_VERSION,
            ENOTSUP,
            "DLManagedTensorVersioned.version: unknown layout: expected major version \
             {DLPACK_MAJOR_VERSION}, got {major}.{minor}; hint: pass max_version to the producer"
        );
        // SAFETY: as above, and the version is known.
        let (tensor, flags) = unsafe { (&(*this).dl_tensor, (*this).flags) };
        // A later minor version may add bits, which do not change the meaning of other fields.
        ensure!(
            flags & !(READ_ONLY | COPIED | PADDED) == 0 || minor > DLPACK_MINOR_VERSION,
            ENOTSUP,
            "DLManagedTensorVersioned.flags: unknown bit: expected those of version \
             {DLPACK_MAJOR_VERSION}.{DLPACK_MINOR_VERSION}, got {flags}; hint: fix the producer"
        );
        Ok((tensor, flags))
    }
}

// It has no flags, so that its memory counts as read-only.
managed! {
    DLManagedTensor, LegacyTensorExport, LegacyTensorImport,
    unsafe fn read<'a>(this: *const Self) -> Result<(&'a DLTensor, u64), Error> {
        // SAFETY: the caller vouches for the struct.
        Ok(unsafe { (&(*this).dl_tensor, READ_ONLY) })
    }
}

/// Owns a tensor: calls its deleter on drop, once, unless that is NULL.
///
/// Text: dlpack.h, `DLManagedTensorVersioned`.
#[derive(Debug)]
pub struct Tensor<M: ManagedTensor>(NonNull<M>);

/// Owns a [`DLManagedTensorVersioned`].
pub type DlpackTensor = Tensor<DLManagedTensorVersioned>;
/// Owns a [`DLManagedTensor`], the struct from before DLPack 1.0, without version and flags.
pub type LegacyDlpackTensor = Tensor<DLManagedTensor>;

// SAFETY: the promise of from_raw: the deleter may run on any thread.
unsafe impl<M: ManagedTensor> Send for Tensor<M> {}

impl<M: ManagedTensor> Tensor<M> {
    /// Takes over the tensor of a producer. Errors: EINVAL for NULL.
    ///
    /// # Safety
    ///
    /// `raw` is NULL, or the struct is as dlpack.h asks for it: `shape` and `strides` are NULL or
    /// lists of `ndim` numbers, if that is 0 to 64, which stay as they are; a deleter that may run
    /// on any thread and that is called only here. With another major version than DLPack 1 the same
    /// holds for the members up to `deleter`. What `data` points to is not part of this promise.
    pub unsafe fn from_raw(raw: *mut M) -> Result<Self, Error> {
        match NonNull::new(raw) {
            Some(raw) => Ok(Self(raw)),
            None => bail!(EINVAL, "DLPack tensor: NULL: expected a tensor"),
        }
    }

    /// The tensor for another party, such as a capsule, which has to call the deleter.
    #[must_use = "the deleter has to be called"]
    pub fn into_raw(self) -> *mut M {
        std::mem::ManuallyDrop::new(self).0.as_ptr()
    }

    /// The address of the struct, still owned here.
    #[must_use]
    pub fn as_ptr(&self) -> *const M {
        self.0.as_ptr()
    }

    /// The tensor itself. Its pointers live as long as the owner.
    ///
    /// Errors, of this and of every function that reads a part of it: ENOTSUP for another major
    /// version and for unknown flags.
    pub fn tensor(&self) -> Result<&DLTensor, Error> {
        Ok(self.read()?.0)
    }

    /// The size of each dimension, as the producer says it: a size may be negative. Errors: EINVAL
    /// unless there is a list for 0 to 64 dimensions.
    pub fn shape(&self) -> Result<&[i64], Error> {
        let tensor = self.tensor()?;
        check_dimensions(tensor)?;
        // SAFETY: see from_raw; the number of dimensions is in range.
        Ok(unsafe { tensor.shape_slice() })
    }

    /// The distance to the next element in each dimension, in elements; `None` for row-major order.
    /// Errors: as of [`shape`](Self::shape).
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

    /// `DLPACK_FLAG_BITMASK_...`; of a [`DLManagedTensor`], which has no flags, that it is
    /// read-only.
    pub fn flags(&self) -> Result<u64, Error> {
        Ok(self.read()?.1)
    }

    /// The address of the first element: `data` and `byte_offset`. NULL of a tensor without
    /// elements.
    ///
    /// Errors: ENOTSUP on a device whose buffers are handles, to which no offset can be added;
    /// EINVAL for a sum beyond the last address.
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
        // SAFETY: see from_raw; the struct lives as long as the owner.
        unsafe { M::read(self.as_ptr()) }
    }
}

impl<M: ManagedTensor> Drop for Tensor<M> {
    fn drop(&mut self) {
        // SAFETY: see from_raw; the tensor is owned, so it is not in use elsewhere.
        unsafe { M::delete(self.0.as_ptr()) }
    }
}

/// Whether a list of `ndim` numbers can be read.
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

// SPDX-License-Identifier: Apache-2.0

//! Owners of DLPack tensors.

use std::ptr::{null_mut, NonNull};

use fletching_abi::{
    DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor,
    DLPACK_FLAG_BITMASK_IS_COPIED as COPIED, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED as PADDED,
    DLPACK_FLAG_BITMASK_READ_ONLY as READ_ONLY, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION,
};

use crate::error::Error;

/// A tensor with a deleter: [`DLManagedTensorVersioned`], or [`DLManagedTensor`] from before DLPack
/// 1.0. Sealed.
pub trait ManagedTensor: sealed::Managed {}

impl ManagedTensor for DLManagedTensorVersioned {}
impl ManagedTensor for DLManagedTensor {}

pub(super) mod sealed {
    use super::*;

    pub trait Managed: Sized + 'static {
        fn new(dl_tensor: DLTensor, flags: u64, deleter: unsafe extern "C" fn(*mut Self)) -> Self;

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
    }
}

impl sealed::Managed for DLManagedTensorVersioned {
    fn new(dl_tensor: DLTensor, flags: u64, deleter: unsafe extern "C" fn(*mut Self)) -> Self {
        Self {
            version: DLPackVersion {
                major: DLPACK_MAJOR_VERSION,
                minor: DLPACK_MINOR_VERSION,
            },
            manager_ctx: null_mut(),
            deleter: Some(deleter),
            flags,
            dl_tensor,
        }
    }

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
        ensure!(
            flags & !(READ_ONLY | COPIED | PADDED) == 0,
            ENOTSUP,
            "DLManagedTensorVersioned.flags: unknown bit: expected those of version \
             {DLPACK_MAJOR_VERSION}.{DLPACK_MINOR_VERSION}, got {flags}; hint: pass max_version to \
             the producer"
        );
        Ok((tensor, flags))
    }

    unsafe fn delete(this: *mut Self) {
        // SAFETY: the caller vouches for it.
        unsafe { Self::release_once(this) }
    }
}

/// It has no flags, so that its memory counts as read-only.
impl sealed::Managed for DLManagedTensor {
    fn new(dl_tensor: DLTensor, _: u64, deleter: unsafe extern "C" fn(*mut Self)) -> Self {
        Self {
            dl_tensor,
            manager_ctx: null_mut(),
            deleter: Some(deleter),
        }
    }

    unsafe fn read<'a>(this: *const Self) -> Result<(&'a DLTensor, u64), Error> {
        // SAFETY: the caller vouches for the struct.
        Ok(unsafe { (&(*this).dl_tensor, READ_ONLY) })
    }

    unsafe fn delete(this: *mut Self) {
        // SAFETY: the caller vouches for it.
        unsafe { Self::release_once(this) }
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
    /// `raw` is NULL, or the struct is as dlpack.h asks for it: lists of `ndim` numbers, a deleter
    /// that may run on any thread and that is called only here. With another major version than
    /// DLPack 1 the same holds for the members up to `deleter`. What `data` points to is not part
    /// of this promise.
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

    /// The tensor itself. Errors: ENOTSUP for another major version and for unknown flags.
    pub fn tensor(&self) -> Result<&DLTensor, Error> {
        Ok(self.read()?.0)
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

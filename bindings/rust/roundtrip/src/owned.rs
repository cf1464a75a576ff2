// SPDX-License-Identifier: Apache-2.0

//! A struct of the interface that is released when its owner goes.

use std::ops::{Deref, DerefMut};

use fletching_abi::{ArrowArray, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema};

/// A struct with a release callback.
pub trait Release {
    /// All bytes zero, which counts as released.
    const ZEROED: Self;

    /// Whether the callback is NULL.
    fn is_released(&self) -> bool;

    /// From now on somebody else's to release.
    fn mark_released(&mut self);

    /// Calls the callback, unless it is NULL.
    ///
    /// # Safety
    ///
    /// The struct is not released, or says that it is.
    unsafe fn release(&mut self);
}

macro_rules! impl_release {
    ($($type:ident),*) => {$(
        impl Release for $type {
            const ZEROED: Self = Self::zeroed();

            fn is_released(&self) -> bool {
                self.release.is_none()
            }

            fn mark_released(&mut self) {
                self.release = None;
            }

            unsafe fn release(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: the callback of a struct that has not been released.
                    unsafe { release(self) };
                }
            }
        }
    )*};
}

impl_release!(ArrowSchema, ArrowArray, ArrowDeviceArrayStream);

impl Release for ArrowDeviceArray {
    const ZEROED: Self = Self::zeroed();

    fn is_released(&self) -> bool {
        self.array.is_released()
    }

    fn mark_released(&mut self) {
        self.array.mark_released();
    }

    unsafe fn release(&mut self) {
        // SAFETY: the caller vouches for the array, which is what a device array releases.
        unsafe { self.array.release() }
    }
}

/// Releases what it holds when it goes.
pub struct Owned<T: Release>(T);

impl<T: Release> Owned<T> {
    /// A released struct, to be filled.
    pub fn zeroed() -> Self {
        Self(T::ZEROED)
    }

    /// Takes a struct that nobody else will release.
    ///
    /// # Safety
    ///
    /// It was filled by a producer, or is released.
    pub unsafe fn from_raw(raw: T) -> Self {
        Self(raw)
    }

    /// Moves a struct out of memory that foreign code knows: bitwise copy, the source is released no
    /// more.
    ///
    /// # Safety
    ///
    /// As for `from_raw`.
    pub unsafe fn take(source: &mut T) -> Self {
        // SAFETY: plain data, and the copy is the only owner because the source is marked.
        let copy = unsafe { std::ptr::read(source) };
        source.mark_released();
        Self(copy)
    }

    /// Gives the struct away.
    pub fn into_raw(mut self) -> T {
        std::mem::replace(&mut self.0, T::ZEROED)
    }
}

impl<T: Release> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Release> DerefMut for Owned<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Release> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: whoever made the owner vouched for the struct; it is released only here.
        unsafe { self.0.release() }
    }
}

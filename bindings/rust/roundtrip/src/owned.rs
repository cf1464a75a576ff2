// SPDX-License-Identifier: Apache-2.0

//! A struct of the interface that is released when its owner goes.

use std::ops::{Deref, DerefMut};

use fletching_abi::{ArrowArray, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema};

/// A struct with a release callback, and what the raw layer does with it.
pub trait Release: Default {
    /// Whether the callback is NULL.
    fn is_released(&self) -> bool;

    /// A bitwise copy, after which this one is released.
    fn move_out(&mut self) -> Self;

    /// Calls the callback, unless it is NULL.
    ///
    /// # Safety
    ///
    /// NULL, released, or filled by a producer.
    unsafe fn release_once(this: *mut Self);
}

macro_rules! impl_release {
    ($($type:ident),*) => {$(
        impl Release for $type {
            fn is_released(&self) -> bool {
                self.is_released()
            }

            fn move_out(&mut self) -> Self {
                self.move_out()
            }

            unsafe fn release_once(this: *mut Self) {
                // SAFETY: the caller vouches for the same.
                unsafe { Self::release_once(this) }
            }
        }
    )*};
}

impl_release!(
    ArrowSchema,
    ArrowArray,
    ArrowDeviceArray,
    ArrowDeviceArrayStream
);

/// Releases what it holds when it goes.
pub struct Owned<T: Release>(T);

impl<T: Release> Owned<T> {
    /// A released struct, to be filled.
    pub fn zeroed() -> Self {
        Self(T::default())
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
        Self(source.move_out())
    }

    /// Gives the struct away.
    pub fn into_raw(mut self) -> T {
        self.0.move_out()
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
        unsafe { T::release_once(&raw mut self.0) }
    }
}

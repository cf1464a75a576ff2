// SPDX-License-Identifier: Apache-2.0

//! The operations that owners require from the structs of `fletching-abi`.

use std::ffi::c_void;
use std::ptr;

use crate::handover::Kind;

/// A struct with a release callback that an [`Owner`](crate::Owner) can own. Sealed.
pub trait Raw: sealed::Raw {}

/// A struct that can have children: a schema, an array or a device array. Sealed.
///
/// A bound on this trait makes the methods of the sealed traits callable, on structs that safe code
/// has filled. Methods that rely on the contents of a struct are therefore unsafe:
///
/// ```compile_fail,E0133
/// #![forbid(unsafe_code)]
/// fn keep<R: fletching::Nested>(parent: &mut R, taken: &mut R) {
///     parent.keep_event(taken);
/// }
/// ```
pub trait Nested: Raw + sealed::Nested {}

pub(crate) use sealed::Base;

pub(crate) type Release<B> = unsafe extern "C" fn(*mut B);

/// Methods that generic code can call through a bound on the public traits, see [`Nested`].
pub(crate) mod sealed {
    use super::*;

    pub trait Raw: Sized + std::fmt::Debug + 'static {
        const KIND: Kind;
        fn zeroed() -> Self;
        fn is_released(&self) -> bool;
        fn move_out(&mut self) -> Self;
        /// # Safety
        ///
        /// As for `release_once` of `fletching-abi`.
        unsafe fn release_once(this: *mut Self);
        /// Calls the release callback, unless it is NULL, on the struct in place. The struct must
        /// not be used afterwards.
        ///
        /// # Safety
        ///
        /// As for `release_once`.
        unsafe fn release_last(&mut self);
    }

    pub trait Nested: Raw {
        type Base: Base + super::Raw + super::Nested<Base = Self::Base>;
        fn base(&self) -> &Self::Base;
        fn base_mut(&mut self) -> &mut Self::Base;
        /// Wraps `base` in a struct with the same device and event as `self`.
        fn around(&self, base: Self::Base) -> Self;
        /// Keeps the event of `self` alive until `taken`, a former descendant, is released.
        ///
        /// # Safety
        ///
        /// Both meet the requirements of [`Owner::from_raw`](crate::Owner::from_raw).
        unsafe fn keep_event(&mut self, _taken: &mut Self) {}
    }

    /// The part of a struct that has the callback and the children.
    pub trait Base: Raw {
        fn hook(&mut self) -> (&mut Option<Release<Self>>, &mut *mut c_void);
        fn private_data(&self) -> (Option<Release<Self>>, *mut c_void);
        fn children(&self) -> (*mut *mut Self, i64);
        fn set_children(&mut self, children: *mut *mut Self);
        fn dictionary(&self) -> *mut Self;
        fn set_dictionary(&mut self, dictionary: *mut Self);
        /// Returns an error if a required member is missing.
        fn what_is_missing(&self) -> Result<(), &'static str>;
        /// Whether it has neither children nor a dictionary.
        fn is_leaf(&self) -> bool {
            self.children().1 as usize | self.dictionary() as usize == 0
        }
        /// Copies the fields without ownership.
        fn copy_fields(&self) -> Self;
        /// The release callback of structs in a [`Block`](crate::block::Block), by which they are
        /// recognized. It is read from a static, because each use of a generic function may have a
        /// different address.
        fn in_block() -> Release<Self>;
        /// The release callback of structs with a [`Hook`](crate::hook::Hook).
        fn hooked() -> Release<Self>;
        /// The address of `private_data` if the release callback is one of these two, otherwise 0.
        fn our_data(&self) -> usize {
            match self.private_data() {
                (Some(release), data)
                    if ptr::fn_addr_eq(release, Self::in_block())
                        || ptr::fn_addr_eq(release, Self::hooked()) =>
                {
                    data.addr()
                }
                _ => 0,
            }
        }
    }
}

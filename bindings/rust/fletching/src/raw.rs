// SPDX-License-Identifier: Apache-2.0

//! What the owners ask of the structs of `fletching-abi`.

use std::ffi::c_void;
use std::ptr;

/// A struct with a release callback, which an [`Owner`](crate::Owner) can own. Sealed.
pub trait Raw: sealed::Raw {}

/// A struct that has others below it: a schema, an array or a device array. Sealed.
///
/// A bound on it makes the methods of the sealed traits callable, with structs that safe code has
/// filled. Methods that rely on the contents of a struct are unsafe:
///
/// ```compile_fail,E0133
/// #![forbid(unsafe_code)]
/// fn keep<R: fletching::Nested>(parent: &mut R, taken: &mut R) {
///     parent.keep_event(taken);
/// }
/// ```
pub trait Nested: Raw + sealed::Nested {}

pub(crate) use sealed::Base;

/// A release callback.
pub(crate) type Release<B> = unsafe extern "C" fn(*mut B);

/// What generic code may call by a bound on the public traits: see [`Nested`].
pub(crate) mod sealed {
    use super::*;

    pub trait Raw: Sized + std::fmt::Debug + 'static {
        fn zeroed() -> Self;
        fn is_released(&self) -> bool;
        fn move_out(&mut self) -> Self;
        /// # Safety
        ///
        /// As for `release_once` of `fletching-abi`.
        unsafe fn release_once(this: *mut Self);
        /// Calls the callback, unless it is NULL, with the struct where it is: for one that no code
        /// looks at afterwards.
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
        /// The struct around `base`, on the same device and with the same event.
        fn around(&self, base: Self::Base) -> Self;
        /// Lets the event of `self` live until `taken` is released, which was below it.
        ///
        /// # Safety
        ///
        /// Both are as [`Owner::from_raw`](crate::Owner::from_raw) asks for it.
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
        /// What a struct that is shown to others must not lack.
        fn what_is_missing(&self) -> Result<(), &'static str>;
        /// Whether there is nothing below it.
        fn is_leaf(&self) -> bool {
            self.children().1 as usize | self.dictionary() as usize == 0
        }
        /// A copy of the fields, which owns nothing.
        fn copy_fields(&self) -> Self;
        /// The release callback by which a struct in a [`Block`](crate::block::Block) is known
        /// again. From a static, because each mention of a generic function may have another
        /// address.
        fn in_block() -> Release<Self>;
        /// The same of a struct with a [`Hook`](crate::hook::Hook).
        fn hooked() -> Release<Self>;
        /// The address of `private_data` if the callback is one of these two, else 0.
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

// SPDX-License-Identifier: Apache-2.0

//! What the owners ask of the structs of `fletching-abi`.

use std::ffi::c_void;
use std::ptr;

use fletching_abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema,
};

use crate::{block, hook};

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

macro_rules! raw {
    ($($struct:ident $($base:ident)?;)*) => {$(
        impl Raw for $struct {}
        impl sealed::Raw for $struct {
            fn zeroed() -> Self {
                Self::zeroed()
            }
            fn is_released(&self) -> bool {
                self.is_released()
            }
            fn move_out(&mut self) -> Self {
                self.move_out()
            }
            unsafe fn release_once(this: *mut Self) {
                // SAFETY: the caller vouches for it.
                unsafe { Self::release_once(this) }
            }
            #[inline]
            unsafe fn release_last(&mut self) {
                if let Some(release) = self.$($base.)?release {
                    // SAFETY: the caller vouches for it.
                    unsafe { release(&raw mut (*self)$(.$base)?) }
                }
            }
        }
    )*};
}

raw! { ArrowSchema; ArrowArray; ArrowDeviceArray array; ArrowArrayStream; ArrowDeviceArrayStream; }

macro_rules! base {
    ($($struct:ident { $($field:ident)* } $missing:expr;)*) => {$(
        impl Nested for $struct {}
        impl sealed::Nested for $struct {
            type Base = Self;
            fn base(&self) -> &Self {
                self
            }
            fn base_mut(&mut self) -> &mut Self {
                self
            }
            fn around(&self, base: Self) -> Self {
                base
            }
        }
        impl Base for $struct {
            fn hook(&mut self) -> (&mut Option<Release<Self>>, &mut *mut c_void) {
                (&mut self.release, &mut self.private_data)
            }
            fn private_data(&self) -> (Option<Release<Self>>, *mut c_void) {
                (self.release, self.private_data)
            }
            fn children(&self) -> (*mut *mut Self, i64) {
                (self.children, self.n_children)
            }
            fn set_children(&mut self, children: *mut *mut Self) {
                self.children = children;
            }
            fn dictionary(&self) -> *mut Self {
                self.dictionary
            }
            fn set_dictionary(&mut self, dictionary: *mut Self) {
                self.dictionary = dictionary;
            }
            fn what_is_missing(&self) -> Result<(), &'static str> {
                if self.is_released() {
                    return Err("is released or moved out");
                }
                $missing(self)
            }
            #[inline]
            fn in_block() -> Release<Self> {
                static CALLBACK: Release<$struct> = block::release_in_block::<$struct>;
                CALLBACK
            }
            fn hooked() -> Release<Self> {
                static CALLBACK: Release<$struct> = hook::run::<$struct>;
                CALLBACK
            }
            fn copy_fields(&self) -> Self {
                Self {
                    $($field: self.$field,)*
                    ..Self::zeroed()
                }
            }
        }
    )*};
}

base! {
    ArrowSchema { format name metadata flags n_children } |schema: &Self| {
        (!schema.format.is_null()).then_some(()).ok_or("has format NULL")
    };
    ArrowArray { length null_count offset n_buffers buffers n_children } |_: &Self| Ok(());
}

impl Nested for ArrowDeviceArray {}
impl sealed::Nested for ArrowDeviceArray {
    type Base = ArrowArray;
    fn base(&self) -> &ArrowArray {
        &self.array
    }
    fn base_mut(&mut self) -> &mut ArrowArray {
        &mut self.array
    }
    fn around(&self, array: ArrowArray) -> Self {
        Self {
            array,
            device_id: self.device_id,
            device_type: self.device_type,
            sync_event: self.sync_event,
            ..Self::zeroed()
        }
    }
    unsafe fn keep_event(&mut self, taken: &mut Self) {
        if !self.sync_event.is_null() {
            // SAFETY: the caller vouches for both.
            unsafe { hook::keep_event(&mut taken.array, hook::event_share(&mut self.array)) };
        }
    }
}

// SPDX-License-Identifier: Apache-2.0

//! The structs of `fletching-abi` as owners use them.

use std::ffi::c_void;

use fletching_abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema,
};

use crate::handover::Kind;
use crate::raw::{sealed, Base, Nested, Raw, Release};
use crate::{block, hook};

macro_rules! raw {
    ($($struct:ident is $kind:ident $($base:ident)?;)*) => {$(
        impl Raw for $struct {}
        impl sealed::Raw for $struct {
            const KIND: Kind = Kind::$kind;
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
                // SAFETY: guaranteed by the caller.
                unsafe { Self::release_once(this) }
            }
            #[inline]
            unsafe fn release_last(&mut self) {
                if let Some(release) = self.$($base.)?release {
                    // SAFETY: guaranteed by the caller.
                    unsafe { release(&raw mut (*self)$(.$base)?) }
                }
            }
        }
    )*};
}

raw! {
    ArrowSchema is Schema;
    ArrowArray is Array;
    ArrowDeviceArray is DeviceArray array;
    ArrowArrayStream is Stream;
    ArrowDeviceArrayStream is DeviceStream;
}

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
            // SAFETY: guaranteed by the caller.
            unsafe { hook::keep_event(&mut taken.array, hook::event_share(&mut self.array)) };
        }
    }
}

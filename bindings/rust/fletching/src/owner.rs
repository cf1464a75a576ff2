// SPDX-License-Identifier: Apache-2.0

//! Owners of the interface's structs: moved, never copied, released once.

use std::ffi::{c_void, CStr};
use std::fmt;

use fletching_abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType,
    ArrowSchema,
};

use crate::error::Error;
use crate::metadata::Metadata;
use crate::raw::sealed::Raw as _;
use crate::raw::{Base, Nested, Raw};
use crate::tree::children_of;

/// Owns one struct of the C interfaces and releases it on drop.
///
/// A move is what the C data interface calls a move: a bitwise copy, after which the source is
/// released. The struct is inside the owner and moves with it. What its pointers point to, the
/// event included, stays where it is.
///
/// What the accessors return belongs to the producer and lives as long as the owner is borrowed. Of
/// a released struct they return what an empty one has.
///
/// The callback is called once, also when it does not set `release` to NULL, and may run on any
/// thread. It gets a struct that was moved, so it finds it by its argument and never by an address
/// that it has kept.
///
/// Text: Arrow C data interface, "Memory management".
#[repr(transparent)]
pub struct Owner<R: Raw>(R);

/// Owns an [`ArrowSchema`].
///
/// For children and moves see [`Owner::children`], [`Owner::take_child`], [`Owner::from_raw`],
/// [`Owner::into_raw`] and [`Owner::share`].
pub type Schema = Owner<ArrowSchema>;
/// Owns an [`ArrowArray`].
///
/// It shares with [`DeviceArray`]: [`length`](Owner::length), [`null_count`](Owner::null_count),
/// [`offset`](Owner::offset), [`buffers`](Owner::buffers). With every owner that has children:
/// [`children`](Owner::children), [`dictionary`](Owner::dictionary),
/// [`take_child`](Owner::take_child), [`take_dictionary`](Owner::take_dictionary),
/// [`attach`](Owner::attach), [`share`](Owner::share). With every owner:
/// [`from_raw`](Owner::from_raw), [`move_from`](Owner::move_from), [`into_raw`](Owner::into_raw),
/// [`move_to`](Owner::move_to), [`as_raw`](Owner::as_raw), [`out`](Owner::out),
/// [`is_released`](Owner::is_released).
pub type Array = Owner<ArrowArray>;
/// Owns an [`ArrowDeviceArray`]. For the methods that it shares see [`Array`].
pub type DeviceArray = Owner<ArrowDeviceArray>;
/// Owns an [`ArrowArrayStream`]. It is an iterator by `into_iter`, and by
/// [`reader`](Owner::reader) with options.
pub type ArrayStream = Owner<ArrowArrayStream>;
/// Owns an [`ArrowDeviceArrayStream`]. It is an iterator as an [`ArrayStream`] is.
pub type DeviceArrayStream = Owner<ArrowDeviceArrayStream>;

// SAFETY: a release, and every callback of a stream, may be called from any thread, one at a time.
unsafe impl<R: Raw> Send for Owner<R> {}
// SAFETY: a shared schema or array is only read, and its release needs the owner. A stream is not
// thread-safe, so it has no such line.
unsafe impl<R: Nested> Sync for Owner<R> {}

impl<R: Raw> Owner<R> {
    /// Takes over a struct that a producer has filled, or one that is released.
    ///
    /// # Safety
    ///
    /// The struct is as the texts ask for it: its callbacks, texts, lists and children are what
    /// they say, no other party releases it, and its release may run on any thread. A `sync_event`
    /// is NULL or the event of the device type. What the addresses of the buffers point to is not
    /// part of this promise: nothing here reads a buffer.
    #[must_use]
    pub unsafe fn from_raw(raw: R) -> Self {
        Self(raw)
    }

    /// Moves the struct at `source` in, which is released afterwards.
    ///
    /// # Safety
    ///
    /// `source` points to a struct that is as for [`from_raw`](Self::from_raw).
    #[must_use]
    pub unsafe fn move_from(source: *mut R) -> Self {
        // SAFETY: the caller vouches for the struct.
        Self(unsafe { (*source).move_out() })
    }

    /// The struct, which is the caller's to release from now on.
    #[must_use = "the struct has to be released"]
    pub fn into_raw(mut self) -> R {
        self.0.move_out()
    }

    /// Moves the struct to `target`, which is overwritten and is the caller's to release.
    ///
    /// # Safety
    ///
    /// `target` may be written.
    pub unsafe fn move_to(self, target: *mut R) {
        // SAFETY: the caller vouches for the target.
        unsafe { target.write(self.into_raw()) }
    }

    /// The struct, still owned here.
    #[must_use]
    pub fn as_raw(&self) -> &R {
        &self.0
    }

    /// A slot for a producer to fill: what was owned is released, and every byte is zero. The owner
    /// owns what the producer writes, which has to be as for [`from_raw`](Self::from_raw).
    #[must_use]
    pub fn out(&mut self) -> *mut R {
        if !self.is_released() {
            drop(Self(self.0.move_out()));
        }
        self.0 = R::zeroed();
        &mut self.0
    }

    /// Whether there is nothing to release: never filled, or moved away by foreign code.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.0.is_released()
    }

    /// For callbacks, which need the address of the struct.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut R {
        &mut self.0
    }

    pub(crate) fn live(&self) -> Option<&R> {
        (!self.is_released()).then_some(&self.0)
    }
}

/// A released struct, all zero.
impl<R: Raw> Default for Owner<R> {
    fn default() -> Self {
        Self(R::zeroed())
    }
}

impl<R: Raw> Drop for Owner<R> {
    fn drop(&mut self) {
        // SAFETY: the struct is owned, and marked as released when it was moved away.
        unsafe { self.0.release_last() }
    }
}

impl<R: Raw> fmt::Debug for Owner<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owner").field(&self.0).finish()
    }
}

// --- Schemas ------------------------------------------------------------------------------------

impl Schema {
    /// The format string.
    #[must_use]
    pub fn format(&self) -> &CStr {
        // SAFETY: see from_raw.
        unsafe { self.0.format_cstr() }.unwrap_or_default()
    }

    /// The name; empty for NULL, which means the same. A producer may not have kept to UTF-8.
    #[must_use]
    pub fn name(&self) -> &CStr {
        // SAFETY: see from_raw.
        unsafe { self.0.name_cstr() }.unwrap_or_default()
    }

    /// The `ARROW_FLAG_` bits.
    #[must_use]
    pub fn flags(&self) -> i64 {
        self.live().map_or(0, |raw| raw.flags)
    }

    /// The metadata, checked. Errors: EINVAL, see [`Metadata::read`].
    pub fn metadata(&self) -> Result<Metadata<'_>, Error> {
        let block = self.live().map_or(std::ptr::null(), |raw| raw.metadata);
        // SAFETY: see from_raw.
        unsafe { Metadata::read(block) }
    }
}

// --- Arrays -------------------------------------------------------------------------------------

impl<R: Nested<Base = ArrowArray>> Owner<R> {
    fn array(&self) -> Option<&ArrowArray> {
        self.live().map(|raw| raw.base())
    }

    /// The number of values.
    #[must_use]
    pub fn length(&self) -> i64 {
        self.array().map_or(0, |array| array.length)
    }

    /// The number of nulls, -1 when the producer has not counted.
    #[must_use]
    pub fn null_count(&self) -> i64 {
        self.array().map_or(0, |array| array.null_count)
    }

    /// The index of the first value in every buffer.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.array().map_or(0, |array| array.offset)
    }

    /// The addresses of the buffers, on the device of the array.
    #[must_use]
    pub fn buffers(&self) -> &[*const c_void] {
        // SAFETY: see from_raw.
        self.array()
            .map_or(&[], |array| unsafe { array.buffers_slice() })
    }
}

impl DeviceArray {
    /// The type of the device that the buffers are on; 0 for a released array.
    #[must_use]
    pub fn device_type(&self) -> ArrowDeviceType {
        self.live()
            .map_or(ArrowDeviceType(0), |raw| raw.device_type)
    }

    /// Which device of that type; -1 where it does not matter, as on the CPU.
    #[must_use]
    pub fn device_id(&self) -> i64 {
        self.live().map_or(-1, |raw| raw.device_id)
    }

    /// The array, whose buffers are on the device.
    #[must_use]
    pub fn as_array(&self) -> &Array {
        self.base()
    }

    /// The event to wait on before a buffer is read, NULL for none.
    #[must_use]
    pub fn sync_event(&self) -> *mut c_void {
        self.live()
            .map_or(std::ptr::null_mut(), |raw| raw.sync_event)
    }
}

/// An array in CPU memory as a device array, with the `device_id` -1 that Arrow has for the CPU.
impl From<Array> for DeviceArray {
    fn from(array: Array) -> Self {
        Self(ArrowDeviceArray {
            array: array.into_raw(),
            device_id: -1,
            device_type: ArrowDeviceType::CPU,
            ..ArrowDeviceArray::zeroed()
        })
    }
}

/// The array of a device array on the CPU. Errors: EINVAL for another device type, and for an array
/// with an event, which an [`ArrowArray`] cannot carry.
impl TryFrom<DeviceArray> for Array {
    type Error = Error;

    fn try_from(array: DeviceArray) -> Result<Self, Error> {
        let device_type = array.device_type();
        if device_type != ArrowDeviceType::CPU && !array.is_released() {
            return Err(Error::invalid(format!(
                "array: wrong device type: expected cpu, got {device_type}"
            )));
        }
        if !array.sync_event().is_null() {
            return Err(Error::invalid(
                "array: sync_event not NULL: expected none on cpu",
            ));
        }
        Ok(Self(array.into_raw().array))
    }
}

// --- What is below ------------------------------------------------------------------------------

impl<R: Nested> Owner<R> {
    /// The part with the children.
    pub(crate) fn base(&self) -> &Owner<R::Base> {
        // SAFETY: an owner is laid out as its struct, whose base is in `self`.
        unsafe { &*std::ptr::from_ref(self.0.base()).cast() }
    }

    /// The children, `None` for a pointer that is NULL. A child that was moved out is still listed,
    /// as a released struct. Empty too for a list that is NULL, and for a count that is negative or
    /// above 2^22.
    #[must_use]
    pub fn children(&self) -> &[Option<&Owner<R::Base>>] {
        // SAFETY: see from_raw. An optional reference is laid out as a pointer that may be NULL,
        // and an owner as its struct.
        self.live().map_or(&[], |raw| unsafe {
            let list = children_of(raw.base());
            std::slice::from_raw_parts(list.as_ptr().cast(), list.len())
        })
    }

    /// The dictionary.
    #[must_use]
    pub fn dictionary(&self) -> Option<&Owner<R::Base>> {
        // SAFETY: see from_raw; an owner is laid out as its struct.
        self.live()
            .and_then(|raw| unsafe { raw.base().dictionary().cast::<Owner<R::Base>>().as_ref() })
    }

    /// Moves child `index` out. The parent lists it as released; the texts ask that the parent is
    /// released soon afterwards.
    ///
    /// A child of a device array is a device array on the same device with the parent's event,
    /// which lives until the parent and every child that was taken are released: then `release` and
    /// `private_data` of both change.
    ///
    /// Errors: EINVAL when there is no such child, or it was moved out before.
    pub fn take_child(&mut self, index: usize) -> Result<Self, Error> {
        // SAFETY: see from_raw.
        let listed = self
            .live()
            .map_or(&[][..], |raw| unsafe { children_of(raw.base()) });
        let Some(child) = listed.get(index).copied() else {
            return Err(Error::invalid(format!(
                "take_child: child {index}: no such child: expected an index below {}",
                listed.len()
            )));
        };
        self.take(child, &|| format!("take_child: child {index}"))
    }

    /// The same for the dictionary.
    pub fn take_dictionary(&mut self) -> Result<Self, Error> {
        let dictionary = self
            .live()
            .map_or(std::ptr::null_mut(), |raw| raw.base().dictionary());
        self.take(dictionary, &|| "take_dictionary".into())
    }

    fn take(&mut self, below: *mut R::Base, what: &dyn Fn() -> String) -> Result<Self, Error> {
        // SAFETY: see from_raw; the owner is borrowed alone, and so is what is below it.
        let Some(below) = (unsafe { below.as_mut() }) else {
            return Err(Error::invalid(what() + ": NULL: expected a struct"));
        };
        if below.is_released() {
            return Err(Error::invalid(
                what() + ": released or moved out: expected a live struct",
            ));
        }
        let mut taken = self.0.around(below.move_out());
        // SAFETY: see from_raw; the child was the owner's.
        unsafe { self.0.keep_event(&mut taken) };
        Ok(Self(taken))
    }
}

// SPDX-License-Identifier: Apache-2.0

//! Owners of C interface structs: movable, not copyable, released once.

use std::ffi::{c_void, CStr};
use std::fmt;

use fletching_abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType,
    ArrowSchema,
};

use crate::error::Error;
use crate::handover::Handover;
use crate::metadata::Metadata;
use crate::raw::sealed::Raw as _;
use crate::raw::{Base, Nested, Raw};
use crate::tree::children_of;

/// Owns one struct of the C interfaces and releases it on drop.
///
/// Moving an owner is a move as the C data interface defines it: a bitwise copy that leaves the
/// source released. The struct is stored inline and moves with the owner. The memory that its
/// pointers refer to, including the event, does not move.
///
/// Values returned by the accessors belong to the producer and are valid while the owner is
/// borrowed. The accessors return zero or empty values if the struct is released.
///
/// The release callback is called exactly once, even if it does not set `release` to NULL, and may
/// run on any thread. The struct may have moved since the producer filled it, so the callback must
/// use its argument and not a stored address.
///
/// See "Memory management" in the Arrow C data interface.
#[repr(transparent)]
pub struct Owner<R: Raw>(R);

/// Owns an [`ArrowSchema`].
///
/// For children and moves see [`Owner::children`], [`Owner::take_child`], [`Owner::from_raw`],
/// [`Owner::into_raw`] and [`Owner::share`].
pub type Schema = Owner<ArrowSchema>;
/// Owns an [`ArrowArray`].
///
/// Methods shared with [`DeviceArray`]: [`length`](Owner::length),
/// [`null_count`](Owner::null_count), [`offset`](Owner::offset), [`buffers`](Owner::buffers).
/// Methods of every owner with children: [`children`](Owner::children),
/// [`dictionary`](Owner::dictionary), [`take_child`](Owner::take_child),
/// [`take_dictionary`](Owner::take_dictionary), [`attach`](Owner::attach), [`share`](Owner::share).
/// Methods of every owner: [`from_raw`](Owner::from_raw), [`move_from`](Owner::move_from),
/// [`into_raw`](Owner::into_raw), [`move_to`](Owner::move_to), [`as_raw`](Owner::as_raw),
/// [`out`](Owner::out), [`is_released`](Owner::is_released).
pub type Array = Owner<ArrowArray>;
/// Owns an [`ArrowDeviceArray`]. See [`Array`] for the shared methods.
pub type DeviceArray = Owner<ArrowDeviceArray>;
/// Owns an [`ArrowArrayStream`]. Iterate with `into_iter`, or with [`reader`](Owner::reader) to set
/// options.
pub type ArrayStream = Owner<ArrowArrayStream>;
/// Owns an [`ArrowDeviceArrayStream`]. Iterates like an [`ArrayStream`].
pub type DeviceArrayStream = Owner<ArrowDeviceArrayStream>;

// SAFETY: release and stream callbacks may be called from any thread, one at a time.
unsafe impl<R: Raw> Send for Owner<R> {}
// SAFETY: a shared schema or array is only read, and releasing it requires the owner. Streams are
// not thread-safe and therefore not Sync.
unsafe impl<R: Nested> Sync for Owner<R> {}

impl<R: Raw> Owner<R> {
    /// Takes ownership of a struct that is released or was filled by a producer.
    ///
    /// # Safety
    ///
    /// The struct conforms to the specification: its callbacks, strings, lists and children are
    /// valid, no other owner releases it, and its release callback may run on any thread.
    /// `sync_event` is NULL or an event of the device type. Buffer addresses need not be valid:
    /// this type never reads a buffer.
    #[must_use]
    pub unsafe fn from_raw(mut raw: R) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { Handover::Import.validate(R::KIND, &raw mut raw) };
        Self(raw)
    }

    /// Moves the struct out of `source`, which is then released.
    ///
    /// # Safety
    ///
    /// `source` points to a struct that meets the requirements of [`from_raw`](Self::from_raw).
    #[must_use]
    pub unsafe fn move_from(source: *mut R) -> Self {
        // SAFETY: the caller guarantees that `source` is valid.
        unsafe { Self::from_raw((*source).move_out()) }
    }

    /// Returns the struct. The caller must release it.
    #[must_use = "the struct must be released"]
    pub fn into_raw(mut self) -> R {
        // SAFETY: guaranteed by the contract of `from_raw`.
        unsafe { Handover::Export.validate(R::KIND, &raw mut self.0) };
        self.detach()
    }

    /// Moves the struct to `target`. Overwrites `target`; the caller must release it.
    ///
    /// # Safety
    ///
    /// `target` is valid for writes.
    pub unsafe fn move_to(self, target: *mut R) {
        // SAFETY: the caller guarantees that `target` is valid for writes.
        unsafe { target.write(self.into_raw()) }
    }

    /// Returns the struct, which the owner keeps.
    #[must_use]
    pub fn as_raw(&self) -> &R {
        &self.0
    }

    /// Releases the struct, zeroes it and returns its address for a producer to fill. The owner
    /// takes ownership of the result, which must meet the requirements of
    /// [`from_raw`](Self::from_raw).
    #[must_use]
    pub fn out(&mut self) -> *mut R {
        if !self.is_released() {
            drop(Self(self.0.move_out()));
        }
        self.0 = R::zeroed();
        &mut self.0
    }

    /// Whether the struct is released: never filled, or moved out by foreign code.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.0.is_released()
    }

    /// [`from_raw`](Self::from_raw) for a struct of this library.
    ///
    /// # Safety
    ///
    /// As for `from_raw`.
    pub(crate) unsafe fn new(raw: R) -> Self {
        Self(raw)
    }

    /// [`into_raw`](Self::into_raw) for a struct that this library keeps.
    pub(crate) fn detach(mut self) -> R {
        self.0.move_out()
    }

    /// The struct's address, for callbacks.
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
        // SAFETY: the struct is owned. It is marked as released if it was moved out.
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
        // SAFETY: guaranteed by the contract of `from_raw`.
        unsafe { self.0.format_cstr() }.unwrap_or_default()
    }

    /// The name, empty if it is NULL (the specification treats both alike). Not necessarily valid
    /// UTF-8.
    #[must_use]
    pub fn name(&self) -> &CStr {
        // SAFETY: guaranteed by the contract of `from_raw`.
        unsafe { self.0.name_cstr() }.unwrap_or_default()
    }

    /// The `ARROW_FLAG_` bits.
    #[must_use]
    pub fn flags(&self) -> i64 {
        self.live().map_or(0, |raw| raw.flags)
    }

    /// Returns the validated metadata. Errors: EINVAL, see [`Metadata::read`].
    pub fn metadata(&self) -> Result<Metadata<'_>, Error> {
        let block = self.live().map_or(std::ptr::null(), |raw| raw.metadata);
        // SAFETY: guaranteed by the contract of `from_raw`.
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

    /// The number of nulls, or -1 if the producer has not counted them.
    #[must_use]
    pub fn null_count(&self) -> i64 {
        self.array().map_or(0, |array| array.null_count)
    }

    /// The index of the first value in each buffer.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.array().map_or(0, |array| array.offset)
    }

    /// The buffer addresses, on the array's device.
    #[must_use]
    pub fn buffers(&self) -> &[*const c_void] {
        // SAFETY: guaranteed by the contract of `from_raw`.
        self.array()
            .map_or(&[], |array| unsafe { array.buffers_slice() })
    }
}

impl DeviceArray {
    /// The type of the device that holds the buffers, or 0 if the array is released.
    #[must_use]
    pub fn device_type(&self) -> ArrowDeviceType {
        self.live()
            .map_or(ArrowDeviceType(0), |raw| raw.device_type)
    }

    /// The number of the device among the devices of its type, or -1 if it is irrelevant, as on the
    /// CPU.
    #[must_use]
    pub fn device_id(&self) -> i64 {
        self.live().map_or(-1, |raw| raw.device_id)
    }

    /// The array. Its buffers are on the device.
    #[must_use]
    pub fn as_array(&self) -> &Array {
        self.base()
    }

    /// The event to wait on before reading a buffer, or NULL.
    #[must_use]
    pub fn sync_event(&self) -> *mut c_void {
        self.live()
            .map_or(std::ptr::null_mut(), |raw| raw.sync_event)
    }
}

/// Makes a CPU device array, with `device_id` -1 as Arrow uses for the CPU.
impl From<Array> for DeviceArray {
    fn from(array: Array) -> Self {
        Self(ArrowDeviceArray {
            array: array.detach(),
            device_id: -1,
            device_type: ArrowDeviceType::CPU,
            ..ArrowDeviceArray::zeroed()
        })
    }
}

/// Extracts the array from a CPU device array. Errors: EINVAL for another device type, and for an
/// array with an event, which an [`ArrowArray`] cannot carry.
impl TryFrom<DeviceArray> for Array {
    type Error = Error;

    fn try_from(array: DeviceArray) -> Result<Self, Error> {
        let device_type = array.device_type();
        if device_type != ArrowDeviceType::CPU && !array.is_released() {
            return Err(Error::invalid(format!(
                "Array::try_from: wrong device type: expected cpu, got {device_type}"
            )));
        }
        if !array.sync_event().is_null() {
            return Err(Error::invalid(
                "Array::try_from: sync_event not NULL: expected none on cpu",
            ));
        }
        Ok(Self(array.detach().array))
    }
}

// --- Children and dictionaries ------------------------------------------------------------------

impl<R: Nested> Owner<R> {
    /// The part that has the children.
    pub(crate) fn base(&self) -> &Owner<R::Base> {
        // SAFETY: an owner has the layout of its struct, and the base is inside `self`.
        unsafe { &*std::ptr::from_ref(self.0.base()).cast() }
    }

    /// The children, `None` for a NULL pointer. A child that was moved out is still listed, as a
    /// released struct. Empty if the list is NULL, or if the count is negative or above 2^22.
    #[must_use]
    pub fn children(&self) -> &[Option<&Owner<R::Base>>] {
        // SAFETY: guaranteed by the contract of `from_raw`. An optional reference has the layout of
        // a nullable pointer, and an owner the layout of its struct.
        self.live().map_or(&[], |raw| unsafe {
            let list = children_of(raw.base());
            std::slice::from_raw_parts(list.as_ptr().cast(), list.len())
        })
    }

    /// The dictionary.
    #[must_use]
    pub fn dictionary(&self) -> Option<&Owner<R::Base>> {
        // SAFETY: guaranteed by the contract of `from_raw`; an owner has the layout of its struct.
        self.live()
            .and_then(|raw| unsafe { raw.base().dictionary().cast::<Owner<R::Base>>().as_ref() })
    }

    /// Moves child `index` out. The parent still lists it, as released; the specification asks to
    /// release the parent soon afterwards.
    ///
    /// A child of a device array is a device array on the same device and with the parent's event.
    /// The event stays alive until the parent and all children taken from it are released, for
    /// which `release` and `private_data` of both are replaced.
    ///
    /// Errors: EINVAL if there is no such child, or if it was already moved out.
    pub fn take_child(&mut self, index: usize) -> Result<Self, Error> {
        // SAFETY: guaranteed by the contract of `from_raw`.
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

    /// Moves the dictionary out, like [`take_child`](Self::take_child).
    pub fn take_dictionary(&mut self) -> Result<Self, Error> {
        let dictionary = self
            .live()
            .map_or(std::ptr::null_mut(), |raw| raw.base().dictionary());
        self.take(dictionary, &|| "take_dictionary".into())
    }

    fn take(&mut self, below: *mut R::Base, what: &dyn Fn() -> String) -> Result<Self, Error> {
        // SAFETY: guaranteed by the contract of `from_raw`; the owner and its descendants are
        // borrowed exclusively.
        let Some(below) = (unsafe { below.as_mut() }) else {
            return Err(Error::invalid(what() + ": NULL: expected a struct"));
        };
        if below.is_released() {
            return Err(Error::invalid(
                what() + ": released or moved out: expected a live struct",
            ));
        }
        let mut taken = self.0.around(below.move_out());
        // SAFETY: guaranteed by the contract of `from_raw`; the child belonged to the owner.
        unsafe { self.0.keep_event(&mut taken) };
        Ok(Self(taken))
    }
}

// SPDX-License-Identifier: Apache-2.0

//! Builds device arrays.

use std::ffi::c_void;
use std::ptr;

use fletching_abi::{ArrowDeviceArray, ArrowDeviceType, EventPointer};

use crate::array_builder::ArrayBuilder;
use crate::error::Error;
use crate::owner::{DeviceArray, Owner};

impl<T: Send + 'static> ArrayBuilder<T> {
    /// Builds a device array without an event. Errors: as for [`finish`](Self::finish).
    #[inline]
    pub fn finish_on(
        self,
        device_type: ArrowDeviceType,
        device_id: i64,
    ) -> Result<DeviceArray, Error> {
        // SAFETY: there is no event.
        unsafe { self.finish_with_event(device_type, device_id, ptr::null_mut()) }
    }

    /// Builds a device array with an event.
    ///
    /// Errors: as for [`finish`](Self::finish); EINVAL also for an event if the device type has
    /// none.
    ///
    /// # Safety
    ///
    /// `sync_event` is NULL or an event as the device type requires (docs/synchronization.md):
    /// normally the address of the handle, valid until the object is dropped.
    #[inline]
    pub unsafe fn finish_with_event(
        self,
        device_type: ArrowDeviceType,
        device_id: i64,
        sync_event: *mut c_void,
    ) -> Result<DeviceArray, Error> {
        if !sync_event.is_null() {
            require_event(device_type)?;
        }
        let array = self.finish()?.detach();
        // SAFETY: the array was just built, and the caller guarantees that the event is valid.
        Ok(unsafe {
            Owner::new(ArrowDeviceArray {
                array,
                device_id,
                device_type,
                sync_event,
                ..ArrowDeviceArray::zeroed()
            })
        })
    }
}

#[cold]
fn require_event(device_type: ArrowDeviceType) -> Result<(), Error> {
    if device_type
        .info()
        .is_none_or(|info| info.event_pointer != EventPointer::None)
    {
        return Ok(());
    }
    Err(Error::invalid(
        "ArrayBuilder: sync_event not NULL: expected NULL, because the device type has no event",
    ))
}

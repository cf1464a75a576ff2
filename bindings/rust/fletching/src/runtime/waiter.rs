// SPDX-License-Identifier: Apache-2.0

//! The registry of waiters, by device type.

use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Arc, PoisonError, RwLock};

use fletching_abi::ArrowDeviceType;

use super::{Stream, SyncEvent};
use crate::c_core::{self as core, call, FletchingMessage, FletchingWaiter};
use crate::error::{discard, guarded};
use crate::Error;

/// Waits on events of device types that this crate does not call: SYCL, Metal, Vulkan, `ext_dev`,
/// and device types newer than the crate.
///
/// Leave the default of a method that the runtime does not support; it returns ENOTSUP. The methods
/// may be called on any thread, also concurrently. A panic is returned as EIO. See "Synchronization
/// Events" in the Arrow C device data interface.
#[allow(unused_variables, reason = "of the defaults")]
pub trait Waiter: Send + Sync {
    /// Blocks the calling thread until the event has completed.
    fn synchronize(&self, event: &SyncEvent<'_>) -> Result<(), Error> {
        unsupported()
    }

    /// Makes later work on the stream wait for the event, and returns while it is still pending.
    fn wait_on(&self, event: &SyncEvent<'_>, stream: &Stream) -> Result<(), Error> {
        unsupported()
    }

    /// Whether the event has completed. Does not block.
    fn is_ready(&self, event: &SyncEvent<'_>) -> Result<bool, Error> {
        unsupported()
    }
}

/// The core adds the operation and the device type to the message.
fn unsupported<T>() -> Result<T, Error> {
    let text = "not supported by the registered waiter";
    Err(Error::new(crate::errno::ENOTSUP, text))
}

type Registry = Vec<(ArrowDeviceType, Arc<dyn Waiter>)>;
static REGISTRY: RwLock<Registry> = RwLock::new(Vec::new());

/// Replaces or removes the waiter of a device type, here and in the core. The lock covers both, so
/// that concurrent calls leave the same waiter in both. Returns the previous waiter, which is
/// dropped without the lock.
fn exchange(
    device_type: ArrowDeviceType,
    new: Option<Arc<dyn Waiter>>,
    in_core: impl FnOnce() -> Result<(), Error>,
) -> Result<Option<Arc<dyn Waiter>>, Error> {
    let mut registry = REGISTRY.write().unwrap_or_else(PoisonError::into_inner);
    in_core()?;
    let place = registry.iter().position(|entry| entry.0 == device_type);
    let previous = place.map(|place| registry.swap_remove(place).1);
    registry.extend(new.map(|waiter| (device_type, waiter)));
    Ok(previous)
}

/// Registers the waiter for the events of a device type, in this process. Replaces the previous
/// waiter; calls in progress continue with it.
///
/// Errors: EINVAL for the device types of CUDA, HIP and OpenCL, which need no waiter.
pub fn register_waiter(
    device_type: ArrowDeviceType,
    waiter: impl Waiter + 'static,
) -> Result<(), Error> {
    // The core stores only the device type, so that no call uses a waiter that was dropped.
    let calls = FletchingWaiter {
        synchronize: Some(synchronize),
        wait_on: Some(wait_on),
        ready: Some(ready),
        context: ptr::without_provenance_mut(device_type.0 as usize),
    };
    exchange(device_type, Some(Arc::new(waiter)), || {
        // SAFETY: the core copies the struct.
        unsafe { call!("register_waiter", RegisterWaiter(device_type, &calls)) }
    })
    .map(drop)
}

/// Removes the waiter of a device type. Returns false if there was none.
pub fn unregister_waiter(device_type: ArrowDeviceType) -> bool {
    let previous = exchange(device_type, None, || {
        // SAFETY: any number is allowed.
        unsafe { core::UnregisterWaiter(device_type) };
        Ok(())
    });
    previous.is_ok_and(|previous| previous.is_some())
}

// --- Callbacks of the core ----------------------------------------------------------------------

unsafe extern "C" fn synchronize(
    context: *mut c_void,
    event: *mut c_void,
    device_id: i64,
    message: *mut FletchingMessage,
) -> c_int {
    let call = |waiter: &dyn Waiter, event: &SyncEvent| waiter.synchronize(event);
    // SAFETY: the core passes a message.
    unsafe { called(context, event, device_id, message, call) }
}

unsafe extern "C" fn wait_on(
    context: *mut c_void,
    event: *mut c_void,
    device_id: i64,
    stream: *mut c_void,
    message: *mut FletchingMessage,
) -> c_int {
    let call = |waiter: &dyn Waiter, event: &SyncEvent| {
        // SAFETY: the handle comes from the caller's `Stream`, so it meets the contract of
        // `from_raw`.
        waiter.wait_on(event, &unsafe {
            Stream::from_raw(event.device_type, stream)
        })
    };
    // SAFETY: as above.
    unsafe { called(context, event, device_id, message, call) }
}

unsafe extern "C" fn ready(
    context: *mut c_void,
    event: *mut c_void,
    device_id: i64,
    ready: *mut c_int,
    message: *mut FletchingMessage,
) -> c_int {
    let call = |waiter: &dyn Waiter, event: &SyncEvent| {
        let is_ready = waiter.is_ready(event)?;
        // SAFETY: the core passes the address of an integer.
        unsafe { *ready = is_ready.into() };
        Ok(())
    };
    // SAFETY: as above.
    unsafe { called(context, event, device_id, message, call) }
}

/// # Safety
///
/// `message` points to a message.
unsafe fn called(
    context: *mut c_void,
    event: *mut c_void,
    device_id: i64,
    message: *mut FletchingMessage,
    call: impl FnOnce(&dyn Waiter, &SyncEvent) -> Result<(), Error>,
) -> c_int {
    let event = SyncEvent {
        device_type: ArrowDeviceType(context.addr() as i32),
        device_id,
        pointer: event,
        array: PhantomData,
    };
    let result = guarded(|| {
        let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
        let entry = registry.iter().find(|entry| entry.0 == event.device_type);
        let waiter = entry.map(|entry| Arc::clone(&entry.1));
        drop(registry);
        // Another thread may be registering or removing the waiter.
        let none = || Error::new(crate::errno::ENOTSUP, "no waiter is registered");
        call(&*waiter.ok_or_else(none)?, &event)
    });
    let Err(error) = result else { return 0 };
    // The core truncates a message that is too long, at a character boundary.
    let text = error.message().bytes().chain([0]);
    // SAFETY: the caller passes a message.
    for (to, from) in unsafe { &mut (*message).text }.iter_mut().zip(text) {
        *to = from as c_char;
    }
    let code = error.code();
    discard(error);
    code
}

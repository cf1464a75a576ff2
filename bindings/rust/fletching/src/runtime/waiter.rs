// SPDX-License-Identifier: Apache-2.0

//! The waiters that the process has registered, by device type.

use std::sync::{Arc, PoisonError, RwLock};

use fletching_abi::{ArrowDeviceType, EventPointer};

use super::event::SyncEvent;
use super::tables::Runtime;
use super::{events_of, Stream};
use crate::Error;

/// How to wait on the events of a device type that this crate does not call itself: of SYCL, of
/// Metal, of Vulkan, of `ext_dev`, of device types that are newer than the crate.
///
/// A method that the runtime does not support keeps its default, which says so. All may be called
/// from any thread, several at once. Text: Arrow C device data interface, "Synchronization Events".
pub trait Waiter: Send + Sync {
    /// Blocks the calling thread until the event has happened.
    fn synchronize(&self, event: &SyncEvent<'_>) -> Result<(), Error> {
        Err(unsupported("synchronize", event))
    }

    /// Lets what is enqueued on the stream from now on wait for the event, and returns while it is
    /// still pending.
    fn wait_on(&self, event: &SyncEvent<'_>, stream: &Stream) -> Result<(), Error> {
        let _ = stream;
        Err(unsupported("wait_on", event))
    }

    /// Whether the event has happened. Does not block.
    fn is_ready(&self, event: &SyncEvent<'_>) -> Result<bool, Error> {
        Err(unsupported("is_ready", event))
    }
}

fn unsupported(operation: &str, event: &SyncEvent) -> Error {
    Error::new(
        crate::errno::ENOTSUP,
        format!(
            "{operation} of an event of {}: not supported by the registered waiter",
            event.device_type
        ),
    )
}

type Registry = Vec<(ArrowDeviceType, Arc<dyn Waiter>)>;
static REGISTRY: RwLock<Registry> = RwLock::new(Vec::new());

fn with_registry<T>(change: impl FnOnce(&mut Registry) -> T) -> T {
    change(&mut REGISTRY.write().unwrap_or_else(PoisonError::into_inner))
}

/// Registers how to wait on the events of a device type, for this process. A waiter that was there
/// is replaced; calls that have begun finish with it.
///
/// Errors: EINVAL for a device type that is waited on without one: of CUDA, HIP and OpenCL.
pub fn register_waiter(
    device_type: ArrowDeviceType,
    waiter: impl Waiter + 'static,
) -> Result<(), Error> {
    if events_of(device_type).is_some() {
        return Err(Error::invalid(format!(
            "register_waiter: {device_type} needs no waiter: expected a device type without a \
             runtime in Fletching"
        )));
    }
    let replaced = with_registry(|registry| {
        let place = registry.iter().position(|entry| entry.0 == device_type);
        let replaced = place.map(|place| registry.swap_remove(place));
        registry.push((device_type, Arc::new(waiter)));
        replaced
    });
    drop(replaced); // outside of the lock, which its drop may want
    Ok(())
}

/// Removes the waiter of a device type. False when there was none.
pub fn unregister_waiter(device_type: ArrowDeviceType) -> bool {
    let removed = with_registry(|registry| {
        let place = registry.iter().position(|entry| entry.0 == device_type)?;
        Some(registry.swap_remove(place))
    });
    removed.is_some()
}

/// The waiter for the event. Errors: ENOTSUP, with the reason why there is no other way.
pub(super) fn waiter_for(operation: &str, event: &SyncEvent) -> Result<Arc<dyn Waiter>, Error> {
    let device_type = event.device_type;
    let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = registry.iter().find(|entry| entry.0 == device_type) {
        return Ok(Arc::clone(&entry.1));
    }
    let has_no_event =
        device_type.info().map(|info| info.event_pointer) == Some(EventPointer::None);
    let why = match Runtime::of(device_type) {
        Some(Runtime::Vulkan) => {
            "VkEvent without its VkDevice and VkQueue; hint: pass a VulkanContext, or register a \
             waiter"
                .to_owned()
        }
        _ if has_no_event => format!(
            "no way to wait on an event of {device_type}: expected sync_event NULL on this device \
             type"
        ),
        _ => format!(
            "no way to wait on an event of {device_type}; hint: register a waiter for this device \
             type"
        ),
    };
    Err(Error::new(
        crate::errno::ENOTSUP,
        format!("{operation}: {why}"),
    ))
}

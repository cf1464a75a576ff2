// SPDX-License-Identifier: Apache-2.0

//! One backend of the producer, and the three operations on its events.

use std::ffi::{c_int, c_void};

use fletching::runtime::{register_waiter, Stream, SyncEvent, VulkanContext, Waiter};
use fletching::{ArrowDeviceType, DeviceArray, Error};
use fletching_transit_rust::producer::{c_text, checked, Message, Producer};

use crate::gated::Functions;

const STAND_IN: i32 = 1;
const ABSENT: i32 = 2;

/// `FletchingProducerVulkan`
#[repr(C)]
pub struct VulkanHandles {
    instance: *mut c_void,
    physical_device: *mut c_void,
    device: *mut c_void,
    queue: *mut c_void,
    queue_family: u32,
    set_stages: u32,
    get_device_proc_addr: Option<unsafe extern "C" fn()>,
}

/// One backend of the producer. The one of `ext_dev` registers its waiter.
pub struct Device {
    pub producer: Producer,
    pub functions: Functions,
    pub backend: String,
    /// As a cell has it.
    pub status: &'static str,
    /// The device's name and version, or why it is absent.
    pub description: String,
    vulkan: Option<VulkanContext>,
}

impl Device {
    pub fn new(producer: Producer, backend: &str) -> Result<Self, Error> {
        let functions = Functions::load().map_err(|problem| Error::new(libc::ENOENT, problem))?;
        let (name, mut presence, mut message) = (c_text(backend), ABSENT, Message::empty());
        // SAFETY: the name ends with NUL.
        let code = unsafe { (functions.presence)(name.as_ptr(), &mut presence, &mut message) };
        if code != 0 {
            return Err(Error::new(code, message.text()));
        }
        let mut device = Self {
            producer,
            functions,
            backend: backend.into(),
            status: match presence {
                ABSENT => "absent",
                STAND_IN => "stand-in",
                _ => "real",
            },
            description: message.text(),
            vulkan: None,
        };
        if presence != ABSENT && backend == "vulkan" {
            device.vulkan = Some(vulkan_context(&device.functions)?);
        }
        if backend == "ext_dev" {
            register_waiter(ArrowDeviceType::EXT_DEV, ExtDevWaiter)?;
        }
        Ok(device)
    }

    /// cpu alone has none: no event, no gate.
    pub fn has_queues(&self) -> bool {
        self.backend != "cpu"
    }

    pub fn is_ready(&self, array: &DeviceArray) -> Result<bool, Error> {
        match &self.vulkan {
            // SAFETY: the producer made the event with this device.
            Some(context) => unsafe { array.is_ready_vulkan(context) },
            None => array.is_ready(),
        }
    }

    /// `handle`: of [`Queue::handle`](crate::gated::Queue::handle).
    pub fn wait_on(&self, array: &DeviceArray, handle: *mut c_void) -> Result<(), Error> {
        // SAFETY: the handle is of the producer's queue, or NULL where there is nothing to wait for.
        unsafe {
            match &self.vulkan {
                Some(context) => array.wait_on_vulkan(context, handle),
                None => array.wait_on(&Stream::from_raw(array.device_type(), handle)),
            }
        }
    }

    pub fn synchronize(&self, array: &DeviceArray) -> Result<(), Error> {
        match &self.vulkan {
            // SAFETY: as in is_ready.
            Some(context) => unsafe { array.synchronize_vulkan(context) },
            None => array.synchronize(),
        }
    }
}

fn vulkan_context(functions: &Functions) -> Result<VulkanContext, Error> {
    let mut handles = VulkanHandles {
        instance: std::ptr::null_mut(),
        physical_device: std::ptr::null_mut(),
        device: std::ptr::null_mut(),
        queue: std::ptr::null_mut(),
        queue_family: 0,
        set_stages: 0,
        get_device_proc_addr: None,
    };
    // SAFETY: the handles are ours to be filled.
    checked(|message| unsafe { (functions.vulkan_handles)(&mut handles, message) })?;
    let get = handles.get_device_proc_addr;
    let get = get.ok_or_else(|| Error::new(libc::EINVAL, "no vkGetDeviceProcAddr"))?;
    // SAFETY: the handles live as long as the producer's library.
    unsafe {
        Ok(VulkanContext::new(handles.device)
            .with_queues(handles.queue, handles.queue, handles.set_stages)
            .with_device_functions(get))
    }
}

/// `FletchingExtDevEvent`
#[repr(C)]
struct ExtDevEvent {
    query: unsafe extern "C" fn(*const Self) -> c_int,
    synchronize: unsafe extern "C" fn(*const Self),
    wait_on: unsafe extern "C" fn(*const Self, *mut c_void) -> c_int,
}

/// The waiter that a consumer of `ext_dev` registers: the functions of `ext_dev.h`.
struct ExtDevWaiter;

impl ExtDevWaiter {
    fn event<'a>(event: &SyncEvent<'a>) -> &'a ExtDevEvent {
        // SAFETY: ext_dev is the producer's, whose events are these. They live as long as the array.
        unsafe { &*event.as_ptr().cast() }
    }
}

impl Waiter for ExtDevWaiter {
    fn synchronize(&self, event: &SyncEvent<'_>) -> Result<(), Error> {
        let event = Self::event(event);
        // SAFETY: the event is alive.
        unsafe { (event.synchronize)(event) };
        Ok(())
    }

    fn wait_on(&self, event: &SyncEvent<'_>, stream: &Stream) -> Result<(), Error> {
        let event = Self::event(event);
        // SAFETY: the event and the queue are alive.
        match unsafe { (event.wait_on)(event, stream.as_ptr()) } {
            0 => Ok(()),
            code => Err(Error::new(code, "ext_dev: wait_on failed")),
        }
    }

    fn is_ready(&self, event: &SyncEvent<'_>) -> Result<bool, Error> {
        let event = Self::event(event);
        // SAFETY: the event is alive.
        Ok(unsafe { (event.query)(event) } != 0)
    }
}

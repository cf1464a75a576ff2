// SPDX-License-Identifier: Apache-2.0

//! The operations for Vulkan, through the C ABI of libfletching (`fletching/c_api.h`).

use std::ffi::{c_char, c_int, c_void};

use fletching_abi::{ArrowDeviceArray, ArrowDeviceType};

use super::vendor::{Library, Symbol};
use crate::error::printable;
use crate::{DeviceArray, Error};

/// What a wait on a `VkEvent` needs: the interface does not hand over what the event belongs to, so
/// the producer has to pass it separately. The `FletchingVulkanWaitContext` of the C ABI.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct VulkanContext {
    device: *mut c_void,
    producer_queue: *mut c_void,
    queue: *mut c_void,
    set_stages: u32,
    get_device_proc_addr: Option<unsafe extern "C" fn()>,
}

impl VulkanContext {
    /// For `synchronize_vulkan` and `is_ready_vulkan`, with the functions of the loader.
    ///
    /// # Safety
    ///
    /// `device` is the `VkDevice` with which the producer created the event, and lives as long as
    /// this value, or a copy, is used, and as long as a command buffer with the wait is pending.
    #[must_use]
    pub const unsafe fn new(device: *mut c_void) -> Self {
        Self {
            device,
            producer_queue: std::ptr::null_mut(),
            queue: std::ptr::null_mut(),
            set_stages: 0,
            get_device_proc_addr: None,
        }
    }

    /// For `wait_on_vulkan`: the `VkQueue` on which the producer sets the event, the one to which
    /// the caller submits, and the `VkPipelineStageFlags` with which the producer sets it, 0 for all
    /// commands.
    #[must_use]
    pub const fn with_queues(mut self, producer: *mut c_void, own: *mut c_void, set: u32) -> Self {
        (self.producer_queue, self.queue, self.set_stages) = (producer, own, set);
        self
    }

    /// With the `vkGetDeviceProcAddr` of the device in place of the loader's functions.
    ///
    /// # Safety
    ///
    /// The function is that, cast to this type.
    #[must_use]
    pub const unsafe fn with_device_functions(mut self, get: unsafe extern "C" fn()) -> Self {
        self.get_device_proc_addr = Some(get);
        self
    }
}

const LIBRARIES: &[&str] = if cfg!(windows) {
    &["fletching.dll"]
} else if cfg!(target_os = "macos") {
    &["libfletching.0.1.dylib", "libfletching.dylib"]
} else {
    &["libfletching.so.0.1", "libfletching.so"]
};

#[repr(C)]
struct Message([c_char; 1024]);

type Context = *const VulkanContext;
type Simple = unsafe extern "C" fn(*const ArrowDeviceArray, Context, *mut Message) -> c_int;
type With<T> = unsafe extern "C" fn(*const ArrowDeviceArray, Context, T, *mut Message) -> c_int;

#[derive(Clone, Copy)]
struct Functions {
    synchronize: Symbol<Simple>,
    wait_on: Symbol<With<*mut c_void>>,
    ready: Symbol<With<*mut c_int>>,
}

fn functions() -> Result<Functions, Error> {
    let library = Library::open("Vulkan events through libfletching", LIBRARIES)?;
    // SAFETY: the types are those of fletching/c_api.h.
    unsafe {
        Ok(Functions {
            synchronize: library.required(c"FletchingDeviceArraySynchronizeVulkan")?,
            wait_on: library.required(c"FletchingDeviceArrayWaitOnVulkan")?,
            ready: library.required(c"FletchingDeviceArrayReadyVulkan")?,
        })
    }
}

/// The event of Vulkan, see the [module](crate::runtime). Without libfletching: ENOENT.
impl DeviceArray {
    fn in_vulkan(
        &self,
        call: impl FnOnce(&Functions, *const ArrowDeviceArray, *mut Message) -> c_int,
    ) -> Result<(), Error> {
        match self.event()? {
            None => return Ok(()),
            Some(event) if event.device_type != ArrowDeviceType::VULKAN => {
                return Err(Error::invalid(format!(
                    "VulkanContext: expected an event of Vulkan, got one of {}",
                    event.device_type
                )));
            }
            Some(_) => {}
        }
        let mut message = Message([0; 1024]);
        let code = call(&functions()?, self.as_raw(), &mut message);
        if code == 0 {
            return Ok(());
        }
        let text: Vec<u8> = message.0.iter().map(|&byte| byte as u8).collect();
        let end = text.iter().position(|&byte| byte == 0);
        Err(Error::new(
            code,
            printable(&text[..end.unwrap_or(text.len())]),
        ))
    }

    /// Blocks the calling thread until the event has happened. Vulkan has no host wait for a
    /// `VkEvent`: it is asked again and again, with sleeps of up to a millisecond in between. The
    /// event must not be one that only the device can use.
    pub fn synchronize_vulkan(&self, context: &VulkanContext) -> Result<(), Error> {
        self.in_vulkan(|functions, array, message| {
            // SAFETY: the array and the device are alive, see from_raw and VulkanContext::new.
            unsafe { (functions.synchronize.function)(array, context, message) }
        })
    }

    /// Records a wait for the event into a command buffer: commands behind it see what was written
    /// before the event. It has to be submitted to the producer's queue, since a `VkEvent` orders
    /// the commands of one queue only; ENOTSUP for another one. It does not block.
    ///
    /// # Safety
    ///
    /// `command_buffer` is a `VkCommandBuffer` in the recording state and outside of a render pass,
    /// used by this thread alone. The array lives until the command buffer is done.
    pub unsafe fn wait_on_vulkan(
        &self,
        context: &VulkanContext,
        command_buffer: *mut c_void,
    ) -> Result<(), Error> {
        self.in_vulkan(|functions, array, message| {
            // SAFETY: as above; the caller vouches for the command buffer.
            unsafe { (functions.wait_on.function)(array, context, command_buffer, message) }
        })
    }

    /// Whether the event has happened. Does not block. The event must not be one that only the
    /// device can use.
    pub fn is_ready_vulkan(&self, context: &VulkanContext) -> Result<bool, Error> {
        let mut ready = 1;
        self.in_vulkan(|functions, array, message| {
            // SAFETY: as in synchronize_vulkan.
            unsafe { (functions.ready.function)(array, context, &raw mut ready, message) }
        })?;
        Ok(ready != 0)
    }
}

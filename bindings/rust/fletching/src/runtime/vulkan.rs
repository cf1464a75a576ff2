// SPDX-License-Identifier: Apache-2.0

//! The operations for Vulkan, through the C ABI of libfletching (`fletching/c_api.h`).

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr;

use fletching_abi::{ArrowDeviceArray, ArrowDeviceType};

use super::vendor::Library;
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

// SAFETY: `new` asks that the device may be used on any thread. Its functions that ask or record an
// event need no external synchronization of the device (Vulkan specification, "Threading Behavior").
// The queues are only compared with each other.
unsafe impl Send for VulkanContext {}
// SAFETY: as above; nothing changes after it is made.
unsafe impl Sync for VulkanContext {}

impl VulkanContext {
    /// For `synchronize_vulkan` and `is_ready_vulkan`, with the functions of the loader.
    ///
    /// # Safety
    ///
    /// `device` is a `VkDevice`. It lives as long as this value, or a copy, is used, and as long as a
    /// command buffer with the wait is pending. It may be used on any thread.
    #[must_use]
    pub const unsafe fn new(device: *mut c_void) -> Self {
        Self {
            device,
            producer_queue: ptr::null_mut(),
            queue: ptr::null_mut(),
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

/// With what is between the context and the message: nothing, a command buffer, or `int *ready`.
type Simple =
    unsafe extern "C" fn(*const ArrowDeviceArray, *const VulkanContext, *mut Message) -> c_int;
type With = unsafe extern "C" fn(
    *const ArrowDeviceArray,
    *const VulkanContext,
    *mut c_void,
    *mut Message,
) -> c_int;

/// The event of Vulkan, see the [module](crate::runtime). Without libfletching: ENOENT.
impl DeviceArray {
    /// Calls a function of libfletching.
    ///
    /// # Safety
    ///
    /// `F` is the type of a pointer to that function, and `call` calls it.
    unsafe fn in_vulkan<F: Copy>(
        &self,
        function: &'static CStr,
        call: impl FnOnce(F, *const ArrowDeviceArray, *mut Message) -> c_int,
    ) -> Result<(), Error> {
        match self.event()?.map(|event| event.device_type) {
            None => return Ok(()),
            Some(ArrowDeviceType::VULKAN) => {}
            Some(other) => {
                return Err(Error::invalid(format!(
                    "VulkanContext: expected an event of Vulkan, got one of {other}"
                )));
            }
        }
        let library = Library::open("Vulkan events through libfletching", LIBRARIES)?;
        // SAFETY: the caller vouches for the type.
        let function = unsafe { library.required::<F>(function) }?.function;
        let mut message = Message([0; 1024]);
        match call(function, self.as_raw(), &mut message) {
            0 => Ok(()),
            // SAFETY: the message is a text that ends in NUL.
            code => Err(unsafe { Error::foreign(code, message.0.as_ptr()) }),
        }
    }

    /// Blocks the calling thread until the event has happened. Vulkan has no host wait for a
    /// `VkEvent`: it is asked again and again, with sleeps of up to a millisecond in between. The
    /// event must not be one that only the device can use.
    ///
    /// # Safety
    ///
    /// The array's event, if it has one, was created with the `VkDevice` of the context.
    pub unsafe fn synchronize_vulkan(&self, context: &VulkanContext) -> Result<(), Error> {
        // SAFETY: as in c_api.h; the caller vouches for the event. The array is alive, and so is the
        // device, see VulkanContext::new.
        unsafe {
            let name = c"FletchingDeviceArraySynchronizeVulkan";
            self.in_vulkan(name, |call: Simple, array, message| {
                call(array, context, message)
            })
        }
    }

    /// Records a wait for the event into a command buffer: commands behind it see what was written
    /// before the event. It has to be submitted to the producer's queue, since a `VkEvent` orders
    /// the commands of one queue only; ENOTSUP for another one. It does not block.
    ///
    /// # Safety
    ///
    /// The array's event, if it has one, was created with the `VkDevice` of the context.
    /// `command_buffer` is a `VkCommandBuffer` in the recording state and outside of a render pass,
    /// used by this thread alone. The array lives until the command buffer is done.
    pub unsafe fn wait_on_vulkan(
        &self,
        context: &VulkanContext,
        command_buffer: *mut c_void,
    ) -> Result<(), Error> {
        // SAFETY: as in synchronize_vulkan.
        unsafe {
            let name = c"FletchingDeviceArrayWaitOnVulkan";
            self.in_vulkan(name, |call: With, array, message| {
                call(array, context, command_buffer, message)
            })
        }
    }

    /// Whether the event has happened. Does not block. The event must not be one that only the
    /// device can use.
    ///
    /// # Safety
    ///
    /// The array's event, if it has one, was created with the `VkDevice` of the context.
    pub unsafe fn is_ready_vulkan(&self, context: &VulkanContext) -> Result<bool, Error> {
        let mut ready: c_int = 1;
        let pointer = (&raw mut ready).cast();
        // SAFETY: as in synchronize_vulkan.
        unsafe {
            let name = c"FletchingDeviceArrayReadyVulkan";
            self.in_vulkan(name, |call: With, array, message| {
                call(array, context, pointer, message)
            })?;
        }
        Ok(ready != 0)
    }
}

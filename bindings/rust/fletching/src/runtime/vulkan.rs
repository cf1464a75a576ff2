// SPDX-License-Identifier: Apache-2.0

//! The Vulkan operations, which need objects that the interface does not pass.

use std::ffi::c_void;
use std::ptr;

use crate::c_core::{call, FletchingVulkanWaitContext};
use crate::{DeviceArray, Error};

/// The Vulkan objects needed to wait on a `VkEvent`. The producer passes them separately.
#[derive(Clone, Copy, Debug)]
pub struct VulkanContext(FletchingVulkanWaitContext);

// SAFETY: `new` requires that the device may be used on any thread. Querying or recording an event
// needs no external synchronization of the device (Vulkan specification, "Threading Behavior"). The
// queues are only compared with each other.
unsafe impl Send for VulkanContext {}
// SAFETY: as above; the context is immutable.
unsafe impl Sync for VulkanContext {}

impl VulkanContext {
    /// Makes a context for `synchronize_vulkan` and `is_ready_vulkan`, with the loader's functions.
    ///
    /// # Safety
    ///
    /// `device` is a `VkDevice`. It is valid while this value or a copy is used, and while a
    /// command buffer with the wait is pending. It may be used on any thread.
    #[must_use]
    pub const unsafe fn new(device: *mut c_void) -> Self {
        Self(FletchingVulkanWaitContext {
            device,
            producer_queue: ptr::null_mut(),
            queue: ptr::null_mut(),
            set_stages: 0,
            get_device_proc_addr: None,
        })
    }

    /// Adds the queues for `wait_on_vulkan`: the `VkQueue` on which the producer sets the event,
    /// the `VkQueue` to which the caller submits, and the `VkPipelineStageFlags` with which the
    /// producer sets the event, 0 for all commands.
    #[must_use]
    pub const fn with_queues(mut self, producer: *mut c_void, own: *mut c_void, set: u32) -> Self {
        (self.0.producer_queue, self.0.queue, self.0.set_stages) = (producer, own, set);
        self
    }

    /// Uses the device's `vkGetDeviceProcAddr` instead of the loader's functions.
    ///
    /// # Safety
    ///
    /// `get` is `vkGetDeviceProcAddr`, cast to this type.
    #[must_use]
    pub const unsafe fn with_device_functions(mut self, get: unsafe extern "C" fn()) -> Self {
        self.0.get_device_proc_addr = Some(get);
        self
    }
}

/// Operations on Vulkan events, see the [module](crate::runtime). EINVAL for an event of another
/// runtime.
impl DeviceArray {
    /// Blocks the calling thread until the event has completed. Vulkan has no host wait for a
    /// `VkEvent`, so this polls with sleeps of up to one millisecond. The event must not be a
    /// device-only event.
    ///
    /// # Safety
    ///
    /// The array's event, if it has one, was created on the `VkDevice` of the context.
    pub unsafe fn synchronize_vulkan(&self, context: &VulkanContext) -> Result<(), Error> {
        // SAFETY: the caller guarantees that the event belongs to the context's device. The array
        // is alive, and by the contract of `VulkanContext::new`, the device is too.
        unsafe {
            call!(
                "synchronize_vulkan",
                DeviceArraySynchronizeVulkan(self.as_raw(), &context.0)
            )
        }
    }

    /// Records a wait for the event into a command buffer, without blocking. Later commands see the
    /// producer's writes. ENOTSUP unless the caller submits to the producer's queue, because a
    /// `VkEvent` orders commands of one queue only.
    ///
    /// # Safety
    ///
    /// The array's event, if it has one, was created on the `VkDevice` of the context.
    /// `command_buffer` is a `VkCommandBuffer` in the recording state and outside of a render pass,
    /// and is used by this thread only. The array stays alive until the command buffer is done.
    pub unsafe fn wait_on_vulkan(
        &self,
        context: &VulkanContext,
        command_buffer: *mut c_void,
    ) -> Result<(), Error> {
        // SAFETY: as in synchronize_vulkan.
        unsafe {
            call!(
                "wait_on_vulkan",
                DeviceArrayWaitOnVulkan(self.as_raw(), &context.0, command_buffer)
            )
        }
    }

    /// Whether the event has completed. Does not block. The event must not be a device-only event.
    ///
    /// # Safety
    ///
    /// The array's event, if it has one, was created on the `VkDevice` of the context.
    pub unsafe fn is_ready_vulkan(&self, context: &VulkanContext) -> Result<bool, Error> {
        let mut ready = 0;
        // SAFETY: as in synchronize_vulkan.
        unsafe {
            call!(
                "is_ready_vulkan",
                DeviceArrayReadyVulkan(self.as_raw(), &context.0, &raw mut ready)
            )?;
        }
        Ok(ready != 0)
    }
}

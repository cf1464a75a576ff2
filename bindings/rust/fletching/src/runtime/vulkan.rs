// SPDX-License-Identifier: Apache-2.0

//! The operations for Vulkan, through the C ABI of libfletching (`fletching/c_api.h`).

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use fletching_abi::{ArrowDeviceArray, ArrowDeviceType};

use super::vendor::{Library, Symbol};
use crate::error::printable;
use crate::{DeviceArray, Error};

/// What a wait on a `VkEvent` needs: the interface does not hand over what the event belongs to, so
/// the producer has to pass it separately. The `FletchingVulkanWaitContext` of the C ABI.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct VulkanContext {
    /// The `VkDevice` with which the producer created the event.
    pub device: *mut c_void,
    /// The `VkQueue` on which the producer sets the event. Only `wait_on_vulkan` needs it.
    pub producer_queue: *mut c_void,
    /// The `VkQueue` to which the caller submits. Only `wait_on_vulkan` needs it.
    pub queue: *mut c_void,
    /// The `VkPipelineStageFlags` with which the producer sets the event; 0 for all commands.
    pub set_stages: u32,
    /// The `vkGetDeviceProcAddr` of the device, cast to this type; `None` for the loader's functions.
    pub get_device_proc_addr: Option<unsafe extern "C" fn()>,
}

impl VulkanContext {
    /// With what `synchronize_vulkan` and `is_ready_vulkan` need at least.
    #[must_use]
    pub const fn new(device: *mut c_void) -> Self {
        Self {
            device,
            producer_queue: ptr::null_mut(),
            queue: ptr::null_mut(),
            set_stages: 0,
            get_device_proc_addr: None,
        }
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
    ///
    /// # Safety
    ///
    /// The context is what its fields say, and lives as long as the call.
    pub unsafe fn synchronize_vulkan(&self, context: &VulkanContext) -> Result<(), Error> {
        self.in_vulkan(|functions, array, message| {
            // SAFETY: the array is alive, and the caller vouches for the context.
            unsafe { (functions.synchronize.function)(array, context, message) }
        })
    }

    /// Records a wait for the event into a command buffer: commands behind it see what was written
    /// before the event. It has to be submitted to the producer's queue, since a `VkEvent` orders
    /// the commands of one queue only; ENOTSUP for another one. It does not block.
    ///
    /// # Safety
    ///
    /// As for [`synchronize_vulkan`](Self::synchronize_vulkan). `command_buffer` is a `VkCommandBuffer` in the recording state and outside of a render pass,
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
    ///
    /// # Safety
    ///
    /// As for [`synchronize_vulkan`](Self::synchronize_vulkan).
    pub unsafe fn is_ready_vulkan(&self, context: &VulkanContext) -> Result<bool, Error> {
        let mut ready = 1;
        self.in_vulkan(|functions, array, message| {
            // SAFETY: as in synchronize_vulkan.
            unsafe { (functions.ready.function)(array, context, &raw mut ready, message) }
        })?;
        Ok(ready != 0)
    }
}

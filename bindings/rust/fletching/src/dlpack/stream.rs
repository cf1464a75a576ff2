// SPDX-License-Identifier: Apache-2.0

//! The stream argument of `__dlpack__`: what the integer means on which device.

use fletching_abi::ArrowDeviceType;

use super::types::is_host_readable;
use crate::error::Error;
use crate::owner::DeviceArray;
#[cfg(feature = "runtime")]
use crate::runtime::{Runtime, Stream};

/// What has to be ordered after the producer's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ordering {
    /// Nothing: it synchronizes itself, or there is nothing to wait for.
    Nothing,
    /// The host: the work has to be done on return.
    Host,
    /// The stream with this handle, of CUDA or HIP. CUDA's 1 and 2, the legacy and the per-thread
    /// default stream, are handles of the driver too; HIP's default stream is 0.
    Stream(usize),
}

/// The stream argument of `__dlpack__`, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerStream(Ordering, ArrowDeviceType);

impl ConsumerStream {
    /// The stream argument for data on `device_type`.
    ///
    /// CUDA: None or 1 is the legacy default stream, 2 the per-thread one, -1 none, 0 is refused.
    /// ROCm: None or 0 is the default stream, -1 none, 1 and 2 are refused. Every other number from
    /// there on is a handle. With None and memory that the host reads too, pinned or managed, it is
    /// the host that is ordered, which includes the default stream. Elsewhere only None is accepted,
    /// which orders the host.
    ///
    /// Errors: EINVAL, also of an export or an import with data of another runtime. Text: array API,
    /// `__dlpack__`.
    ///
    /// # Safety
    ///
    /// A number that is a handle names a stream of such a device, which lives as long as the result
    /// is used. An export and an import use it during the call only.
    pub unsafe fn read(device_type: ArrowDeviceType, stream: Option<i64>) -> Result<Self, Error> {
        use ArrowDeviceType as Device;
        let is_cuda =
            [Device::CUDA, Device::CUDA_HOST, Device::CUDA_MANAGED].contains(&device_type);
        let is_rocm = [Device::ROCM, Device::ROCM_HOST].contains(&device_type);
        let number = match stream {
            // There is no stream that could wait. Without an event nothing waits.
            None if !is_cuda && !is_rocm => return Ok(Self(Ordering::Host, device_type)),
            // A consumer of memory that the host reads may be one that knows no streams at all.
            None if is_host_readable(device_type) => return Ok(Self(Ordering::Host, device_type)),
            None => i64::from(is_cuda),
            Some(number) => number,
        };
        let expected = match number {
            _ if !is_cuda && !is_rocm => "None, because the device has no streams",
            -1 => return Ok(Self(Ordering::Nothing, device_type)),
            0 if is_cuda => "1 for the legacy default stream or 2 for the per-thread one",
            1 | 2 if is_rocm => "0 for the default stream",
            _ => match usize::try_from(number) {
                Ok(handle) => return Ok(Self(Ordering::Stream(handle), device_type)),
                Err(_) => "-1 for no synchronization, or a stream",
            },
        };
        bail!(
            EINVAL,
            "stream: invalid on {device_type}: expected {expected}, got {number}"
        )
    }

    /// What the argument asks for.
    #[must_use]
    pub fn ordering(&self) -> Ordering {
        self.0
    }

    /// Orders what the argument asks for behind the array's event.
    pub(super) fn wait_for(&self, array: &DeviceArray) -> Result<Ordering, Error> {
        if !array.sync_event().is_null() {
            match self.0 {
                Ordering::Nothing => {}
                #[cfg(feature = "runtime")]
                Ordering::Host => array.synchronize()?,
                #[cfg(feature = "runtime")]
                Ordering::Stream(handle) => array.wait_on(&self.stream(handle))?,
                #[cfg(not(feature = "runtime"))]
                _ => needs_runtime("ArrowDeviceArray.sync_event")?,
            }
        }
        Ok(self.0)
    }

    /// Gives the array an event that happens when all is done that is on the stream now.
    pub(super) fn record(&self, array: &mut DeviceArray) -> Result<(), Error> {
        match self.0 {
            #[cfg(feature = "runtime")]
            Ordering::Stream(handle) => array.export_with_event(&self.stream(handle)),
            #[cfg(not(feature = "runtime"))]
            Ordering::Stream(_) => {
                let _ = array;
                needs_runtime("stream")
            }
            Ordering::Nothing | Ordering::Host => Ok(()),
        }
    }

    /// Blocks until the stream has written the data that the host reads now.
    pub(super) fn finish(&self, device: (ArrowDeviceType, i64)) -> Result<(), Error> {
        match self.0 {
            #[cfg(feature = "runtime")]
            Ordering::Stream(handle) => {
                if Runtime::of(self.1) != Runtime::of(device.0) {
                    bail!(
                        EINVAL,
                        "from_dlpack: stream of another runtime: expected one of {}, got one of {}",
                        device.0,
                        self.1
                    );
                }
                let stream = self.stream(handle).on_device(device.1);
                stream.synchronize("from_dlpack")
            }
            #[cfg(not(feature = "runtime"))]
            Ordering::Stream(_) => {
                let _ = device;
                needs_runtime("stream")
            }
            Ordering::Nothing | Ordering::Host => Ok(()),
        }
    }

    #[cfg(feature = "runtime")]
    fn stream(&self, handle: usize) -> Stream {
        // SAFETY: see ConsumerStream::read.
        unsafe { Stream::from_raw(self.1, handle as *mut std::ffi::c_void) }
    }
}

/// Without the feature `runtime` there is no way to wait, and to skip a wait is never right.
#[cfg(not(feature = "runtime"))]
fn needs_runtime(what: &str) -> Result<(), Error> {
    bail!(
        ENOTSUP,
        "{what}: no way to wait: expected the feature runtime of the crate fletching; hint: \
         enable it, or order the work yourself"
    )
}

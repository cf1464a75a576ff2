// SPDX-License-Identifier: Apache-2.0

//! The stream argument of `__dlpack__`, whose meaning depends on the device.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use fletching_abi::ArrowDeviceType;

use crate::c_core::{self as core, call, FletchingStream, FletchingTensorStream};
use crate::error::Error;

/// The work that must be ordered after the producer's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ordering {
    /// None: the consumer synchronizes itself, or no work is pending.
    Nothing,
    /// The host: the work must be done on return.
    Host,
    /// The CUDA or HIP stream with this handle. CUDA's 1 and 2, the legacy and the per-thread
    /// default stream, are driver handles too; HIP's default stream is 0.
    Stream(usize),
}

/// The parsed stream argument of `__dlpack__`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerStream {
    ordering: Ordering,
    /// As in the core's `FletchingStream`.
    device_id: i64,
    runtime: i32,
}

impl ConsumerStream {
    /// Parses the stream argument for data on `device_type`.
    ///
    /// CUDA: None and 1 are the legacy default stream, 2 is the per-thread default stream, -1 is no
    /// stream, 0 is rejected. ROCm: None and 0 are the default stream, -1 is no stream, 1 and 2 are
    /// rejected. Every larger number is a handle. None for pinned or managed memory, which the host
    /// also reads, orders the host, and with it the default stream. Other devices accept only None,
    /// which orders the host.
    ///
    /// Errors: EINVAL, also from an export or import of data of another runtime. See `__dlpack__`
    /// in the Python array API.
    ///
    /// # Safety
    ///
    /// If `stream` is a handle, it refers to a stream of the device type that is valid while the
    /// result is used. An export and an import use it only during the call.
    pub unsafe fn read(device_type: ArrowDeviceType, stream: Option<i64>) -> Result<Self, Error> {
        let number = stream.as_ref().map_or(ptr::null(), ptr::from_ref);
        let mut read = MaybeUninit::<FletchingTensorStream>::uninit();
        // SAFETY: the core fills the struct unless it fails.
        let read = unsafe {
            call!(
                "ConsumerStream::read",
                TensorStreamRead(device_type, number, read.as_mut_ptr())
            )?;
            read.assume_init()
        };
        Ok(Self::from_core(&read))
    }

    pub(super) fn from_core(read: &FletchingTensorStream) -> Self {
        let ordering = match read.ordering {
            core::FLETCHING_ORDER_NOTHING => Ordering::Nothing,
            core::FLETCHING_ORDER_STREAM => Ordering::Stream(read.stream.handle as usize),
            _ => Ordering::Host,
        };
        Self {
            ordering,
            device_id: read.stream.device_id,
            runtime: read.stream.runtime,
        }
    }

    pub(super) fn to_core(self) -> FletchingTensorStream {
        let (ordering, handle) = match self.ordering {
            Ordering::Nothing => (core::FLETCHING_ORDER_NOTHING, 0),
            Ordering::Host => (core::FLETCHING_ORDER_HOST, 0),
            Ordering::Stream(handle) => (core::FLETCHING_ORDER_STREAM, handle),
        };
        let stream = FletchingStream {
            handle: handle as *mut c_void,
            device_id: self.device_id,
            context: ptr::null_mut(),
            runtime: self.runtime,
        };
        FletchingTensorStream { stream, ordering }
    }

    /// The work that the argument orders after the producer's.
    #[must_use]
    pub fn ordering(&self) -> Ordering {
        self.ordering
    }
}

// SPDX-License-Identifier: Apache-2.0

//! The stream argument of `__dlpack__`: what the integer means on which device.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;

use fletching_abi::ArrowDeviceType;

use crate::c_core::{self as core, call, FletchingStream, FletchingTensorStream};
use crate::error::Error;

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
pub struct ConsumerStream {
    ordering: Ordering,
    /// As the core has them.
    device_id: i64,
    runtime: i32,
}

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
        let number = stream.as_ref().map_or(ptr::null(), ptr::from_ref);
        let mut read = MaybeUninit::<FletchingTensorStream>::uninit();
        // SAFETY: the core fills the struct unless it fails.
        let read = unsafe {
            call!(
                "stream",
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

    /// Who has to wait, according to the argument.
    #[must_use]
    pub fn ordering(&self) -> Ordering {
        self.ordering
    }
}

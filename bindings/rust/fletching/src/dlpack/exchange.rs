// SPDX-License-Identifier: Apache-2.0

//! DLPack's function table, `DLPackExchangeAPI`: use the table of a Python framework, or make one.
//! Its functions for Python objects are left to your Python binding, see [`ExchangeApi::as_raw`].
//!
//! ```
//! use fletching::abi::DLPackExchangeAPI;
//! use fletching::dlpack::exchange;
//!
//! static TABLE: DLPackExchangeAPI = exchange::with_allocator(DLPackExchangeAPI {
//!     // managed_tensor_from_py_object_no_sync: Some(...), and the other functions of Python.
//!     ..DLPackExchangeAPI::zeroed()
//! });
//! assert_eq!(TABLE.header.version.major, 1);
//! ```

use std::ptr;

use fletching_abi::{
    DLDataType, DLDevice, DLManagedTensorVersioned, DLPackExchangeAPI, DLPackExchangeAPIHeader,
    DLPackVersion, DLTensor, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION,
};

use super::stream::ConsumerStream;
use super::tensor::{DlpackTensor, Tensor};
use crate::c_core::{self as core, call};
use crate::error::Error;

/// The table of a framework. It is valid until the process exits.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeApi(&'static DLPackExchangeAPI);

impl ExchangeApi {
    /// Finds the table of major version 1 among `first` and its predecessors, or returns `None`.
    ///
    /// # Safety
    ///
    /// `first` is NULL, or the pointer in a framework's capsule "dlpack_exchange_api": the tables
    /// and their functions conform to dlpack.h and are valid until the process exits.
    #[must_use]
    pub unsafe fn find(first: *const DLPackExchangeAPIHeader) -> Option<Self> {
        // SAFETY: the caller guarantees that the tables are valid.
        unsafe { core::ExchangeFind(first).as_ref() }.map(Self)
    }

    /// The table.
    #[must_use]
    pub fn as_raw(&self) -> &'static DLPackExchangeAPI {
        self.0
    }

    /// Allocates a tensor of the framework on this device. Its elements are uninitialized.
    ///
    /// Errors: EINVAL for a negative size or more than 64 dimensions, ENOSYS if the table lacks the
    /// function, ENOMEM, and EIO with the framework's message.
    pub fn allocate(
        &self,
        dtype: DLDataType,
        shape: &[i64],
        device: DLDevice,
    ) -> Result<DlpackTensor, Error> {
        let prototype = DLTensor {
            device,
            ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
            dtype,
            shape: shape.as_ptr().cast_mut(),
            ..DLTensor::zeroed()
        };
        let mut tensor: *mut DLManagedTensorVersioned = ptr::null_mut();
        // SAFETY: guaranteed by the contract of `find`; the shape has `ndim` numbers, which the
        // framework only reads.
        unsafe {
            call!(
                "ExchangeApi::allocate",
                ExchangeAllocate(self.0, &prototype, &mut tensor)
            )?;
            Tensor::from_raw(tensor)
        }
    }

    /// Returns the framework's current stream. Work on its tensors is ordered after this stream.
    /// Orders nothing on a device without streams.
    ///
    /// Errors: ENOTSUP for devices other than CUDA and ROCm devices, ENOSYS if the table lacks the
    /// function, and EIO with its result; a Python exception is then set. For host-readable memory,
    /// CUDA is queried for the current context: ENOENT if its library is not found.
    ///
    /// # Safety
    ///
    /// The thread holds the GIL. The stream is valid while the result is used. An export and an
    /// import use it only during the call.
    pub unsafe fn work_stream(&self, device: DLDevice) -> Result<ConsumerStream, Error> {
        let mut stream = std::mem::MaybeUninit::uninit();
        // SAFETY: guaranteed by the contract of `find`; the core fills the struct unless it fails.
        unsafe {
            call!(
                "ExchangeApi::work_stream",
                ExchangeWorkStream(self.0, device, stream.as_mut_ptr())
            )?;
            Ok(ConsumerStream::from_core(&stream.assume_init()))
        }
    }
}

/// Makes a table of DLPack version 1.3 with these functions. Adds an allocator if there is none: it
/// allocates uninitialized CPU memory, aligned to 256 bytes. The table belongs in a `static`,
/// because frameworks use it until the process exits.
#[must_use]
pub const fn with_allocator(functions: DLPackExchangeAPI) -> DLPackExchangeAPI {
    let managed_tensor_allocator = match functions.managed_tensor_allocator {
        None => Some(core::TensorAllocate as _),
        allocator => allocator,
    };
    let header = DLPackExchangeAPIHeader {
        version: DLPackVersion {
            major: DLPACK_MAJOR_VERSION,
            minor: DLPACK_MINOR_VERSION,
        },
        prev_api: functions.header.prev_api,
    };
    DLPackExchangeAPI {
        header,
        managed_tensor_allocator,
        ..functions
    }
}

// SPDX-License-Identifier: Apache-2.0

//! DLPack's table of functions, `DLPackExchangeAPI`: the use of a Python framework's, and one for
//! your own. Its Python objects are the business of your Python binding: the functions for them are
//! in [`ExchangeApi::as_raw`].
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

/// The table of a framework, which lives as long as the process.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeApi(&'static DLPackExchangeAPI);

impl ExchangeApi {
    /// The table of major version 1, among `first` and its predecessors; `None` if no table has it.
    ///
    /// # Safety
    ///
    /// `first` is NULL, or the pointer of a framework's capsule "dlpack_exchange_api": the tables
    /// and their functions are as dlpack.h asks for them, and live as long as the process.
    #[must_use]
    pub unsafe fn find(first: *const DLPackExchangeAPIHeader) -> Option<Self> {
        // SAFETY: the caller vouches for the tables.
        unsafe { core::ExchangeFind(first).as_ref() }.map(Self)
    }

    /// The table.
    #[must_use]
    pub fn as_raw(&self) -> &'static DLPackExchangeAPI {
        self.0
    }

    /// A new tensor of the framework, on this device. Its elements are not initialized.
    ///
    /// Errors: EINVAL for a negative size or more than 64 of them, ENOSYS when the table lacks the
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
        // SAFETY: see find; the shape has so many numbers, which the framework only reads.
        unsafe {
            call!(
                "allocate",
                ExchangeAllocate(self.0, &prototype, &mut tensor)
            )?;
            Tensor::from_raw(tensor)
        }
    }

    /// The stream on which the framework works now, behind which the work on its tensors is ordered.
    /// It orders nothing on a device without streams.
    ///
    /// Errors: ENOTSUP on devices other than those of CUDA and ROCm, ENOSYS when the table lacks the
    /// function, and EIO with its result; then a Python exception is set. For memory that the host
    /// reads, CUDA is asked for the current context: ENOENT if its library is not found.
    ///
    /// # Safety
    ///
    /// The thread holds the GIL. The stream lives as long as the result is used. An export and an
    /// import use it during the call only.
    pub unsafe fn work_stream(&self, device: DLDevice) -> Result<ConsumerStream, Error> {
        let mut stream = std::mem::MaybeUninit::uninit();
        // SAFETY: see find; the core fills the struct unless it fails.
        unsafe {
            call!(
                "work_stream",
                ExchangeWorkStream(self.0, device, stream.as_mut_ptr())
            )?;
            Ok(ConsumerStream::from_core(&stream.assume_init()))
        }
    }
}

/// A table of DLPack's version 1.3 with these functions, and with an allocator unless there is one:
/// new memory of the CPU, aligned to 256 bytes and not initialized. The table belongs in a `static`:
/// frameworks use it as long as the process lives.
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

// SPDX-License-Identifier: Apache-2.0

//! Device arrays as [DLPack](https://github.com/dmlc/dlpack) tensors and back, without a copy unless
//! you ask for one. Needs the feature `dlpack`.
//!
//! ```
//! use fletching::dlpack::{from_dlpack, to_dlpack};
//! use fletching::{Array, DeviceArray, SchemaBuilder};
//!
//! let schema = SchemaBuilder::new("i").build()?;
//! let mut column = DeviceArray::from(Array::from(vec![1i32, 2, 3]));
//! let tensor = to_dlpack(&schema, &mut column, &Default::default())?;
//! assert_eq!(tensor.tensor()?.ndim, 1);
//! let imported = from_dlpack(tensor, &Default::default())?;
//! assert_eq!(imported.array.length(), 3);
//! # Ok::<(), fletching::Error>(())
//! ```
//!
//! [`DlpackTensor::from_vec`] and [`DlpackTensor::from_parts`] make a tensor without an Arrow
//! schema. The conversions are the core's, in C, which the crate compiles.
//!
//! # Types
//!
//! Integers and floats of 8 to 64 bits are DLPack's own. A byte with the extension `arrow.bool8` is
//! a boolean; a fixed-size list is one more dimension, one with the extension
//! `arrow.fixed_shape_tensor` has the dimensions that it says. A DLPack type that Arrow lacks,
//! bfloat16, complex, and floats of 4, 6 and 8 bits, is the extension `arrow.opaque` with the vendor
//! "DLPack", both ways. Everything else is refused: bits have no addresses, and no DLPack type has
//! several parts or several buffers.
//!
//! With `as_storage` dates, times, decimals of up to 64 bits, fixed-size binary, dictionary indices
//! and other extension types are exported as what stores them: unit, scale, time zone or meaning
//! get lost. An import with it makes complex numbers one more dimension of two floats, bfloat16
//! uint16, 8-bit floats uint8. Several lanes are one more dimension. Handles and unknown codes are
//! refused.
//!
//! # Devices
//!
//! The numbers of the device types are the same. The id of the CPU is -1 in Arrow and 0 in DLPack.

/// Returns the error with this errno value and this message.
macro_rules! bail {
    ($code:ident, $($message:tt)*) => {
        return Err(crate::error::Error::new(crate::errno::$code, format!($($message)*)))
    };
}

/// The same, unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $code:ident, $($message:tt)*) => {
        if !$condition {
            bail!($code, $($message)*);
        }
    };
}

mod create;
mod devices;
mod element;
pub mod exchange;
mod export;
mod import;
#[cfg(feature = "ndarray")]
mod ndarray;
mod options;
mod promises;
mod stream;
mod tensor;

pub use create::TensorParts;
pub use devices::dlpack_device;
pub use element::DlpackElement;
pub use export::{is_legacy_expected, to_dlpack, to_legacy_dlpack};
pub use import::{from_dlpack, Imported};
pub use options::{Access, Dimensions, ExportOptions, ImportOptions, Nulls, Strided};
pub use promises::{EventHandled, Exclusive, HostReadable};
pub use stream::{ConsumerStream, Ordering};
pub use tensor::{DlpackTensor, LegacyDlpackTensor, ManagedTensor, Tensor};

/// The most dimensions that a tensor may have here, a bound of ours; NumPy and PyTorch have the
/// same.
pub const MAX_DIMENSIONS: usize = crate::c_core::FLETCHING_TENSOR_DIMENSIONS;

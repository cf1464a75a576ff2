// SPDX-License-Identifier: Apache-2.0

//! Conversions between device arrays and [DLPack](https://github.com/dmlc/dlpack) tensors, without
//! a copy unless you request one. Needs the feature `dlpack`.
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
//! schema. The conversions are implemented in the C core, which the crate compiles.
//!
//! # Types
//!
//! Integers and floats of 8 to 64 bits are DLPack types. A byte with the extension `arrow.bool8` is
//! a boolean. A fixed-size list is one more dimension; one with the extension
//! `arrow.fixed_shape_tensor` has the dimensions of the extension. DLPack types that Arrow lacks
//! (bfloat16, complex, and floats of 4, 6 and 8 bits) map to and from the extension `arrow.opaque`
//! with the vendor "DLPack". All other types are rejected: bits have no addresses, and no DLPack
//! type has several parts or several buffers.
//!
//! With `as_storage`, dates, times, decimals of up to 64 bits, fixed-size binary, dictionary
//! indices and other extension types are exported as their storage type, without their unit, scale,
//! time zone or meaning. An import with `as_storage` makes complex numbers one more dimension of
//! two floats, bfloat16 uint16, and 8-bit floats uint8. Several lanes are one more dimension.
//! Handles and unknown codes are rejected.
//!
//! # Devices
//!
//! The numbers of the device types are the same. The id of the CPU is -1 in Arrow and 0 in DLPack.

macro_rules! bail {
    ($code:ident, $($message:tt)*) => {
        return Err(crate::error::Error::new(crate::errno::$code, format!($($message)*)))
    };
}

/// Calls `bail!` unless the condition holds.
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

/// The maximum number of dimensions. It is this crate's limit; NumPy and PyTorch have the same.
pub const MAX_DIMENSIONS: usize = crate::c_core::FLETCHING_TENSOR_DIMENSIONS;

// SPDX-License-Identifier: Apache-2.0

//! The element types that DLPack and Rust share.

use fletching_abi::{DLDataType, DLDataTypeCode as Code};

/// A number with the same layout in DLPack and in Rust, valid for every bit pattern. Sealed.
///
/// The feature `half` adds `half::f16` and `half::bf16`.
pub trait DlpackElement: sealed::Element + Copy + Send + Sync + 'static {
    /// The DLPack type.
    const DTYPE: DLDataType;
}

mod sealed {
    pub trait Element {}
}

macro_rules! elements {
    ($($type:ty: $code:ident;)*) => {$(
        impl sealed::Element for $type {}
        impl DlpackElement for $type {
            const DTYPE: DLDataType = DLDataType {
                code: Code::$code,
                bits: 8 * size_of::<$type>() as u8,
                lanes: 1,
            };
        }
    )*};
}

elements! {
    i8: INT; u8: UINT; i16: INT; u16: UINT; i32: INT; u32: UINT; i64: INT; u64: UINT;
    f32: FLOAT; f64: FLOAT;
}

#[cfg(feature = "half")]
elements! { half::f16: FLOAT; half::bf16: BFLOAT; }

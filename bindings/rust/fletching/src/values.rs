// SPDX-License-Identifier: Apache-2.0

//! Arrays from a list of numbers.

use std::ffi::CStr;

use crate::array_builder::{ArrayBuilder, ArrayCapacity, ArrayValues, Node};
use crate::owner::Array;

/// A number with the same layout in Arrow and in Rust. Sealed.
///
/// An `i128` is a decimal of 128 bits with the format "d:38,0". Another scale needs another format.
pub trait Primitive: sealed::Sealed + Send + 'static {
    /// The Arrow format string.
    const FORMAT: &'static CStr;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! primitive {
    ($($type:ty: $format:literal;)*) => {$(
        impl sealed::Sealed for $type {}
        impl Primitive for $type {
            const FORMAT: &'static CStr = $format;
        }
    )*};
}

primitive! {
    i8: c"c"; u8: c"C"; i16: c"s"; u16: c"S"; i32: c"i"; u32: c"I"; i64: c"l"; u64: c"L";
    f32: c"f"; f64: c"g"; i128: c"d:38,0";
}

impl Array {
    /// Makes an array without nulls from the values, without a copy. The owner can be any slice:
    /// `Vec<T>`, `Box<[T]>`, `Arc<[T]>`, `bytes::Bytes` as `u8`, a memory map. It is dropped when
    /// the array is released. Makes one allocation.
    ///
    /// ```
    /// let array = fletching::Array::from_values::<f64>(vec![0.5, 1.5]);
    /// assert_eq!((array.length(), array.buffers().len()), (2, 2));
    /// ```
    pub fn from_values<T: Primitive>(owner: impl AsRef<[T]> + Send + 'static) -> Self {
        let capacity = ArrayCapacity {
            arrays: 0,
            buffers: 2,
        };
        let mut builder = ArrayBuilder::new(capacity, owner).expect("two buffers have room");
        // Borrowed at the owner's final address.
        let values = builder.object().as_ref();
        let (length, first) = (values.len() as i64, values.as_ptr());
        builder.set(
            Node::ROOT,
            ArrayValues::of(length),
            &[std::ptr::null(), first.cast()],
        );
        builder.finish().expect("the root was set")
    }
}

impl<T: Primitive> From<Vec<T>> for Array {
    fn from(values: Vec<T>) -> Self {
        Self::from_values(values)
    }
}

impl<T: Primitive> From<Box<[T]>> for Array {
    fn from(values: Box<[T]>) -> Self {
        Self::from_values(values)
    }
}

/// Makes an array of `u8` values.
#[cfg(feature = "bytes")]
impl From<bytes::Bytes> for Array {
    fn from(values: bytes::Bytes) -> Self {
        Self::from_values(values)
    }
}

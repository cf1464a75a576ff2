// SPDX-License-Identifier: Apache-2.0

//! Arrays from Rust values and from other arrays.

use std::ffi::c_void;
use std::ptr;

use crate::array_builder::{ArrayBuilder, ArrayCapacity, ArrayValues, Node};
use crate::error::Error;
use crate::owner::Array;
use crate::values::Primitive;

#[derive(Default)]
struct Bitmap {
    bytes: Vec<u8>,
    length: usize,
    unset: usize,
}

impl Bitmap {
    fn push(&mut self, bit: bool) {
        if self.length % 8 == 0 {
            self.bytes.push(0);
        }
        if bit {
            *self.bytes.last_mut().expect("a byte was added") |= 1 << (self.length % 8);
        }
        self.length += 1;
        self.unset += usize::from(!bit);
    }
}

/// Separates the values from their validity. The value of a null is the default.
fn split<T: Default>(
    values: impl IntoIterator<Item = Option<T>>,
    mut push: impl FnMut(T),
) -> Bitmap {
    let mut validity = Bitmap::default();
    for value in values {
        validity.push(value.is_some());
        push(value.unwrap_or_default());
    }
    validity
}

/// Makes a builder over the buffers. The root is set and can have `arrays` children.
fn build<T: Send + 'static>(
    validity: Bitmap,
    values: T,
    addresses: impl FnOnce(&T) -> Vec<*const c_void>,
    arrays: usize,
) -> ArrayBuilder<(Bitmap, T)> {
    let capacity = ArrayCapacity { arrays, buffers: 3 };
    let builder = ArrayBuilder::new(capacity, (validity, values));
    let mut builder = builder.expect("three buffers have room");
    let (validity, values) = builder.object();
    let shape = ArrayValues {
        null_count: validity.unset as i64,
        ..ArrayValues::of(validity.length as i64)
    };
    let bitmap = match validity.unset {
        0 => ptr::null(),
        _ => validity.bytes.as_ptr().cast(),
    };
    let mut buffers = vec![bitmap];
    buffers.extend(addresses(values));
    builder.set(Node::ROOT, shape, &buffers);
    builder
}

fn finished<T: Send + 'static>(builder: ArrayBuilder<T>) -> Array {
    builder.finish().expect("the root was set")
}

/// Returns the offsets for values of these lengths: one more than there are values.
fn offsets(
    operation: &str,
    lengths: impl IntoIterator<Item = Option<usize>>,
) -> Result<(Bitmap, Vec<i32>), Error> {
    let (mut validity, mut offsets, mut end) = (Bitmap::default(), vec![0i32], 0i32);
    for length in lengths {
        validity.push(length.is_some());
        let length = i32::try_from(length.unwrap_or(0)).ok();
        end = length
            .and_then(|length| end.checked_add(length))
            .ok_or_else(|| {
                Error::invalid(format!(
                "{operation}: too large for offsets of 32 bits: expected at most 2147483647 in all"
            ))
            })?;
        offsets.push(end);
    }
    Ok((validity, offsets))
}

/// Arrays of Rust values. An array has a validity bitmap only if it has nulls.
impl Array {
    /// Makes an array of nullable numbers. `i128` values are decimals.
    ///
    /// ```
    /// let array = fletching::Array::from_options([Some(1i32), None]);
    /// assert_eq!((array.length(), array.null_count()), (2, 1));
    /// ```
    pub fn from_options<T: Primitive + Default>(
        values: impl IntoIterator<Item = Option<T>>,
    ) -> Self {
        let mut all = Vec::new();
        let validity = split(values, |value| all.push(value));
        finished(build(validity, all, |all| vec![all.as_ptr().cast()], 0))
    }

    /// Makes an array of nullable booleans, format "b".
    pub fn from_bools(values: impl IntoIterator<Item = Option<bool>>) -> Self {
        let mut bits = Bitmap::default();
        let validity = split(values, |value| bits.push(value));
        let address = |bits: &Bitmap| vec![bits.bytes.as_ptr().cast()];
        finished(build(validity, bits, address, 0))
    }

    /// Makes an array of nullable strings, format "u". They are copied into one buffer.
    ///
    /// Errors: EINVAL for more than 2^31-1 bytes.
    ///
    /// ```
    /// let array = fletching::Array::from_strings(["a", "b"].map(Some))?;
    /// assert_eq!(array.length(), 2);
    /// # Ok::<(), fletching::Error>(())
    /// ```
    pub fn from_strings<S: AsRef<str>>(
        values: impl IntoIterator<Item = Option<S>>,
    ) -> Result<Self, Error> {
        let mut bytes = Vec::new();
        let lengths = values.into_iter().map(|value| {
            value.map(|value| {
                bytes.extend_from_slice(value.as_ref().as_bytes());
                value.as_ref().len()
            })
        });
        let (validity, offsets) = offsets("from_strings", lengths)?;
        let addresses = |(offsets, bytes): &(Vec<i32>, Vec<u8>)| {
            vec![offsets.as_ptr().cast(), bytes.as_ptr().cast()]
        };
        Ok(finished(build(validity, (offsets, bytes), addresses, 0)))
    }

    /// Makes a list array, format "+l", from the values of another array, which is moved in. Each
    /// item is the length of a list, or `None` for a null list, which uses no values.
    ///
    /// Errors: EINVAL if `values` is released or its length differs from the sum of the list
    /// lengths, and for more than 2^31-1 values.
    ///
    /// ```
    /// use fletching::Array;
    ///
    /// let lists = Array::from_lists([Some(2), None, Some(1)], vec![1i32, 2, 3].into())?;
    /// assert_eq!((lists.length(), lists.children()[0].unwrap().length()), (3, 3));
    /// # Ok::<(), fletching::Error>(())
    /// ```
    pub fn from_lists(
        lengths: impl IntoIterator<Item = Option<usize>>,
        values: Self,
    ) -> Result<Self, Error> {
        let (validity, offsets) = offsets("from_lists", lengths)?;
        let end = i64::from(offsets[offsets.len() - 1]);
        if values.is_released() || values.length() != end {
            return Err(Error::invalid(format!(
                "from_lists: values: expected a live array of length {end}, got length {}",
                values.length()
            )));
        }
        let address = |offsets: &Vec<i32>| vec![offsets.as_ptr().cast()];
        let mut builder = build(validity, offsets, address, 1);
        let child = builder.add_children(Node::ROOT, 1);
        builder.set_array(child, values);
        builder.finish()
    }

    /// Makes a struct array of columns, format "+s", such as a record batch. The columns are moved
    /// in and are the children of the result, which has their length.
    ///
    /// Errors: EINVAL for a column that is released or differs in length from the first column.
    ///
    /// ```
    /// use fletching::{Array, SchemaBuilder};
    ///
    /// let names = Array::from_strings([Some("Ada"), None])?;
    /// let batch = Array::from_columns([names, vec![36i32, 41].into()])?;
    /// let schema = SchemaBuilder::new("+s")
    ///     .child(SchemaBuilder::new("u").name("name"))
    ///     .child(SchemaBuilder::new("i").name("age"))
    ///     .build()?;
    /// assert_eq!((batch.length(), schema.children().len()), (2, 2));
    /// # Ok::<(), fletching::Error>(())
    /// ```
    pub fn from_columns(columns: impl IntoIterator<Item = Self>) -> Result<Self, Error> {
        let columns: Vec<_> = columns.into_iter().collect();
        let length = columns.first().map_or(0, Self::length);
        for (index, column) in columns.iter().enumerate() {
            if column.is_released() || column.length() != length {
                return Err(Error::invalid(format!(
                    "from_columns: column {index}: expected a live array of length {length}, got \
                     length {}",
                    column.length()
                )));
            }
        }
        let capacity = ArrayCapacity {
            arrays: columns.len(),
            buffers: 1,
        };
        let mut builder = ArrayBuilder::new(capacity, ())?;
        builder.set(Node::ROOT, ArrayValues::of(length), &[ptr::null()]);
        let first = builder.add_children(Node::ROOT, columns.len());
        for (index, column) in columns.into_iter().enumerate() {
            builder.set_array(first.sibling(index), column);
        }
        builder.finish()
    }
}

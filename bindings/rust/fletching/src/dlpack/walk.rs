// SPDX-License-Identifier: Apache-2.0

//! The way down from an array to the values of its tensor, through the lists around them.

use std::ffi::c_void;

use fletching_abi::{DLDataType, DLDataTypeCode};

use super::extension::{extension, TensorShape, BOOL8, FIXED_SHAPE_TENSOR};
use super::options::{ExportOptions, Nulls};
use super::types::{read_format, Format};
use super::{next_step, MAX_DIMENSIONS};
use crate::error::{printable, Error};
use crate::owner::{Array, Owner, Schema};
use crate::raw::Nested;

/// What is found on the way down from an array to its values.
pub(super) struct View {
    /// Extent and stride of each dimension.
    pub(super) dimensions: Vec<(i64, i64)>,
    pub(super) dtype: DLDataType,
    pub(super) buffer: *const c_void,
    /// The first element, counted from `buffer` on, and the number of elements.
    pub(super) first: i64,
    pub(super) count: i64,
}

pub(super) struct Walk<'a> {
    pub(super) options: &'a ExportOptions,
    /// The host may read the validity bitmaps now.
    pub(super) host_readable: bool,
    /// The dimensions that one level of lists adds: extents, and strides in elements of the level
    /// below.
    pub(super) levels: Vec<Vec<(i64, i64)>>,
}

/// Whether bits `first` to `first + count - 1` are all set.
///
/// # Safety
///
/// The bitmap has so many bits.
unsafe fn all_set(bitmap: *const u8, first: i64, count: i64) -> bool {
    // SAFETY: the caller vouches for the bits.
    (first..first + count).all(|bit| unsafe { *bitmap.add(bit as usize / 8) } >> (bit % 8) & 1 == 1)
}

impl Walk<'_> {
    /// The memory is touched for nothing but validity bitmaps. Nothing of a released struct is
    /// read but that it is.
    pub(super) fn run(mut self, mut schema: &Schema, mut array: &Array) -> Result<View, Error> {
        let options = self.options;
        let (mut first, mut count) = (array.offset(), array.length());
        self.push(vec![(count, 1)])?;
        let (mut dtype, repeat, name) = loop {
            self.check_alive("ArrowSchema", schema)?;
            self.check_alive("ArrowArray", array)?;
            ensure!(
                first >= 0 && count >= 0 && first.checked_add(count).is_some(),
                EINVAL,
                "ArrowArray: offset plus length out of range: expected 0 to {}, got {first} + \
                 {count}; hint: fix the producer",
                i64::MAX
            );
            ensure!(
                schema.dictionary().is_none() || options.as_storage,
                ENOTSUP,
                "ArrowSchema.dictionary: the values are indices: expected a plain type; hint: pass \
                 as_storage to export the storage"
            );
            let (name, parameters) = extension(schema)?;
            let size = match read_format(schema.format(), options.as_storage)? {
                Format::List(size) => size,
                Format::Values(dtype, repeat) => break (dtype, repeat, name),
            };
            self.check_nulls(array, 1, first, count)?;
            let ([Some(inner)], [Some(child)]) = (schema.children(), array.children()) else {
                bail!(
                    EINVAL,
                    "ArrowArray: children of a fixed-size list: expected one, got {}; hint: fix the \
                     producer",
                    array.children().len()
                )
            };
            if name == FIXED_SHAPE_TENSOR.as_bytes() {
                self.push(tensor_level(size, parameters)?)?;
            } else {
                self.check_extension(name)?;
                self.push(vec![(size, 1)])?;
            }
            self.check_alive("ArrowArray", child)?;
            let end = (first + count).checked_mul(size);
            ensure!(
                end.is_some_and(|end| end <= child.length())
                    && child.offset().checked_add(child.length()).is_some(),
                EINVAL,
                "ArrowArray: child of a fixed-size list is too short: expected length * list size \
                 elements; hint: fix the producer"
            );
            (first, count) = (child.offset() + first * size, count * size);
            (schema, array) = (inner, child);
        };
        if name == BOOL8.as_bytes() {
            ensure!(
                schema.format() == c"c",
                EINVAL,
                "ArrowSchema: storage of {BOOL8} differs: expected int8; hint: fix the producer"
            );
            dtype.code = DLDataTypeCode::BOOL;
        } else {
            self.check_extension(name)?;
        }
        self.check_nulls(array, 2, first, count)?;
        if let Some(size) = repeat {
            self.push(vec![(size, 1)])?;
        }
        let size = repeat.unwrap_or(1);
        let end = (first + count).checked_mul(size * i64::from(dtype.bits / 8));
        let buffer = array.buffers()[1];
        ensure!(
            end.is_some() && (!buffer.is_null() || count * size == 0),
            EINVAL,
            "ArrowArray: buffers[1] is NULL or too large: expected values, less than 2^63 bytes; \
             hint: fix the producer"
        );
        Ok(View {
            dimensions: self.dimensions(),
            dtype,
            buffer,
            first: first * size,
            count: count * size,
        })
    }

    /// An error when the struct, or its dictionary, is released. `name` is its type's.
    fn check_alive<R: Nested>(&self, name: &str, node: &Owner<R>) -> Result<(), Error> {
        let path = ".children[0]".repeat(self.levels.len() - 1);
        let part = match node.dictionary() {
            _ if node.is_released() => "",
            Some(dictionary) if dictionary.is_released() => ".dictionary",
            _ => return Ok(()),
        };
        bail!(
            EINVAL,
            "{name}{path}{part}: released: expected a live struct, got release NULL"
        )
    }

    fn check_nulls(&self, array: &Array, least: usize, first: i64, n: i64) -> Result<(), Error> {
        let (buffers, null_count) = (array.buffers(), array.null_count());
        ensure!(
            buffers.len() >= least,
            EINVAL,
            "ArrowArray: n_buffers is too small for the format: expected at least {least}, got {}; \
             hint: fix the producer",
            buffers.len()
        );
        let can_count = match self.options.nulls {
            _ if null_count == 0 => return Ok(()),
            Nulls::Ignore => return Ok(()),
            Nulls::Count(_) => self.host_readable,
            Nulls::Refuse => false,
        };
        if buffers[0].is_null() {
            ensure!(
                null_count < 0,
                EINVAL,
                "ArrowArray: validity bitmap is NULL: expected one, because null_count is \
                 {null_count}; hint: fix the producer"
            );
            return Ok(());
        }
        // SAFETY: the promise of Nulls::Count, for memory that the host can read.
        if n == 0 || can_count && unsafe { all_set(buffers[0].cast(), first, n) } {
            return Ok(());
        }
        let has = if can_count || null_count > 0 {
            "has"
        } else {
            "may have"
        };
        bail!(
            ENOTSUP,
            "ArrowArray: {has} nulls: expected none in a tensor; hint: fill them, or pass \
             Nulls::Ignore"
        )
    }

    fn check_extension(&self, name: &[u8]) -> Result<(), Error> {
        ensure!(
            name.is_empty() || self.options.as_storage,
            ENOTSUP,
            "ArrowSchema: extension type '{}' would be lost: expected a plain type; hint: pass \
             as_storage to export the storage",
            printable(name)
        );
        Ok(())
    }

    /// Adds dimensions. Their number is bounded, and with it how deep the walk goes.
    fn push(&mut self, level: Vec<(i64, i64)>) -> Result<(), Error> {
        self.levels.push(level);
        ensure!(
            self.levels.iter().map(Vec::len).sum::<usize>() <= MAX_DIMENSIONS,
            ENOTSUP,
            "tensor: too many dimensions: expected at most {MAX_DIMENSIONS}; hint: export the values \
             of the inner lists"
        );
        Ok(())
    }

    /// The dimensions of all levels one behind the other, with strides in elements.
    fn dimensions(&self) -> Vec<(i64, i64)> {
        let (mut step, mut dimensions) = (1, Vec::new());
        for level in self.levels.iter().rev() {
            dimensions.extend(
                level
                    .iter()
                    .rev()
                    .map(|(n, stride)| (*n, next_step(*stride, step))),
            );
            step = level.iter().fold(step, |step, (n, _)| next_step(step, *n));
        }
        dimensions.reverse();
        dimensions
    }
}

/// The dimensions of arrow.fixed_shape_tensor.
fn tensor_level(size: i64, parameters: &[u8]) -> Result<Vec<(i64, i64)>, Error> {
    let TensorShape { shape, permutation } = TensorShape::parse(parameters)?;
    let product = match shape.contains(&0) {
        true => Some(0),
        false => shape
            .iter()
            .try_fold(1, |size: i64, n| size.checked_mul(*n)),
    };
    ensure!(
        product == Some(size),
        EINVAL,
        "ArrowSchema: list size of {FIXED_SHAPE_TENSOR} differs from its shape: expected the product \
         of the sizes, got {size}; hint: fix the producer"
    );
    let mut steps = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        steps[axis - 1] = next_step(steps[axis], shape[axis]);
    }
    Ok(permutation
        .iter()
        .map(|axis| (shape[*axis], steps[*axis]))
        .collect())
}

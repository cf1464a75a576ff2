// SPDX-License-Identifier: Apache-2.0

//! How the elements of a foreign tensor lie in memory: read, checked, put in order.

use std::cmp::Reverse;
use std::ffi::c_void;
use std::ptr;

use fletching_abi::DLTensor;

use super::options::Dimensions;
use super::types::{is_address, ArrowType};
use super::{next_step, MAX_DIMENSIONS};
use crate::error::Error;

pub(super) struct Dimension {
    pub(super) extent: i64,
    /// In values, of which an element may have several.
    stride: i64,
}

/// A tensor, checked and in our terms.
pub(super) struct Layout {
    pub(super) dimensions: Vec<Dimension>,
    item: usize,
    values: i64,
    bytes: u64,
}

/// How a tensor can be imported without a copy.
pub(super) struct Arrangement {
    /// The inner dimensions as they lie in memory, from the outside in.
    pub(super) order: Vec<usize>,
    /// Where the first value is: an address, or a handle and how many values to skip.
    pub(super) buffer: *const c_void,
    pub(super) offset: i64,
}

impl Layout {
    /// Checks shape and strides. A stride that is never used becomes 0: it may have any value. The
    /// values within an element become a dimension of their own.
    pub(super) fn read(tensor: &DLTensor, element: &ArrowType) -> Result<Self, Error> {
        ensure!(
            (0..=MAX_DIMENSIONS as i32).contains(&tensor.ndim),
            EINVAL,
            "DLTensor.ndim: out of range: expected 0 to {MAX_DIMENSIONS}, got {}; hint: fix the \
             producer",
            tensor.ndim
        );
        // SAFETY: see Tensor::from_raw.
        let (shape, strides) = unsafe { (tensor.shape_slice(), tensor.strides_slice()) };
        ensure!(
            shape.len() == tensor.ndim as usize,
            EINVAL,
            "DLTensor.shape: NULL: expected ndim sizes; hint: fix the producer"
        );
        let repeat = element.repeat;
        let (mut values, mut dimensions) = (Some(repeat), Vec::with_capacity(shape.len() + 1));
        for (axis, &extent) in shape.iter().enumerate() {
            ensure!(
                extent >= 0,
                EINVAL,
                "DLTensor.shape: negative size: expected 0 or more, got {extent}; hint: fix the \
                 producer"
            );
            values = values.and_then(|values| values.checked_mul(extent));
            let stride = strides.get(axis).filter(|_| extent > 1).unwrap_or(&0);
            let Some(stride) = stride.checked_mul(repeat) else {
                bail!(
                    EINVAL,
                    "DLTensor.strides: out of range: expected an offset below 2^63 bytes; hint: fix \
                     the producer"
                )
            };
            dimensions.push(Dimension { extent, stride });
        }
        let values = if shape.contains(&0) { Some(0) } else { values };
        let bytes = values.and_then(|values| values.checked_mul(element.item_bytes));
        let (Some(values), Some(bytes)) = (values, bytes) else {
            bail!(
                EINVAL,
                "DLTensor.shape: size out of range: expected less than 2^63 bytes; hint: fix the \
                 producer"
            )
        };
        if repeat > 1 {
            let (extent, stride) = (repeat, 1);
            dimensions.push(Dimension { extent, stride });
        }
        if tensor.strides.is_null() {
            let mut step = 1;
            for dimension in dimensions.iter_mut().rev() {
                dimension.stride = step;
                step = next_step(step, dimension.extent);
            }
        }
        let item = element.item_bytes as usize;
        Ok(Self {
            item,
            dimensions,
            values,
            bytes: bytes as u64,
        })
    }

    /// Whether the dimensions are contiguous in this order.
    fn is_compact(&self, order: &[usize]) -> bool {
        let mut step = 1;
        order.iter().rev().all(|axis| {
            let Dimension { extent, stride } = self.dimensions[*axis];
            let fits = extent <= 1 || stride == step;
            step = next_step(step, extent);
            fits
        })
    }

    /// Errors: ENOTSUP when only a copy has the order or the alignment that Arrow needs.
    pub(super) fn arrange(
        &self,
        tensor: &DLTensor,
        wanted: Dimensions,
    ) -> Result<Arrangement, Error> {
        let (buffer, offset) = self.place(tensor)?;
        let mut order: Vec<usize> = (1..self.dimensions.len()).collect();
        let mut is_compact = self.values == 0 || self.is_compact(&order);
        if !is_compact && wanted == Dimensions::FixedShapeTensor {
            // Of a dimension of size 1 the stride says nothing: the outside is as good a place as
            // any.
            order.sort_by_key(|axis| match self.dimensions[*axis] {
                Dimension { extent: 1, .. } => Reverse(i64::MAX),
                Dimension { stride, .. } => Reverse(stride),
            });
            is_compact = self.is_compact(&order);
        }
        if let Some((rows, inner)) = self.dimensions.split_first().filter(|_| self.values > 0) {
            let cell: i64 = inner.iter().map(|inner| inner.extent).product();
            is_compact &= rows.extent == 1 || rows.stride == cell;
        }
        ensure!(
            is_compact,
            ENOTSUP,
            "DLTensor.strides: not contiguous: expected an order that Arrow can express; hint: copy \
             the tensor"
        );
        Ok(Arrangement {
            order,
            buffer,
            offset,
        })
    }

    /// Where the first value is: an address, or a handle and how many values to skip.
    ///
    /// Errors: EINVAL for an address that is none; ENOTSUP when the values are not aligned, which a
    /// copy fixes.
    fn place(&self, tensor: &DLTensor) -> Result<(*const c_void, i64), Error> {
        let (data, byte_offset, item) = (tensor.data, tensor.byte_offset, self.item as u64);
        if self.values == 0 {
            return Ok((ptr::null(), 0));
        }
        ensure!(
            !data.is_null(),
            EINVAL,
            "DLTensor.data: NULL: expected an address, because there are elements; hint: fix the \
             producer"
        );
        let is_address = is_address(tensor.device.device_type.into());
        let (base, end) = match is_address {
            true => (data.addr() as u64, usize::MAX as u64),
            false => (0, i64::MAX as u64),
        };
        ensure!(
            byte_offset <= end - base && self.bytes <= end - base - byte_offset,
            EINVAL,
            "DLTensor.byte_offset: out of range: expected an end within the address space; hint: fix \
             the producer"
        );
        ensure!(
            (base + byte_offset) % item == 0,
            ENOTSUP,
            "DLTensor.data: not aligned: expected a multiple of {item} bytes, the size of an \
             element; hint: copy the tensor"
        );
        Ok(match is_address {
            true => (data.wrapping_byte_add(byte_offset as usize), 0),
            false => (data, (byte_offset / item) as i64),
        })
    }

    /// Whether every value that the strides reach has an address.
    fn fits_address_space(&self, tensor: &DLTensor) -> bool {
        let (mut before, mut after) = (0, self.item as i128);
        for Dimension { extent, stride } in &self.dimensions {
            let reach = i128::from(*stride) * i128::from(extent - 1) * self.item as i128;
            *(if reach < 0 { &mut before } else { &mut after }) += reach;
        }
        let first = tensor.data.addr() as i128 + i128::from(tensor.byte_offset);
        first + before >= 0 && first + after <= usize::MAX as i128
    }

    /// The values in order in new memory, the last dimension varying fastest.
    ///
    /// # Safety
    ///
    /// There are values and data, and the host may read the elements.
    pub(super) unsafe fn copy(&self, tensor: &DLTensor) -> Result<Vec<u64>, Error> {
        ensure!(
            self.fits_address_space(tensor),
            EINVAL,
            "DLTensor.strides: out of range: expected elements within the address space; hint: fix \
             the producer"
        );
        let mut copied: Vec<u64> = Vec::new();
        let words = usize::try_from(self.bytes.div_ceil(8)).unwrap_or(usize::MAX);
        ensure!(
            copied.try_reserve_exact(words).is_ok(),
            ENOMEM,
            "from_dlpack: no memory for a copy of {} bytes",
            self.bytes
        );
        copied.resize(words, 0);
        let mut out = copied.as_mut_ptr().cast::<u8>();
        let mut from = tensor
            .data
            .cast::<u8>()
            .wrapping_add(tensor.byte_offset as usize);
        let mut index = vec![0; self.dimensions.len()];
        for _ in 0..self.values {
            // SAFETY: the caller vouches for the elements; there is room for so many values.
            unsafe { ptr::copy_nonoverlapping(from, out, self.item) };
            out = out.wrapping_add(self.item);
            for (index, Dimension { extent, stride }) in
                index.iter_mut().zip(&self.dimensions).rev()
            {
                let step = *stride as isize * self.item as isize;
                *index += 1;
                if *index < *extent {
                    from = from.wrapping_offset(step);
                    break;
                }
                from = from.wrapping_offset(-step * (*index - 1) as isize);
                *index = 0;
            }
        }
        Ok(copied)
    }
}

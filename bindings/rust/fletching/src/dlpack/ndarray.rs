// SPDX-License-Identifier: Apache-2.0

//! Conversions between `ndarray` arrays and tensors on the host.

use ::ndarray::{Array, ArrayD, ArrayViewD, Axis, Dimension, IxDyn, ShapeBuilder};
use fletching_abi::ArrowDeviceType;

use super::create::TensorParts;
use super::devices::is_host_readable;
use super::element::DlpackElement;
use super::promises::HostReadable;
use super::tensor::{DlpackTensor, ManagedTensor, Tensor};
use crate::error::Error;

/// Copies nothing; the consumer may write to the memory. Errors: EINVAL for more than 64
/// dimensions, and ENOMEM.
impl<T: DlpackElement, D: Dimension + Send + 'static> TryFrom<Array<T, D>> for DlpackTensor {
    type Error = Error;

    fn try_from(mut array: Array<T, D>) -> Result<Self, Error> {
        let shape: Vec<i64> = array.shape().iter().map(|size| *size as i64).collect();
        let strides: Vec<i64> = array.strides().iter().map(|step| *step as i64).collect();
        // The values are on the heap and do not move with the array.
        let data = array.as_mut_ptr().cast();
        let parts = TensorParts::new(data, T::DTYPE, &shape).strides(&strides);
        // SAFETY: the array owns the memory, and no other code uses it.
        unsafe { Self::from_parts(&parts, array) }
    }
}

/// Feature `ndarray`.
impl<M: ManagedTensor> Tensor<M> {
    /// Views the elements. Copies nothing.
    ///
    /// Errors: ENOTSUP for a type other than `T`, for memory that the host cannot read, and for a
    /// misaligned address; EINVAL for a malformed tensor.
    ///
    /// # Safety
    ///
    /// The memory matches the tensor: all elements are initialized, and nobody changes them while
    /// the view is used. Pending work on it is done.
    pub unsafe fn view<T: DlpackElement>(&self) -> Result<ArrayViewD<'_, T>, Error> {
        let (shape, strides) = (self.shape()?, self.strides()?);
        let dtype = self.dtype()?;
        ensure!(
            dtype == T::DTYPE,
            ENOTSUP,
            "DLTensor.dtype: another type: expected {:?}, got {dtype:?}",
            T::DTYPE
        );
        let device_type = ArrowDeviceType::from(self.device()?.device_type);
        ensure!(
            is_host_readable(device_type),
            ENOTSUP,
            "DLTensor.device: expected memory that the host can read, got {device_type}"
        );
        let Some(layout) = Layout::new::<T>(shape, strides) else {
            bail!(
                EINVAL,
                "DLTensor.shape: invalid: expected elements within the address space, got \
                 {shape:?} with the strides {strides:?}; hint: fix the producer"
            )
        };
        let mut first = self.data()?.cast_const().cast::<T>();
        if shape.contains(&0) {
            first = std::ptr::NonNull::dangling().as_ptr();
        }
        ensure!(
            !first.is_null(),
            EINVAL,
            "DLTensor.data: NULL: expected an address, because there are elements; hint: fix the \
             producer"
        );
        ensure!(
            first.is_aligned(),
            ENOTSUP,
            "DLTensor.data: not aligned: expected a multiple of {} bytes, the size of an element",
            align_of::<T>()
        );
        let Some(lowest) = layout.lowest(first) else {
            bail!(
                EINVAL,
                "DLTensor.strides: out of range: expected elements within the address space; hint: \
                 fix the producer"
            )
        };
        let form = IxDyn(&layout.shape).strides(IxDyn(&layout.strides));
        // SAFETY: the caller guarantees that all elements are readable; the view begins at the
        // lowest one.
        let mut view = unsafe { ArrayViewD::from_shape_ptr(form, lowest) };
        for axis in layout.inverted {
            view.invert_axis(Axis(axis));
        }
        Ok(view)
    }

    /// Copies the elements. Errors: as for [`view`](Self::view).
    pub fn to_ndarray<T: DlpackElement>(&self, _: HostReadable) -> Result<ArrayD<T>, Error> {
        // SAFETY: guaranteed by HostReadable; the view ends here.
        Ok(unsafe { self.view::<T>() }?.to_owned())
    }
}

/// A shape and strides that `ndarray` accepts: no stride is negative.
struct Layout {
    shape: Vec<usize>,
    strides: Vec<usize>,
    /// Axes with a negative stride.
    inverted: Vec<usize>,
    /// The number of elements from the lowest to the first element, and from the lowest to the
    /// highest.
    before: usize,
    reach: usize,
}

impl Layout {
    /// Returns `None` if the elements do not fit into memory.
    fn new<T>(shape: &[i64], strides: Option<&[i64]>) -> Option<Self> {
        let sizes = shape.iter().map(|size| usize::try_from(*size).ok());
        let shape: Vec<usize> = sizes.collect::<Option<_>>()?;
        // ndarray's limit, which ignores sizes of 0.
        let count = |count: usize, size: &usize| count.checked_mul((*size).max(1));
        let count = shape.iter().try_fold(1usize, count)?;
        isize::try_from(count.checked_mul(size_of::<T>())?).ok()?;
        let mut layout = Self {
            strides: vec![0; shape.len()],
            shape,
            inverted: Vec::new(),
            before: 0,
            reach: 0,
        };
        let is_empty = layout.shape.contains(&0);
        let mut step = 1;
        for axis in (0..layout.shape.len()).rev() {
            let size = layout.shape[axis];
            let stride = match strides {
                Some(strides) => strides[axis],
                None => step as i64,
            };
            step *= size;
            // A stride that is never used may have any value.
            if size < 2 || is_empty {
                continue;
            }
            let distance = usize::try_from(stride.unsigned_abs()).ok()?;
            let far = distance.checked_mul(size - 1)?;
            layout.reach = layout.reach.checked_add(far)?;
            layout.strides[axis] = distance;
            if stride < 0 {
                layout.inverted.push(axis);
                layout.before += far;
            }
        }
        isize::try_from(layout.reach.checked_add(1)?.checked_mul(size_of::<T>())?).ok()?;
        Some(layout)
    }

    /// Returns the address of the lowest element, or `None` unless every element has an address.
    fn lowest<T>(&self, first: *const T) -> Option<*const T> {
        let lowest = first.addr().checked_sub(self.before * size_of::<T>())?;
        lowest.checked_add((self.reach + 1) * size_of::<T>())?;
        Some(first.wrapping_sub(self.before))
    }
}

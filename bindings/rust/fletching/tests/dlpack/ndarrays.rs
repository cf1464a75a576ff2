// SPDX-License-Identifier: Apache-2.0

//! Conversions between ndarray arrays and tensors.

use std::ptr;

use fletching::abi::DLDataTypeCode as Code;
use fletching::dlpack::ManagedTensor;
use fletching::dlpack::Tensor;
#[cfg(not(miri))]
use fletching::dlpack::{from_dlpack, to_dlpack, DlpackTensor};
use fletching::ArrowDeviceType;
use libc::{EINVAL, ENOTSUP};
use ndarray::{array, ArrayD};
#[cfg(not(miri))]
use ndarray::{s, Array2, Array3};

use crate::support::*;

fn copied<M: ManagedTensor>(tensor: &Tensor<M>) -> ArrayD<i32> {
    tensor.to_ndarray(readable()).unwrap()
}

#[test]
fn view_returns_elements() {
    let tensor = ForeignTensor::int32(&[2, 3], &[]).versioned();
    // SAFETY: the values are static.
    let view = unsafe { tensor.view::<i32>() }.unwrap();
    assert_eq!(view, array![[0, 1, 2], [3, 4, 5]].into_dyn());
    assert_eq!(view.as_ptr().cast(), values());
    let tensor = ForeignTensor::int32(&[2, 3], &[1, 2]).versioned();
    assert_eq!(copied(&tensor), array![[0, 2, 4], [1, 3, 5]].into_dyn());
    let scalar = ForeignTensor::int32(&[], &[]).legacy();
    assert_eq!(copied(&scalar)[[]], 0);
}

#[test]
fn view_accepts_negative_and_zero_strides() {
    let last = values().wrapping_byte_add(20);
    let turned = ForeignTensor::new(INT32, last, &[2, 3], &[-3, -1]).versioned();
    assert_eq!(copied(&turned), array![[5, 4, 3], [2, 1, 0]].into_dyn());
    let third = values().wrapping_byte_add(8);
    let mixed = ForeignTensor::new(INT32, third, &[2, 3], &[3, -1]).versioned();
    assert_eq!(copied(&mixed), array![[2, 1, 0], [5, 4, 3]].into_dyn());
    let repeated = ForeignTensor::int32(&[2, 2], &[0, 1]).versioned();
    assert_eq!(copied(&repeated), array![[0, 1], [0, 1]].into_dyn());
    // A stride that is never used may have any value.
    let single = ForeignTensor::int32(&[1, 2], &[i64::MIN, 1]).versioned();
    assert_eq!(copied(&single), array![[0, 1]].into_dyn());
}

#[test]
fn view_accepts_empty_tensor() {
    let far = [i64::MAX, -1];
    for (shape, strides) in [
        (&[0][..], &[][..]),
        (&[3, 0], &[]),
        (&[0, 2], &[]),
        (&[0, 2], &[2, -1]),
        (&[0, 3], &[3, -1]),
        (&[2, 0], &far),
    ] {
        let tensor = ForeignTensor::new(INT32, ptr::null(), shape, strides).versioned();
        let expected: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        assert_eq!(copied(&tensor).shape(), expected);
    }
}

#[test]
fn view_rejects_unsupported_tensors() {
    let code = |tensor: &ForeignTensor| {
        let error = tensor
            .versioned()
            .to_ndarray::<i32>(readable())
            .unwrap_err();
        error.code()
    };
    let float = ForeignTensor::new(data_type(Code::FLOAT, 32), values(), &[2], &[]);
    assert_eq!(code(&float), ENOTSUP);
    assert_eq!(
        code(&ForeignTensor::int32(&[2], &[]).on(ArrowDeviceType::CUDA.0, 0)),
        ENOTSUP
    );
    let odd = values().wrapping_byte_add(1);
    assert_eq!(code(&ForeignTensor::new(INT32, odd, &[2], &[])), ENOTSUP);
    assert_eq!(
        code(&ForeignTensor::new(INT32, ptr::null(), &[2], &[])),
        EINVAL
    );
    for (shape, strides) in [
        (&[-1][..], &[][..]),
        (&[i64::MAX], &[]),
        (&[1 << 32, 1 << 32], &[]),
        (&[0, i64::MAX, i64::MAX], &[]),
        (&[0, 1 << 61], &[]),
        (&[3], &[i64::MAX]),
        (&[3], &[i64::MIN]),
        (&[2, 2], &[i64::MAX / 4, i64::MAX / 4]),
    ] {
        let tensor = ForeignTensor::int32(shape, strides);
        assert_eq!(code(&tensor), EINVAL, "{shape:?} {strides:?}");
    }
}

#[test]
fn view_rejects_elements_outside_address_space() {
    let at = |address| ptr::without_provenance(address);
    let beyond = ForeignTensor::new(INT32, at(usize::MAX - 3), &[2], &[1]).versioned();
    // The end of an element must also be a valid address.
    let last = ForeignTensor::new(INT32, at(usize::MAX - 7), &[2], &[1]).versioned();
    let before = ForeignTensor::new(INT32, at(4), &[3], &[-1]).versioned();
    for tensor in [beyond, last, before] {
        let error = tensor.to_ndarray::<i32>(readable()).unwrap_err();
        assert_eq!(error.code(), EINVAL);
        mentions(&error, "within the address space");
    }
}

#[cfg(not(miri))]
#[test]
fn array_round_trips_through_tensor() {
    let array = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as i32);
    let address = array.as_ptr();
    let expected = array.clone().into_dyn();
    let tensor = DlpackTensor::try_from(array).unwrap();
    assert_eq!(tensor.data().unwrap().cast_const(), address.cast());
    assert_eq!(tensor.flags().unwrap(), 0);
    assert_eq!(copied(&tensor), expected);
    let mut imported = from_dlpack(tensor, &Default::default()).unwrap();
    let again = to_dlpack(&imported.schema, &mut imported.array, &options()).unwrap();
    assert_eq!(copied(&again), expected);
}

// Column-major order, a slice, and a reversed axis.
#[cfg(not(miri))]
#[test]
fn array_export_keeps_strides() {
    let mut array = Array2::from_shape_fn((3, 4), |(i, j)| (10 * i + j) as i32);
    array.swap_axes(0, 1);
    array.invert_axis(ndarray::Axis(0));
    let part = array.slice_move(s![1.., ..;2]);
    let expected = part.clone().into_dyn();
    let tensor = DlpackTensor::try_from(part).unwrap();
    assert_eq!(tensor.strides().unwrap(), Some(&[-1, 8][..]));
    assert_eq!(copied(&tensor), expected);
}

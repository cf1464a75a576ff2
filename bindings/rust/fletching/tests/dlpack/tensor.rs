// SPDX-License-Identifier: Apache-2.0

//! The parts of a foreign tensor.

use std::ptr;

use fletching::abi::{
    DLDevice, DLDeviceType, DLPackVersion, DLPACK_FLAG_BITMASK_IS_COPIED,
    DLPACK_FLAG_BITMASK_READ_ONLY,
};
use fletching::ArrowDeviceType;
use libc::{EINVAL, ENOTSUP};

use crate::support::*;

#[test]
fn accessors_return_struct_fields() {
    let mut foreign = ForeignTensor::int32(&[2, 3], &[1, 2]);
    foreign.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
    let tensor = foreign.versioned();
    assert_eq!(tensor.shape().unwrap(), [2, 3]);
    assert_eq!(tensor.strides().unwrap(), Some(&[1, 2][..]));
    assert_eq!(tensor.dtype().unwrap(), INT32);
    assert_eq!(tensor.flags().unwrap(), DLPACK_FLAG_BITMASK_IS_COPIED);
    let cpu = DLDevice {
        device_type: DLDeviceType(1),
        device_id: 0,
    };
    assert_eq!(tensor.device().unwrap(), cpu);
    assert_eq!(tensor.data().unwrap().cast_const(), values());
    drop(tensor);
    assert_eq!(foreign.deleted(), 1);
}

#[test]
fn legacy_tensor_counts_as_read_only() {
    let tensor = ForeignTensor::int32(&[6], &[]).legacy();
    assert_eq!(tensor.shape().unwrap(), [6]);
    assert_eq!(tensor.strides().unwrap(), None);
    assert_eq!(tensor.flags().unwrap(), DLPACK_FLAG_BITMASK_READ_ONLY);
}

#[test]
fn scalar_has_empty_lists() {
    let tensor = ForeignTensor::int32(&[], &[]).versioned();
    assert_eq!(tensor.shape().unwrap(), []);
    assert_eq!(tensor.strides().unwrap(), None);
}

#[test]
fn shape_accepts_64_dimensions() {
    let tensor = ForeignTensor::int32(&[1; 64], &[1; 64]).versioned();
    assert_eq!(tensor.shape().unwrap(), [1; 64]);
    assert_eq!(tensor.strides().unwrap(), Some(&[1; 64][..]));
}

#[test]
fn data_adds_byte_offset() {
    let mut foreign = ForeignTensor::int32(&[2], &[]);
    foreign.tensor.byte_offset = 8;
    let second = values().wrapping_byte_add(8);
    assert_eq!(foreign.versioned().data().unwrap().cast_const(), second);
    for device in [
        ArrowDeviceType::CUDA,
        ArrowDeviceType::CUDA_HOST,
        ArrowDeviceType::CUDA_MANAGED,
        ArrowDeviceType::ROCM,
    ] {
        let tensor = ForeignTensor::int32(&[2], &[]).on(device.0, 0).versioned();
        assert_eq!(tensor.data().unwrap().cast_const(), values(), "{device}");
    }
    // The sum would not be a valid address.
    foreign.tensor.data = ptr::null_mut();
    assert!(foreign.versioned().data().unwrap().is_null());
    let mut last = ForeignTensor::new(INT8, ptr::without_provenance(16), &[1], &[]);
    last.tensor.byte_offset = usize::MAX as u64 - 16;
    assert_eq!(last.versioned().data().unwrap().addr(), usize::MAX);
    last.tensor.byte_offset += 1;
    assert_eq!(last.versioned().data().unwrap_err().code(), EINVAL);
    let mut beyond = ForeignTensor::int32(&[2], &[]);
    beyond.tensor.byte_offset = u64::MAX;
    let error = beyond.versioned().data().unwrap_err();
    assert_eq!(error.code(), EINVAL);
    mentions(&error, "DLTensor.byte_offset");
}

#[test]
fn data_rejects_handle() {
    for device in [ArrowDeviceType::OPENCL, ArrowDeviceType(9999)] {
        let tensor = ForeignTensor::int32(&[2], &[]).on(device.0, 0).versioned();
        let error = tensor.data().unwrap_err();
        assert_eq!(error.code(), ENOTSUP);
        mentions(&error, "a handle on");
        assert_eq!(tensor.tensor().unwrap().data.cast_const(), values());
    }
}

#[test]
fn shape_rejects_malformed_tensor() {
    for ndim in [-1, i32::MIN, 65, i32::MAX] {
        let mut foreign = ForeignTensor::int32(&[2], &[1]);
        foreign.tensor.ndim = ndim;
        let tensor = foreign.versioned();
        for error in [tensor.shape().unwrap_err(), tensor.strides().unwrap_err()] {
            assert_eq!(error.code(), EINVAL);
            mentions(
                &error,
                &format!("DLTensor.ndim: out of range: expected 0 to 64, got {ndim}"),
            );
        }
    }
    let mut shapeless = ForeignTensor::int32(&[], &[]);
    shapeless.tensor.ndim = 1;
    let error = shapeless.versioned().shape().unwrap_err();
    mentions(&error, "DLTensor.shape: NULL");
}

#[test]
fn other_major_version_is_rejected() {
    let mut foreign = ForeignTensor::int32(&[2], &[]);
    foreign.version = DLPackVersion { major: 2, minor: 0 };
    let tensor = foreign.versioned();
    let errors = [
        tensor.shape().err(),
        tensor.strides().err(),
        tensor.dtype().err(),
        tensor.flags().err(),
        tensor.device().err(),
        tensor.data().err(),
    ];
    for error in errors {
        let error = error.unwrap();
        assert_eq!(error.code(), ENOTSUP);
        mentions(&error, "expected major version 1, got 2.0");
    }
    drop(tensor);
    assert_eq!(foreign.deleted(), 1);
}

// Later minor versions may have more flags.
#[test]
fn flags_rejects_unknown_bits_of_known_versions() {
    let mut foreign = ForeignTensor::int32(&[2], &[]);
    foreign.flags = 1 << 40;
    mentions(&foreign.versioned().flags().unwrap_err(), "unknown bit");
    foreign.version.minor = 99;
    assert_eq!(foreign.versioned().flags().unwrap(), 1 << 40);
    assert_eq!(foreign.versioned().shape().unwrap(), [2]);
}

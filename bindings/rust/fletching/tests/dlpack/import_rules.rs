// SPDX-License-Identifier: Apache-2.0

//! The rules of DLPack that an import can break: each test has the name of its rule.

use std::ptr;

use crate::imported::*;
use crate::support::*;
use fletching::abi::{
    DLDataTypeCode as Code, DLPackVersion, DEVICES, DLPACK_FLAG_BITMASK_IS_COPIED,
    DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, DLPACK_FLAG_BITMASK_READ_ONLY,
};
use fletching::dlpack::{from_dlpack, DlpackTensor, LegacyDlpackTensor};
use fletching::ArrowDeviceType;
use libc::ENOTSUP;

#[test]
fn rule_dlpack_alignment_not_relied_on() {
    let next = values().wrapping_byte_add(4);
    let tensor = Foreign::new(INT32, next, &[3], &[]);
    assert_eq!(leaf(&imported(&tensor, shared())).2, next);
    // The sum counts: data and byte_offset may both lie between two values.
    let mut between = Foreign::new(INT32, values().wrapping_byte_add(2), &[3], &[]);
    between.tensor.byte_offset = 6;
    let second = values().wrapping_byte_add(8);
    assert_eq!(leaf(&imported(&between, shared())).2, second);
}

#[test]
fn rule_dlpack_byte_offset_applied() {
    let mut tensor = Foreign::int32(&[3], &[]);
    tensor.tensor.byte_offset = 8;
    assert_eq!(integers(&imported(&tensor, shared())), [2, 3, 4]);
    let mut handle = Foreign::int32(&[2, 3], &[]).on(ArrowDeviceType::OPENCL.0, 1);
    handle.tensor.byte_offset = 8;
    assert_eq!(leaf(&imported(&handle, shared())), (6, 2, values()));
    handle.tensor.byte_offset = 6;
    assert_eq!(refused(&handle, shared()).code(), ENOTSUP);
    let mut copied = Foreign::int32(&[2], &[2]);
    copied.tensor.byte_offset = 4;
    assert_eq!(integers(&imported(&copied, copies())), [1, 3]);
}

#[test]
fn rule_dlpack_strides_null_accepted() {
    for minor in 0..4 {
        let mut tensor = Foreign::int32(&[2, 3], &[]);
        tensor.version.minor = minor;
        assert_eq!(leaf(&imported(&tensor, shared())).0, 6);
    }
}

#[test]
fn rule_dlpack_shape_null_accepted() {
    let eighth = values().wrapping_byte_add(28);
    let result = imported(&Foreign::new(INT32, eighth, &[], &[]), shared());
    assert_eq!(integers(&result), [7]);
    assert_eq!(parameters(&result.schema), of("i", ""));
}

#[test]
fn rule_dlpack_device_id_not_assumed() {
    // Whatever the number is, it is passed on: only the producer's runtime knows what it counts.
    for id in [0, 1, 77, -3] {
        let array = imported(&Foreign::int32(&[2], &[]).on(2, id), shared()).array;
        assert_eq!(array.device_type(), ArrowDeviceType::CUDA);
        assert_eq!(array.device_id(), i64::from(id));
    }
}

#[test]
fn rule_device_array_device_id_convention() {
    for id in [0, 5, -1] {
        let array = imported(&Foreign::int32(&[2], &[]).on(1, id), shared()).array;
        assert_eq!(array.device_id(), -1);
    }
}

#[test]
fn rule_dlpack_type_unexpected_bits_refused() {
    for bits in [4, 6, 8, 32] {
        for code in [
            Code::FLOAT6_E2M3FN,
            Code::FLOAT6_E3M2FN,
            Code::FLOAT4_E2M1FN,
        ] {
            let tensor = Foreign::new(data_type(code, bits), values(), &[2], &[]);
            assert_eq!(refused(&tensor, storage()).code(), ENOTSUP);
        }
    }
}

#[test]
fn rule_dlpack_type_packed_unless_flagged() {
    // Neither form has a type in Arrow; the error says which one it was.
    let both = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
    let padded = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    for (flags, found) in [(0, "packed"), (both, "packed"), (padded, "padded")] {
        for (code, bits) in [(Code::INT, 4), (Code::UINT, 1), (Code::FLOAT6_E2M3FN, 6)] {
            let mut tensor = Foreign::new(data_type(code, bits), values(), &[2], &[]);
            tensor.flags = flags;
            mentions(&refused(&tensor, storage()), found);
        }
    }
    // It says nothing of types that have whole bytes.
    let mut whole = Foreign::int32(&[2], &[]);
    whole.flags = padded;
    assert_eq!(integers(&imported(&whole, shared())), [0, 1]);
}

#[test]
fn rule_dlpack_managed_major_mismatch() {
    for major in [0, 2, u32::MAX] {
        // Behind the deleter of another version there may be anything.
        let mut tensor = Foreign::new(INT32, ptr::dangling(), &[2], &[]);
        tensor.tensor.ndim = i32::MAX;
        tensor.flags = u64::MAX;
        tensor.version.major = major;
        assert!(tensor.versioned().tensor().is_err());
        let error = refused(&tensor, shared());
        assert_eq!(error.code(), ENOTSUP);
        mentions(&error, &format!("got {major}.3"));
    }
}

#[test]
fn rule_dlpack_managed_minor_mismatch() {
    let mut newer = Foreign::int32(&[2], &[]);
    newer.version = DLPackVersion {
        major: 1,
        minor: 99,
    };
    assert_eq!(imported(&newer, shared()).array.length(), 2);
    newer.flags = 8;
    mentions(&refused(&newer, shared()), "got 8");
}

#[test]
fn rule_dlpack_managed_deleter_called() {
    let kept = Foreign::int32(&[2], &[]);
    drop(imported(&kept, shared()));
    assert_eq!(kept.deleted(), 1);
    let copied = Foreign::int32(&[2], &[2]);
    let _result = imported(&copied, copies());
    assert_eq!(copied.deleted(), 1);
}

#[test]
fn rule_dlpack_managed_deleter_null_accepted() {
    // Statics, so that nothing leaks.
    static mut SHAPE: [i64; 1] = [2];
    for data in [values(), ptr::null()] {
        let mut tensor = Foreign::new(INT32, data, &[], &[]).tensor;
        (tensor.ndim, tensor.shape) = (1, (&raw mut SHAPE).cast());
        let mut versioned = fletching::abi::DLManagedTensorVersioned::zeroed();
        (versioned.version.major, versioned.dl_tensor) = (1, tensor);
        let mut legacy = fletching::abi::DLManagedTensor::zeroed();
        legacy.dl_tensor = tensor;
        // SAFETY: both live until the end of the block.
        unsafe {
            let versioned = DlpackTensor::from_raw(&mut versioned).unwrap();
            assert_eq!(from_dlpack(versioned, &shared()).is_ok(), !data.is_null());
            let legacy = LegacyDlpackTensor::from_raw(&mut legacy).unwrap();
            assert_eq!(from_dlpack(legacy, &shared()).is_ok(), !data.is_null());
        }
    }
}

#[test]
fn rule_dlpack_managed_read_only_ignored() {
    for (flags, read_only, copied) in [(0, false, false), (1, true, false), (2, false, true)] {
        let mut tensor = Foreign::int32(&[2], &[]);
        tensor.flags = flags;
        let result = imported(&tensor, shared());
        assert_eq!((result.read_only, result.copied), (read_only, copied));
    }
}

#[test]
fn rule_dlpack_import_zero_copy() {
    let result = imported(&Foreign::int32(&[2, 3], &[]), copies());
    assert_eq!(leaf(&result).2, values());
    assert!(!result.copied);
}

#[test]
fn rule_dlpack_import_same_device() {
    for device in DEVICES {
        let tensor = Foreign::int32(&[2], &[]).on(device.device_type.0, 1);
        let array = imported(&tensor, shared()).array;
        assert_eq!(array.device_type(), device.device_type);
    }
}

#[test]
fn rule_dlpack_import_copy_none() {
    let compact = imported(&Foreign::int32(&[2, 3], &[]), copies());
    assert!(!compact.copied, "it can share the memory");
    let copy = imported(&Foreign::int32(&[3], &[2]), copies());
    assert!(copy.copied);
    assert_eq!(integers(&copy), [0, 2, 4]);
}

#[test]
fn rule_dlpack_import_copy_false() {
    let tensor = Foreign::int32(&[2], &[2]);
    assert_eq!(refused(&tensor, shared()).code(), ENOTSUP);
}

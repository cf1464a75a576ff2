// SPDX-License-Identifier: Apache-2.0

//! Rules for DLPack imports that the conformance suite cannot observe.

use crate::import_support::*;
use crate::support::*;
use fletching::abi::{
    DLDataTypeCode as Code, DEVICES, DLPACK_FLAG_BITMASK_IS_COPIED,
    DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, DLPACK_FLAG_BITMASK_READ_ONLY,
};
use fletching::ArrowDeviceType;
use libc::ENOTSUP;

#[test]
fn rule_dlpack_alignment_not_relied_on() {
    let next = values().wrapping_byte_add(4);
    let tensor = ForeignTensor::new(INT32, next, &[3], &[]);
    assert_eq!(leaf(&imported(&tensor, shared())).2, next);
    // Only the sum counts: data and byte_offset may each point between two values.
    let mut between = ForeignTensor::new(INT32, values().wrapping_byte_add(2), &[3], &[]);
    between.tensor.byte_offset = 6;
    let second = values().wrapping_byte_add(8);
    assert_eq!(leaf(&imported(&between, shared())).2, second);
}

#[test]
fn rule_dlpack_byte_offset_applied() {
    let mut tensor = ForeignTensor::int32(&[3], &[]);
    tensor.tensor.byte_offset = 8;
    assert_eq!(integers(&imported(&tensor, shared())), [2, 3, 4]);
    let mut handle = ForeignTensor::int32(&[2, 3], &[]).on(ArrowDeviceType::OPENCL.0, 1);
    handle.tensor.byte_offset = 8;
    assert_eq!(leaf(&imported(&handle, shared())), (6, 2, values()));
    handle.tensor.byte_offset = 6;
    assert_eq!(refused(&handle, shared()).code(), ENOTSUP);
    let mut copied = ForeignTensor::int32(&[2], &[2]);
    copied.tensor.byte_offset = 4;
    assert_eq!(integers(&imported(&copied, copies())), [1, 3]);
}

#[test]
fn rule_dlpack_device_id_not_assumed() {
    // Every device id is passed on: only the producer's runtime knows its meaning.
    for id in [0, 1, 77, -3] {
        let array = imported(&ForeignTensor::int32(&[2], &[]).on(2, id), shared()).array;
        assert_eq!(array.device_type(), ArrowDeviceType::CUDA);
        assert_eq!(array.device_id(), i64::from(id));
        let array = imported(&ForeignTensor::int32(&[2], &[]).on(1, id), shared()).array;
        assert_eq!(array.device_id(), -1, "on the CPU");
    }
}

#[test]
fn rule_dlpack_type_packed_unless_flagged() {
    // Arrow has a type for neither form; the error names the form.
    let both = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
    let padded = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    for (flags, found) in [(0, "packed"), (both, "packed"), (padded, "padded")] {
        for (code, bits) in [(Code::INT, 4), (Code::UINT, 1), (Code::FLOAT6_E2M3FN, 6)] {
            let mut tensor = ForeignTensor::new(data_type(code, bits), values(), &[2], &[]);
            tensor.flags = flags;
            mentions(&refused(&tensor, storage()), found);
        }
    }
    // The flag has no meaning for types of whole bytes.
    let mut whole = ForeignTensor::int32(&[2], &[]);
    whole.flags = padded;
    assert_eq!(integers(&imported(&whole, shared())), [0, 1]);
}

#[test]
fn rule_dlpack_managed_read_only_ignored() {
    for (flags, read_only, copied) in [(0, false, false), (1, true, false), (2, false, true)] {
        let mut tensor = ForeignTensor::int32(&[2], &[]);
        tensor.flags = flags;
        let result = imported(&tensor, shared());
        assert_eq!((result.read_only, result.copied), (read_only, copied));
    }
}

#[test]
fn rule_dlpack_import_zero_copy() {
    let result = imported(&ForeignTensor::int32(&[2, 3], &[]), copies());
    assert_eq!(leaf(&result).2, values());
    assert!(!result.copied);
}

#[test]
fn rule_dlpack_import_same_device() {
    for device in DEVICES {
        let tensor = ForeignTensor::int32(&[2], &[]).on(device.device_type.0, 1);
        let array = imported(&tensor, shared()).array;
        assert_eq!(array.device_type(), device.device_type);
    }
}

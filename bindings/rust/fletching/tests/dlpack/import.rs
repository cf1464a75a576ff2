// SPDX-License-Identifier: Apache-2.0

//! Import of tensors as device arrays.

use std::ptr;

use crate::import_support::*;
use crate::support::*;
use fletching::dlpack::{
    from_dlpack, to_dlpack, Dimensions, DlpackTensor, Imported, LegacyDlpackTensor,
};
use fletching::{Array, ArrowDeviceType};
use libc::{EINVAL, ENOTSUP};

#[test]
fn from_dlpack_shares_memory() {
    let tensor = ForeignTensor::int32(&[6], &[1]);
    let Imported { schema, array, .. } = imported(&tensor, shared());
    assert_eq!(parameters(&schema), of("i", ""));
    assert_eq!(schema.name(), c"");
    assert!(schema.as_raw().metadata.is_null());
    assert_eq!(
        (array.length(), array.null_count(), array.offset()),
        (6, 0, 0)
    );
    assert_eq!(array.buffers(), [ptr::null(), values()]);
    assert!(array.sync_event().is_null());
    assert_eq!(array.as_raw().reserved, [0; 3]);
    drop(schema);
    assert_eq!(tensor.deleted(), 0);
    std::thread::spawn(|| drop(array)).join().unwrap();
    assert_eq!(tensor.deleted(), 1);
}

#[test]
fn from_dlpack_accepts_legacy_tensor() {
    let tensor = ForeignTensor::int32(&[6], &[]);
    let result = from_dlpack(tensor.legacy(), &shared()).unwrap();
    assert_eq!(leaf(&result), (6, 0, values()));
    assert!(result.read_only && !result.copied);
    drop(result);
    assert_eq!(tensor.deleted(), 1);
}

#[test]
fn from_raw_rejects_null() {
    // SAFETY: NULL is allowed.
    let (versioned, legacy) = unsafe {
        let versioned = DlpackTensor::from_raw(ptr::null_mut());
        (versioned, LegacyDlpackTensor::from_raw(ptr::null_mut()))
    };
    assert_eq!(versioned.unwrap_err().code(), EINVAL);
    assert_eq!(legacy.unwrap_err().code(), EINVAL);
}

#[test]
fn dimensions_become_tensor_or_lists() {
    let tensor = ForeignTensor::int32(&[2, 3, 4], &[12, 4, 1]);
    let result = imported(&tensor, shared());
    let expected = r#"arrow.fixed_shape_tensor{"shape":[3,4]}"#;
    assert_eq!(parameters(&result.schema), of("+w:12", expected));
    assert_eq!(result.array.buffers(), [ptr::null()]);
    assert_eq!((result.array.length(), leaf(&result).0), (2, 24));
    assert_eq!(result.schema.children()[0].unwrap().name(), c"item");
    let result = imported(&ForeignTensor::int32(&[2, 3, 4], &[]), lists());
    assert_eq!(parameters(&result.schema), of("+w:3", ""));
    assert_eq!(result.schema.children()[0].unwrap().format(), c"+w:4");
    assert_eq!(result.array.children()[0].unwrap().length(), 6);
    assert_eq!(leaf(&result).0, 24);
}

#[test]
fn imported_tensor_is_exported_unchanged() {
    let (sizes, steps) = ([2, 2, 3, 2], [12, 1, 4, 2]);
    let tensor = ForeignTensor::int32(&sizes, &steps);
    let mut result = imported(&tensor, shared());
    let again = to_dlpack(&result.schema, &mut result.array, &options()).unwrap();
    let there = again.tensor().unwrap();
    assert_eq!(
        (shape(there), strides(there)),
        (sizes.to_vec(), steps.to_vec())
    );
    assert_eq!(there.data.cast_const(), values());
    drop(again);
    assert_eq!(tensor.deleted(), 1);
}

#[test]
fn rule_dlpack_import_copy_false() {
    for (shape, strides) in [
        (&[3][..], &[2][..]),
        (&[3], &[-1]),
        (&[3], &[0]),
        (&[3], &[i64::MIN]),
        (&[2, 3], &[1, 2]),
        (&[2, 3], &[4, 1]),
        (&[2, 2, 3], &[8, 4, 1]),
    ] {
        let error = refused(&ForeignTensor::int32(shape, strides), shared());
        assert_eq!(error.code(), ENOTSUP, "{strides:?}");
        mentions(&error, "copy the tensor");
    }
}

#[test]
fn rule_dlpack_import_copy_none() {
    let last = values().wrapping_byte_add(16);
    let backwards = ForeignTensor::new(INT32, last, &[3], &[-2]);
    let result = imported(&backwards, copies());
    assert_eq!(backwards.deleted(), 1);
    assert!(result.copied && !result.read_only);
    assert_eq!(integers(&result), [4, 2, 0]);
    let columns = ForeignTensor::int32(&[2, 3], &[1, 2]);
    assert_eq!(integers(&imported(&columns, copies())), [0, 2, 4, 1, 3, 5]);
    let options = copies().dimensions(Dimensions::FixedSizeLists);
    let permuted = imported(&ForeignTensor::int32(&[1, 2, 3], &[6, 1, 2]), options);
    assert_eq!(integers(&permuted), [0, 2, 4, 1, 3, 5]);
    assert_eq!(permuted.schema.children()[0].unwrap().format(), c"+w:3");
    assert_eq!(
        integers(&imported(&lanes(2, &[2], &[3]), copies())),
        [0, 1, 6, 7]
    );
}

#[test]
fn copied_tensor_is_on_cpu() {
    let pinned = ForeignTensor::int32(&[3], &[2]).on(ArrowDeviceType::CUDA_HOST.0, 1);
    let result = imported(&pinned, copies());
    assert_eq!(integers(&result), [0, 2, 4]);
    assert_eq!(result.array.device_type(), ArrowDeviceType::CPU);
    assert_eq!(result.array.device_id(), -1);
    let device = ForeignTensor::int32(&[3], &[2]).on(ArrowDeviceType::CUDA.0, 0);
    assert_eq!(refused(&device, copies()).code(), ENOTSUP);
}

#[test]
fn from_dlpack_rejects_malformed_tensors() {
    let malformed = |tensor: &ForeignTensor, what: &str| {
        let error = refused(tensor, copies());
        assert_eq!(error.code(), EINVAL, "{error}");
        mentions(&error, &format!("DLTensor.{what}"));
    };
    for ndim in [-1, i32::MIN, 65, i32::MAX] {
        let mut tensor = ForeignTensor::int32(&[2], &[]);
        tensor.tensor.ndim = ndim;
        malformed(&tensor, "ndim");
    }
    let mut shapeless = ForeignTensor::int32(&[], &[]);
    shapeless.tensor.ndim = 1;
    malformed(&shapeless, "shape: NULL: expected ndim sizes");
    let sizes = "shape: negative size: expected 0 or more, got -1";
    malformed(&ForeignTensor::int32(&[2, -1], &[]), sizes);
    malformed(
        &ForeignTensor::int32(&[i64::MIN], &[]),
        "shape: negative size",
    );
    malformed(
        &ForeignTensor::int32(&[i64::MAX], &[]),
        "shape: size out of range",
    );
    let overflow = ForeignTensor::new(INT8, values(), &[1 << 32, 1 << 32], &[]);
    malformed(&overflow, "shape: size out of range");
    malformed(
        &ForeignTensor::new(INT32, ptr::null(), &[1], &[]),
        "data: NULL",
    );
    for device in [ArrowDeviceType::CPU, ArrowDeviceType::OPENCL] {
        let mut offset = ForeignTensor::int32(&[1], &[]).on(device.0, 0);
        offset.tensor.byte_offset = u64::MAX - 3;
        malformed(&offset, "byte_offset");
    }
    let sizes = [1 << 40, i32::MAX.into(), i32::MAX.into(), 0];
    let lengths = ForeignTensor::new(INT8, values(), &sizes, &[]);
    mentions(&refused(&lengths, lists()), "too many lists");
}

#[test]
fn moved_children_keep_memory_alive() {
    let tensor = ForeignTensor::int32(&[2, 3], &[]);
    let Imported {
        mut schema,
        mut array,
        ..
    } = imported(&tensor, shared());
    let child_schema = schema.take_child(0).unwrap();
    drop(schema);
    assert_eq!(child_schema.format(), c"i");
    let child = Array::try_from(array.take_child(0).unwrap()).unwrap();
    drop(array);
    assert_eq!((tensor.deleted(), child.length()), (0, 6));
    assert_eq!(child.buffers()[1], values());
    drop(child);
    assert_eq!(tensor.deleted(), 1);
}

#[test]
fn unknown_devices_are_kept() {
    let tensor = ForeignTensor::int32(&[2], &[]).on(9999, 4);
    let mut result = imported(&tensor, shared());
    assert_eq!(result.array.device_type(), ArrowDeviceType(9999));
    assert_eq!(result.array.device_id(), 4);
    let again = to_dlpack(&result.schema, &mut result.array, &options()).unwrap();
    let device = again.tensor().unwrap().device;
    assert_eq!((device.device_type.0, device.device_id), (9999, 4));
}

// SPDX-License-Identifier: Apache-2.0

//! Export of device arrays as tensors.

use crate::support::*;
use fletching::dlpack::{dlpack_device, to_dlpack, MAX_DIMENSIONS};
use fletching::{ArrowDeviceType, DeviceArray, Schema};
use libc::{EINVAL, ERANGE};

#[test]
fn to_dlpack_shares_memory() {
    let data = Data::new("i", 6);
    let exported = data.exported(options());
    let tensor = exported.tensor().unwrap();
    assert_eq!(tensor.data.cast_const(), values());
    assert_eq!(tensor.byte_offset, 0);
    assert_eq!(tensor.dtype, INT32);
    assert_eq!((shape(tensor), strides(tensor)), (vec![6], vec![1]));
    assert_eq!(data.releases(), 0);
    drop(exported);
    assert_eq!(data.releases(), 1);
}

#[test]
fn to_dlpack_rejects_extension_and_dictionary_types() {
    let extension = Data::new("i", 2).extension("example.degrees", "");
    mentions(&extension.refused(options()), "example.degrees");
    extension.exported(as_storage());
    let list = Data::list(2, 1, Data::new("i", 2)).extension("example.pair", "");
    mentions(&list.refused(options()), "example.pair");
    list.exported(as_storage());
    let encoded = Data::new("i", 2).dictionary();
    mentions(&encoded.refused(options()), "dictionary");
    encoded.exported(as_storage());
}

#[test]
fn to_dlpack_rejects_unhandled_event() {
    let data = Data::new("i", 3).on(ArrowDeviceType::CUDA, 1).event();
    mentions(&data.refused(options()), "sync_event");
    data.exported(event_handled());
    assert_eq!(data.releases(), 2);
}

#[test]
fn to_dlpack_rejects_released_structs() {
    let data = Data::new("i", 3);
    let refused = |schema: &Schema, mut array| {
        to_dlpack(schema, &mut array, &options())
            .unwrap_err()
            .code()
    };
    assert_eq!(refused(&data.schema(), DeviceArray::default()), EINVAL);
    assert_eq!(refused(&Schema::default(), data.array()), EINVAL);
}

#[test]
fn dlpack_device_maps_device_ids() {
    let id = |device_type, id| dlpack_device(device_type, id).map(|device| device.device_id);
    assert_eq!(id(ArrowDeviceType::CPU, -1).unwrap(), 0);
    assert_eq!(id(ArrowDeviceType::CUDA_HOST, 1 << 40).unwrap(), 0);
    assert_eq!(id(ArrowDeviceType::CUDA, 5).unwrap(), 5);
    assert_eq!(id(ArrowDeviceType(9999), -7).unwrap(), -7);
    assert_eq!(
        id(ArrowDeviceType::CUDA, 1 << 40).unwrap_err().code(),
        ERANGE
    );
}

#[test]
fn to_dlpack_rejects_more_than_64_dimensions() {
    let mut data = Data::new("i", 1);
    for _ in 1..MAX_DIMENSIONS {
        data = Data::list(1, 1, data);
    }
    assert_eq!(data.exported(options()).tensor().unwrap().ndim, 64);
    mentions(&Data::list(1, 1, data).refused(options()), "at most 64");
}

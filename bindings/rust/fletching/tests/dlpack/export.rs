// SPDX-License-Identifier: Apache-2.0

//! Device arrays as tensors.

use std::ptr;

use crate::support::*;
use fletching::abi::DLDataTypeCode;
use fletching::dlpack::{to_dlpack, MAX_DIMENSIONS};
use fletching::{ArrowDeviceType, DeviceArray, Schema};
use libc::{EINVAL, ENOTSUP, ERANGE};

#[test]
fn the_memory_is_shared() {
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

// A consumer that ignores byte_offset is led right, wherever the first element is.
#[test]
fn the_offset_is_in_the_address() {
    for offset in 0..20 {
        let exported = Data::new("i", 4).offset(offset).exported(options());
        let tensor = exported.tensor().unwrap();
        let first = values().wrapping_byte_add(4 * offset as usize);
        assert_eq!((tensor.data.cast_const(), tensor.byte_offset), (first, 0));
        assert_eq!(shape(tensor), [4]);
    }
}

#[test]
fn handles_are_kept_apart_from_offsets() {
    for device in [
        ArrowDeviceType::OPENCL,
        ArrowDeviceType::VULKAN,
        ArrowDeviceType(9999),
    ] {
        let exported = Data::new("i", 4)
            .offset(5)
            .on(device, 3)
            .exported(options());
        let tensor = exported.tensor().unwrap();
        assert_eq!(tensor.data.cast_const(), values(), "{device}");
        assert_eq!(tensor.byte_offset, 20, "{device}");
        assert_eq!(tensor.device.device_type, device.into());
        assert_eq!(tensor.device.device_id, 3);
    }
}

#[test]
fn lists_are_dimensions() {
    let inner = Data::list(3, 8, Data::new("i", 24));
    let exported = Data::list(2, 3, inner).offset(1).exported(options());
    let tensor = exported.tensor().unwrap();
    assert_eq!(
        (shape(tensor), strides(tensor)),
        (vec![3, 2, 3], vec![6, 3, 1])
    );
    assert_eq!(tensor.data.cast_const(), values().wrapping_byte_add(24));
    let shifted = Data::list(4, 2, Data::new("i", 20).offset(3)).offset(1);
    let exported = shifted.exported(options());
    let first = values().wrapping_byte_add(28);
    assert_eq!(exported.tensor().unwrap().data.cast_const(), first);
}

#[test]
fn tensors_are_permuted() {
    let parameters = r#"{"shape":[2,3],"permutation":[1,0],"dim_names":["a","\"b]"]}"#;
    let data =
        Data::list(6, 2, Data::new("i", 12)).extension("arrow.fixed_shape_tensor", parameters);
    let exported = data.exported(options());
    let tensor = exported.tensor().unwrap();
    assert_eq!(
        (shape(tensor), strides(tensor)),
        (vec![2, 3, 2], vec![6, 1, 3])
    );
}

#[test]
fn bool8_is_a_boolean() {
    let exported = Data::new("c", 3)
        .extension("arrow.bool8", "")
        .exported(options());
    let dtype = exported.tensor().unwrap().dtype;
    assert_eq!(dtype, data_type(DLDataTypeCode::BOOL, 8));
    let wrong = Data::new("i", 3).extension("arrow.bool8", "");
    assert_eq!(wrong.refused(options()).code(), EINVAL);
}

#[test]
fn every_type_is_decided() {
    for &(format, code, bits, is_storage) in TYPES {
        let data = Data::new(format, 2);
        if is_storage {
            assert_eq!(data.refused(options()).code(), ENOTSUP, "{format}");
        } else {
            let exported = data.exported(options());
            assert_eq!(exported.tensor().unwrap().dtype, data_type(code, bits));
        }
        let exported = data.exported(as_storage());
        assert_eq!(
            exported.tensor().unwrap().dtype,
            data_type(code, bits),
            "{format}"
        );
    }
    for format in [
        "n",
        "b",
        "d:19,10",
        "d:19,10,128",
        "d:39,2,256",
        "tiD",
        "tin",
        "z",
        "Z",
        "vz",
        "u",
        "U",
        "vu",
        "+l",
        "+L",
        "+vl",
        "+vL",
        "+s",
        "+m",
        "+ud:0",
        "+us:0",
        "+r",
    ] {
        let data = Data::new(format, 2);
        assert_eq!(data.refused(options()).code(), ENOTSUP, "{format}");
        assert_eq!(data.refused(as_storage()).code(), ENOTSUP, "{format}");
    }
    for format in [
        "?",
        "x\n",
        "ii",
        "i:",
        "tss",
        "tsx:",
        "tdD:",
        "w:",
        "w:-1",
        "w:x",
        "w:2147483648",
        "+w:-1",
        "d:",
        "d:1",
        "d:x,1",
        "d:0,0",
        "d:39,0",
        "d:10,0,32",
        "d:19,0,64",
        "d:9,0,16",
        "d:9,0,32,",
        "+ux:0",
        "b:",
    ] {
        let data = Data::new(format, 2);
        assert_eq!(data.refused(as_storage()).code(), EINVAL, "{format}");
    }
}

#[test]
fn a_refusal_says_how_to_fix_it() {
    mentions(&Data::new("b", 3).refused(options()), "arrow.bool8");
    mentions(&Data::new("tsu:UTC", 3).refused(options()), "as_storage");
    let list = Data::list(3, 2, Data::new("i", 5));
    mentions(&list.refused(options()), "too short");
}

#[test]
fn binary_has_a_dimension_of_bytes() {
    let exported = Data::new("w:3", 2).offset(1).exported(as_storage());
    let tensor = exported.tensor().unwrap();
    assert_eq!((shape(tensor), strides(tensor)), (vec![2, 3], vec![3, 1]));
    assert_eq!(tensor.data.cast_const(), values().wrapping_byte_add(3));
}

#[test]
fn meanings_are_kept_unless_asked() {
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
fn an_event_has_to_be_handled() {
    let data = Data::new("i", 3).on(ArrowDeviceType::CUDA, 1).event();
    mentions(&data.refused(options()), "sync_event");
    data.exported(event_handled());
    assert_eq!(data.releases(), 2);
}

#[test]
fn what_is_released_is_refused() {
    let data = Data::new("i", 3);
    let refused = |schema: &Schema, mut array| {
        to_dlpack(schema, &mut array, &options())
            .unwrap_err()
            .code()
    };
    assert_eq!(refused(&data.schema(), DeviceArray::default()), EINVAL);
    assert_eq!(refused(&Schema::default(), data.array()), EINVAL);
}

// Lists of lists of dictionary-encoded integers, of which one struct is gone.
#[test]
fn what_has_a_released_part_is_refused() {
    let tree = Data::list(2, 2, Data::list(3, 4, Data::new("i", 12).dictionary()));
    tree.exported(as_storage());
    for (level, is_dictionary, path) in [
        (1, false, ".children[0]: released"),
        (2, false, ".children[0].children[0]: released"),
        (2, true, ".children[0].children[0].dictionary: released"),
    ] {
        let (schema, mut array) = (tree.schema(), tree.array());
        // SAFETY: the structs are the test's, and nothing else looks at them.
        unsafe {
            let mut below: *const fletching::abi::ArrowArray = &array.as_raw().array;
            for _ in 0..level {
                below = *(*below).children;
            }
            let gone = if is_dictionary {
                (*below).dictionary
            } else {
                below.cast_mut()
            };
            ((*gone).release.unwrap())(gone);
        }
        let error = to_dlpack(&schema, &mut array, &as_storage()).unwrap_err();
        assert_eq!(error.code(), EINVAL);
        mentions(&error, &format!("ArrowArray{path}"));
        assert!(!array.is_released());

        let (schema, mut array) = (tree.schema(), tree.array());
        // SAFETY: as above.
        unsafe {
            let mut below: *const fletching::abi::ArrowSchema = schema.as_raw();
            for _ in 0..level {
                below = *(*below).children;
            }
            let gone = if is_dictionary {
                (*below).dictionary
            } else {
                below.cast_mut()
            };
            ((*gone).release.unwrap())(gone);
        }
        let error = to_dlpack(&schema, &mut array, &as_storage()).unwrap_err();
        mentions(&error, &format!("ArrowSchema{path}"));
    }
}

#[test]
fn malformed_arrays_are_refused() {
    let code = |data: Data| data.refused(options()).code();
    assert_eq!(code(Data::new("l", 1).offset(i64::MAX)), EINVAL);
    assert_eq!(
        code(Data::new("l", i64::MAX / 8).offset(i64::MAX / 16)),
        EINVAL
    );
    assert_eq!(
        code(Data::new("l", 1 << 61).buffers(&[ptr::null(), values()])),
        EINVAL
    );
    assert_eq!(
        code(Data::new("i", 1).buffers(&[ptr::null(), ptr::null()])),
        EINVAL
    );
    assert_eq!(code(Data::new("i", 1).buffers(&[ptr::null()])), EINVAL);
    assert_eq!(code(Data::new("i", 1).buffers(&[])), EINVAL);
    assert_eq!(code(Data::new("+w:2", 1)), EINVAL);
    // The end of the values is beyond the last address.
    let last = ptr::without_provenance(usize::MAX - 7);
    let beyond = Data::new("i", 4).buffers(&[ptr::null(), last]);
    assert_eq!(code(beyond), EINVAL);
    let list = Data::list(2, 1, Data::new("i", 2));
    assert_eq!(code(list.clone().buffers(&[])), EINVAL);
    assert_eq!(
        code(Data::list(i32::MAX.into(), i64::MAX / 2, Data::new("i", 6))),
        EINVAL
    );
    assert_eq!(
        code(Data::list(2, 1, Data::new("i", 2).offset(i64::MAX))),
        EINVAL
    );
    for spoil in [
        (|raw| raw.array.length = -1) as fn(&mut fletching::abi::ArrowDeviceArray),
        |raw| raw.array.offset = -1,
        |raw| raw.array.n_children = 2,
        |raw| raw.array.n_children = -1,
        |raw| raw.array.children = ptr::null_mut(),
        |raw| raw.array.buffers = ptr::null_mut(),
        // SAFETY: the list has one child.
        |raw| unsafe { (**raw.array.children).offset = -1 },
    ] {
        let mut raw = list.array().into_raw();
        let whole = (raw.array.n_children, raw.array.children);
        spoil(&mut raw);
        // SAFETY: what was spoiled is looked at before it is used, and put back.
        let mut array = unsafe { DeviceArray::from_raw(raw) };
        let error = to_dlpack(&list.schema(), &mut array, &options()).unwrap_err();
        assert_eq!(error.code(), EINVAL, "{error}");
        let mut raw = array.into_raw();
        (raw.array.n_children, raw.array.children) = whole;
        // SAFETY: as it was built.
        drop(unsafe { DeviceArray::from_raw(raw) });
    }
}

#[test]
fn there_is_a_most_of_dimensions() {
    let mut data = Data::new("i", 1);
    for _ in 1..MAX_DIMENSIONS {
        data = Data::list(1, 1, data);
    }
    assert_eq!(data.exported(options()).tensor().unwrap().ndim, 64);
    mentions(&Data::list(1, 1, data).refused(options()), "at most 64");
}

#[test]
fn an_id_has_to_fit() {
    let data = Data::new("i", 1).on(ArrowDeviceType::CUDA, 1 << 40);
    assert_eq!(data.refused(options()).code(), ERANGE);
}

#[test]
fn negative_counts_in_metadata_are_refused() {
    let mut schema = Data::new("i", 1).schema().into_raw();
    let count = -1i32;
    schema.metadata = ptr::from_ref(&count).cast();
    // SAFETY: the metadata is not read behind a count that is negative.
    let schema = unsafe { Schema::from_raw(schema) };
    let error = to_dlpack(&schema, &mut Data::new("i", 1).array(), &options()).unwrap_err();
    mentions(&error, "ArrowSchema.metadata");
}

// SPDX-License-Identifier: Apache-2.0

//! Rules for DLPack exports that the conformance suite does not test.

use crate::support::*;
use fletching::abi::{DLPackVersion, DEVICES, DLPACK_FLAG_BITMASK_IS_COPIED};
use fletching::dlpack::{is_legacy_expected, to_legacy_dlpack, Access, Nulls};
use fletching::ArrowDeviceType;
use libc::EINVAL;

#[test]
fn rule_dlpack_data_null_when_empty() {
    let exported = Data::new("i", 0).offset(2).exported(options());
    let tensor = exported.tensor().unwrap();
    assert!(tensor.data.is_null() && tensor.byte_offset == 0);
    let exported = Data::list(0, 3, Data::new("i", 0)).exported(options());
    let tensor = exported.tensor().unwrap();
    assert!(tensor.data.is_null());
    assert_eq!(shape(tensor), [3, 0]);
    let parameters = r#"{"shape":[4294967296,0,4294967296]}"#;
    let huge = Data::list(0, i64::MAX, Data::new("i", 0))
        .extension("arrow.fixed_shape_tensor", parameters);
    assert!(huge.exported(options()).tensor().unwrap().data.is_null());
}

#[test]
fn rule_dlpack_data_aligned() {
    for offset in 0..20 {
        let exported = Data::new("i", 4)
            .offset(offset)
            .exported(options().aligned(true));
        let tensor = exported.tensor().unwrap();
        assert_eq!(tensor.data.addr() % 256, 0);
        assert!(tensor.byte_offset < 256);
        let first = tensor.data.addr() + tensor.byte_offset as usize;
        assert_eq!(first, values().addr() + 4 * offset as usize);
    }
}

#[test]
fn rule_dlpack_device_id_of_cpu() {
    for device in DEVICES
        .iter()
        .filter(|device| device.accessible_from.contains(&ArrowDeviceType::CPU))
    {
        for id in [-1, 0, 1] {
            let exported = Data::new("i", 4)
                .on(device.device_type, id)
                .exported(options());
            let found = exported.tensor().unwrap().device;
            assert_eq!(found.device_type, device.device_type.into());
            assert_eq!(found.device_id, 0, "{}", device.name);
        }
    }
    let exported = Data::new("i", 4)
        .on(ArrowDeviceType::CUDA, 1)
        .exported(options());
    assert_eq!(exported.tensor().unwrap().device.device_id, 1);
}

fn flags(access: Access) -> u64 {
    let exported = Data::new("i", 4).exported(options().access(access));
    // SAFETY: the struct is alive.
    unsafe { (*exported.as_ptr()).flags }
}

#[test]
fn rule_dlpack_managed_copied_flag() {
    let writable = Access::Writable(exclusive());
    assert_eq!((flags(writable), flags(Access::default())), (0, 1));
    let copied = flags(Access::Copied(exclusive()));
    assert_eq!(copied, DLPACK_FLAG_BITMASK_IS_COPIED);
}

#[test]
fn rule_dlpack_managed_versioned_preferred() {
    let data = Data::new("i", 4);
    let exported = data.exported(options());
    // SAFETY: the struct is alive.
    let version = unsafe { (*exported.as_ptr()).version };
    assert!(version.major == 1 && version.minor >= 3);
    // The legacy struct cannot mark memory as read-only; it is for consumers that do not need this.
    let mut array = data.array();
    let refused = to_legacy_dlpack(&data.schema(), &mut array, &options());
    assert_eq!(refused.unwrap_err().code(), EINVAL);
    let writable = options()
        .access(Access::Writable(exclusive()))
        .nulls(Nulls::Ignore);
    let legacy = to_legacy_dlpack(&data.schema(), &mut array, &writable).unwrap();
    assert_eq!(legacy.tensor().unwrap().data.cast_const(), values());
    drop(legacy);
    assert_eq!(data.releases(), 1);
    let expected = |major| is_legacy_expected(Some(DLPackVersion { major, minor: 0 }));
    assert!(is_legacy_expected(None) && expected(0) && !expected(1) && !expected(2));
}

// SPDX-License-Identifier: Apache-2.0

//! The DLPack codes in the public API.

use std::collections::HashSet;

use fletching_abi::{ArrowDeviceType, DLDataTypeCode, DLDeviceType, DATA_TYPE_CODES};

#[test]
fn display_known_code_prints_name() {
    assert_eq!(DLDataTypeCode(4).to_string(), "bfloat");
    for entry in DATA_TYPE_CODES {
        assert_eq!(entry.code.to_string(), entry.name);
        assert_eq!(entry.code.info(), Some(entry));
    }
}

#[test]
fn display_unknown_code_prints_number() {
    assert_eq!(DLDataTypeCode(99).to_string(), "unknown(99)");
    assert_eq!(DLDataTypeCode(99).info(), None);
}

#[test]
fn code_names_and_numbers_are_unique() {
    let names: HashSet<_> = DATA_TYPE_CODES.iter().map(|entry| entry.name).collect();
    assert_eq!(names.len(), DATA_TYPE_CODES.len());
    assert!(DATA_TYPE_CODES
        .windows(2)
        .all(|pair| pair[0].code.0 < pair[1].code.0));
}

#[test]
fn device_type_numbers_match_between_arrow_and_dlpack() {
    for number in [2, 21, -1, i32::MIN] {
        let device = DLDeviceType(number);
        assert_eq!(ArrowDeviceType::from(device), ArrowDeviceType(number));
        assert_eq!(DLDeviceType::from(ArrowDeviceType(number)), device);
        assert_eq!(device.to_string(), ArrowDeviceType(number).to_string());
    }
}

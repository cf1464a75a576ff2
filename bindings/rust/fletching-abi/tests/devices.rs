// SPDX-License-Identifier: Apache-2.0

//! The device types in the public API.

use std::collections::HashSet;

use fletching_abi::{ArrowDeviceType, BufferPointer, EventPointer, DEVICES};

#[test]
fn display_known_device_prints_name() {
    assert_eq!(ArrowDeviceType(3).to_string(), "cuda_host");
    for device in DEVICES {
        assert_eq!(device.device_type.to_string(), device.name);
        assert_eq!(device.device_type.info(), Some(device));
    }
}

#[test]
fn display_unknown_device_prints_number() {
    for number in [9999, 0, -1, i32::MAX, i32::MIN] {
        let device = ArrowDeviceType(number);
        assert_eq!(device.to_string(), format!("unknown({number})"));
        assert_eq!(device.info(), None);
    }
}

#[test]
fn display_reserved_number_prints_unreleased_name() {
    let device = ArrowDeviceType(20);
    assert_eq!(device.to_string(), "unreleased(tpu_host, 20)");
    assert_eq!(device.info(), None);
    let code = fletching_abi::DLDataTypeCode(18);
    assert_eq!(code.to_string(), "unreleased(bcomplex, 18)");
}

#[test]
fn device_names_and_numbers_are_unique() {
    let names: HashSet<_> = DEVICES.iter().map(|device| device.name).collect();
    let dlpack: HashSet<_> = DEVICES.iter().map(|device| device.dlpack_name).collect();
    assert_eq!(names.len(), DEVICES.len());
    assert_eq!(dlpack.len(), DEVICES.len());
    assert!(DEVICES
        .windows(2)
        .all(|pair| pair[0].device_type.0 < pair[1].device_type.0));
}

#[test]
fn buffer_pointer_kind_matches_device() {
    let pointer = |device: ArrowDeviceType| device.info().unwrap().buffer_pointer;
    assert_eq!(pointer(ArrowDeviceType::CPU), BufferPointer::HostAddress);
    assert_eq!(pointer(ArrowDeviceType::CUDA), BufferPointer::DeviceAddress);
    assert_eq!(pointer(ArrowDeviceType::OPENCL), BufferPointer::Handle);
}

#[test]
fn event_type_is_set_for_typed_event_pointers() {
    for device in DEVICES {
        let leads = matches!(
            device.event_pointer,
            EventPointer::AddressOfHandle | EventPointer::Object
        );
        assert_eq!(device.event_type.is_some(), leads, "{}", device.name);
    }
}

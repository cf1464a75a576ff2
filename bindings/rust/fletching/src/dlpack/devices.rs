// SPDX-License-Identifier: Apache-2.0

//! The device numbers of DLPack and Arrow, and the kinds of their pointers.

use fletching_abi::{ArrowDeviceType, BufferPointer, DLDevice};

use crate::error::Error;

/// Whether this process can read the memory when no work on it is pending.
pub(super) fn is_host_readable(device_type: ArrowDeviceType) -> bool {
    let info = device_type.info();
    info.is_some_and(|info| info.accessible_from.contains(&ArrowDeviceType::CPU))
}

/// Whether `pointer + bytes` is a valid address, unlike for a handle.
pub(super) fn is_address(device_type: ArrowDeviceType) -> bool {
    use BufferPointer::{DeviceAddress, HostAddress, SharedAddress};
    let pointer = device_type.info().map(|info| info.buffer_pointer);
    matches!(pointer, Some(HostAddress | DeviceAddress | SharedAddress))
}

/// The DLPack device of an Arrow device. For host-readable memory (CPU, pinned, managed), the id is
/// 0 in DLPack and any number in Arrow. Unknown device types are passed through.
///
/// Errors: ERANGE if the id does not fit into 32 bits.
pub fn dlpack_device(device_type: ArrowDeviceType, device_id: i64) -> Result<DLDevice, Error> {
    let device_id = match i32::try_from(device_id) {
        _ if is_host_readable(device_type) => 0,
        Ok(device_id) => device_id,
        Err(_) => bail!(
            ERANGE,
            "ArrowDeviceArray.device_id: out of range for DLPack: expected an int32, got {device_id}"
        ),
    };
    Ok(DLDevice {
        device_type: device_type.into(),
        device_id,
    })
}

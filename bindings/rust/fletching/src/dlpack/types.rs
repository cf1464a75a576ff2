// SPDX-License-Identifier: Apache-2.0

//! Which Arrow types are DLPack types, and which devices have which numbers.

use std::ffi::CStr;

use fletching_abi::{ArrowDeviceType, BufferPointer, DLDataType, DLDataTypeCode as Code, DLDevice};

use crate::error::{printable, Error};

/// Types that both have.
const PLAIN: [(&str, Code, u8); 11] = [
    ("c", Code::INT, 8),
    ("s", Code::INT, 16),
    ("i", Code::INT, 32),
    ("l", Code::INT, 64),
    ("C", Code::UINT, 8),
    ("S", Code::UINT, 16),
    ("I", Code::UINT, 32),
    ("L", Code::UINT, 64),
    ("e", Code::FLOAT, 16),
    ("f", Code::FLOAT, 32),
    ("g", Code::FLOAT, 64),
];

/// What a format string is in DLPack.
pub(super) enum Format {
    /// A fixed-size list.
    List(i64),
    /// Values, and how many of them an element has in one more dimension.
    Values(DLDataType, Option<i64>),
}

/// Errors: EINVAL for what is not a format, ENOTSUP for one that DLPack has not.
pub(super) fn read_format(format: &CStr, as_storage: bool) -> Result<Format, Error> {
    const TIME: &str = "DLPack has no times, so the unit would be lost";
    const DECIMAL: &str = "DLPack has no decimals, so the scale would be lost";
    const BINARY: &str = "DLPack has no binary values, only bytes";
    let text = printable(format.to_bytes());
    let number = |text: &str| text.parse::<i32>().ok();
    let size = |text: &str| match number(text).filter(|size| *size >= 0) {
        Some(size) => Ok(i64::from(size)),
        None => bail!(
            EINVAL,
            "ArrowSchema.format: malformed size: expected 0 or more, got '{text}'"
        ),
    };
    let values = |code, bits, repeat| {
        let lanes = 1;
        Ok(Format::Values(DLDataType { code, bits, lanes }, repeat))
    };
    if let Some((_, code, bits)) = PLAIN.iter().find(|row| row.0 == text) {
        return values(*code, *bits, None);
    }
    let (kind, rest) = match text.split_once(':') {
        Some((kind, rest)) => (kind, Some(rest)),
        None => (&text[..], None),
    };
    let digits = rest
        .filter(|_| kind == "d")
        .map(|rest| rest.split(',').map(number).collect());
    let digits: Option<Vec<i32>> = digits.flatten();
    let (code, bits, repeat, lost) = match (kind, rest, digits.as_deref()) {
        ("tdD" | "tts" | "ttm" | "tiM", None, _) => (Code::INT, 32, None, TIME),
        ("tdm" | "ttu" | "ttn" | "tDs" | "tDm" | "tDu" | "tDn", None, _)
        | ("tss" | "tsm" | "tsu" | "tsn", Some(_), _) => (Code::INT, 64, None, TIME),
        (_, _, Some([1..=9, _, 32])) => (Code::INT, 32, None, DECIMAL),
        (_, _, Some([1..=18, _, 64])) => (Code::INT, 64, None, DECIMAL),
        ("w", Some(rest), _) => (Code::UINT, 8, Some(size(rest)?), BINARY),
        ("+w", Some(rest), _) => return Ok(Format::List(size(rest)?)),
        _ => {
            let why = match (kind, rest, digits.as_deref()) {
                ("b", None, _) => {
                    "Arrow's booleans are bits and DLPack's are bytes; hint: convert to arrow.bool8"
                }
                ("tiD" | "tin", None, _) => "a value has several parts; hint: export each part",
                ("+s", None, _) => "a struct has columns; hint: export each column",
                (_, _, Some([1..=38, _] | [1..=38, _, 128] | [1..=76, _, 256])) => {
                    "DLPack has no integer of this width"
                }
                ("n" | "z" | "Z" | "vz" | "u" | "U" | "vu" | "+l" | "+L" | "+vl", None, _)
                | ("+vL" | "+m" | "+r", None, _)
                | ("+ud" | "+us", Some(_), _) => "the values are not contiguous in one buffer",
                _ => bail!(
                    EINVAL,
                    "ArrowSchema.format: unknown: expected a format string of the C Data Interface, \
                     got '{text}'"
                ),
            };
            bail!(
                ENOTSUP,
                "ArrowSchema.format: no DLPack type for '{text}': {why}"
            )
        }
    };
    ensure!(
        as_storage,
        ENOTSUP,
        "ArrowSchema.format: no DLPack type for '{text}': {lost}; hint: pass as_storage to export \
         the storage"
    );
    values(code, bits, repeat)
}

/// How an element of a DLPack type looks in Arrow.
pub(super) struct ArrowType {
    pub(super) format: &'static str,
    pub(super) is_bool: bool,
    pub(super) item_bytes: i64,
    /// Values per element, in one more dimension.
    pub(super) repeat: i64,
}

fn format_of(code: Code, bits: u8) -> Option<&'static str> {
    let found = PLAIN.iter().find(|row| (row.1, row.2) == (code, bits));
    found.map(|row| row.0)
}

/// `is_padded`: each element of a type narrower than a byte has a byte of its own.
pub(super) fn arrow_type(
    dtype: DLDataType,
    as_storage: bool,
    is_padded: bool,
) -> Result<ArrowType, Error> {
    let DLDataType { code, bits, lanes } = dtype;
    let is_bool = (code, bits) == (Code::BOOL, 8);
    let plain = format_of(code, bits).or(is_bool.then_some("c"));
    let (storage, parts) = match (code, bits) {
        (Code::COMPLEX, _) => (format_of(Code::FLOAT, bits / 2), 2),
        (Code::BFLOAT, 16) => (Some("S"), 1),
        (Code(n), 8) if (Code::FLOAT8_E3M4.0..=Code::FLOAT8_E8M0FNU.0).contains(&n) => {
            (Some("C"), 1)
        }
        _ => (None, 1),
    };
    let why = match plain.or(storage) {
        _ if lanes == 0 => "expected 1 lane or more",
        _ if bits == 0 => "expected elements of whole bytes",
        _ if bits % 8 != 0 && is_padded => "expected elements of whole bytes, got padded ones",
        _ if bits % 8 != 0 => "expected elements of whole bytes, got packed ones",
        None => "expected a type that Arrow can store",
        Some(_) if plain.is_none() && !as_storage => {
            "expected a plain type; hint: pass as_storage to import the storage"
        }
        Some(format) => {
            return Ok(ArrowType {
                format,
                is_bool,
                item_bytes: i64::from(bits / 8) / parts,
                repeat: parts * i64::from(lanes),
            })
        }
    };
    bail!(
        ENOTSUP,
        "DLTensor.dtype: no Arrow type for {code} of {bits} bits, lanes {lanes}: {why}"
    )
}

// --- Devices ------------------------------------------------------------------------------------

/// The promise that the host may read the memory behind structs, as safe code cannot know it.
#[derive(Clone, Copy, Debug)]
pub struct HostReadable(());

impl HostReadable {
    /// # Safety
    ///
    /// Of every array and tensor that this is used with, and that is on a device whose memory the
    /// host can read, the memory is as the struct says: as many bits, or elements, as it counts.
    /// Nobody changes it during the call; work on it that has no `sync_event` is done.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// The promise that memory is shared with no other code, as safe code cannot know it.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive(());

impl Exclusive {
    /// # Safety
    ///
    /// Until the tensor of an export with this is deleted, only its consumer reads or writes the
    /// memory: no clone of the owner, no view and no other tensor shows it.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// The promise that a consumer waits for an event, as safe code cannot know it.
#[derive(Clone, Copy, Debug)]
pub struct EventHandled(());

impl EventHandled {
    /// # Safety
    ///
    /// The consumer of a tensor that is exported with this reads the memory after `sync_event` has
    /// happened: it has, or the work of the consumer is ordered behind it.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

/// Whether this process can read the memory, once no work on it is pending.
pub(super) fn is_host_readable(device_type: ArrowDeviceType) -> bool {
    let info = device_type.info();
    info.is_some_and(|info| info.accessible_from.contains(&ArrowDeviceType::CPU))
}

/// Whether `pointer + bytes` is an address again, as it is not with a handle.
pub(super) fn is_address(device_type: ArrowDeviceType) -> bool {
    use BufferPointer::{DeviceAddress, HostAddress, SharedAddress};
    let pointer = device_type.info().map(|info| info.buffer_pointer);
    matches!(pointer, Some(HostAddress | DeviceAddress | SharedAddress))
}

/// The DLPack device of an Arrow device. The id of memory that the host reads, the CPU's, pinned
/// and managed, is 0 in DLPack whatever it is in Arrow; an unknown device type passes through.
///
/// Errors: ERANGE when an id does not fit into DLPack's 32 bits.
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

// SPDX-License-Identifier: Apache-2.0

//! Which buffers a format has, and how large they are.

use std::ffi::c_void;

use fletching_abi::ArrowArray;

use crate::error::Error;

/// What a buffer holds.
#[derive(Clone, Copy)]
enum Buffer {
    /// Values of so many bits.
    Values(i64),
    /// One offset more than there are values, of so many bytes.
    Offsets(i64),
    /// As many bytes as the last offset of the buffer before says.
    Data,
    /// The data buffers of a view array, and behind them their sizes.
    Viewed,
}

const BITMAP: Buffer = Buffer::Values(1);

/// The size of every buffer of the array, in bytes.
///
/// # Safety
///
/// The array has as many buffers as it says, each as long as its type and its length say.
pub(crate) unsafe fn buffer_sizes(format: &str, array: &ArrowArray) -> Result<Vec<i64>, Error> {
    let buffers = buffers_of(format)?;
    check_number(&buffers, format, array.n_buffers)?;
    let too_long = || Error::invalid(format!("array.length is {}", array.length));
    let end = array
        .offset
        .checked_add(array.length)
        .ok_or_else(too_long)?;
    let mut last = 0;
    let mut sizes = Vec::new();
    for buffer in &buffers {
        match *buffer {
            Buffer::Values(bits) => {
                let bits = end.checked_mul(bits).ok_or_else(too_long)?;
                sizes.push(bits.checked_add(7).ok_or_else(too_long)? / 8);
            }
            Buffer::Offsets(width) => {
                let size = end.checked_add(1).and_then(|n| n.checked_mul(width));
                sizes.push(size.ok_or_else(too_long)?);
                // SAFETY: there is such a buffer, and it has more than `end` entries.
                last = unsafe { last_offset(*array.buffers.add(1), width, end)? };
            }
            Buffer::Data => sizes.push(last),
            // SAFETY: a view array has at least three buffers, and the last holds the sizes.
            Buffer::Viewed => sizes.extend(unsafe { viewed_sizes(array)? }),
        }
    }
    Ok(sizes)
}

/// The buffers of a type.
fn buffers_of(format: &str) -> Result<Vec<Buffer>, Error> {
    use Buffer::{Data, Offsets, Values, Viewed};
    Ok(match format {
        "n" | "+r" => vec![],
        "+s" => vec![BITMAP],
        "+l" | "+m" => vec![BITMAP, Offsets(4)],
        "+L" => vec![BITMAP, Offsets(8)],
        "+vl" => vec![BITMAP, Values(32), Values(32)],
        "+vL" => vec![BITMAP, Values(64), Values(64)],
        "u" | "z" => vec![BITMAP, Offsets(4), Data],
        "U" | "Z" => vec![BITMAP, Offsets(8), Data],
        "vu" | "vz" => vec![BITMAP, Values(128), Viewed],
        _ if format.starts_with("+w:") => vec![BITMAP],
        _ if format.starts_with("+us:") => vec![Values(8)],
        _ if format.starts_with("+ud:") => vec![Values(8), Values(32)],
        _ => match value_bits(format) {
            Some(bits) => vec![BITMAP, Values(bits)],
            None => {
                let problem = format!("no description for the format '{format}'");
                return Err(Error::new(libc::ENOTSUP, problem));
            }
        },
    })
}

/// Of the types with one buffer of values behind the validity bitmap.
fn value_bits(format: &str) -> Option<i64> {
    if let Some(width) = format.strip_prefix("w:") {
        return Some(8 * i64::from(width.parse::<u32>().ok()?));
    }
    if let Some(parameters) = format.strip_prefix("d:") {
        return match parameters.splitn(3, ',').nth(2) {
            Some(bits) => Some(bits.parse::<u32>().ok()?.into()),
            None => Some(128),
        };
    }
    if let Some((unit, _zone)) = format.split_once(':') {
        return matches!(unit, "tss" | "tsm" | "tsu" | "tsn").then_some(64);
    }
    Some(match format {
        "b" => 1,
        "c" | "C" => 8,
        "s" | "S" | "e" => 16,
        "i" | "I" | "f" | "tdD" | "tts" | "ttm" | "tiM" => 32,
        "l" | "L" | "g" | "tdm" | "ttu" | "ttn" | "tiD" => 64,
        "tDs" | "tDm" | "tDu" | "tDn" => 64,
        "tin" => 128,
        _ => return None,
    })
}

fn check_number(buffers: &[Buffer], format: &str, found: i64) -> Result<(), Error> {
    let count = buffers.len() as i64;
    let or_more = match buffers.last() {
        Some(Buffer::Viewed) if found >= count => return Ok(()),
        Some(Buffer::Viewed) => " or more",
        _ if found == count => return Ok(()),
        _ => "",
    };
    let problem = format!("array.n_buffers is {found}, format '{format}' has {count}{or_more}");
    Err(Error::invalid(problem))
}

unsafe fn last_offset(offsets: *const c_void, width: i64, index: i64) -> Result<i64, Error> {
    if offsets.is_null() {
        return Ok(0);
    }
    let index = index as usize;
    // SAFETY: the buffer has more than `index` entries.
    let offset = unsafe {
        match width {
            4 => offsets.cast::<i32>().add(index).read_unaligned().into(),
            _ => offsets.cast::<i64>().add(index).read_unaligned(),
        }
    };
    if offset < 0 {
        return Err(Error::invalid(format!("the last offset is {offset}")));
    }
    Ok(offset)
}

unsafe fn viewed_sizes(array: &ArrowArray) -> Result<Vec<i64>, Error> {
    let count = (array.n_buffers - 3) as usize;
    // SAFETY: the caller's promise.
    let last = unsafe { *array.buffers.add(count + 2) }.cast::<i64>();
    if count > 0 && last.is_null() {
        return Err(Error::invalid("the sizes of the data buffers are NULL"));
    }
    let mut sizes = Vec::new();
    for index in 0..count {
        // SAFETY: the last buffer has one entry for each data buffer.
        let size = unsafe { last.add(index).read_unaligned() };
        if size < 0 {
            let problem = format!("the size of data buffer {index} is {size}");
            return Err(Error::invalid(problem));
        }
        sizes.push(size);
    }
    sizes.push(count as i64 * 8);
    Ok(sizes)
}

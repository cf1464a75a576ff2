// SPDX-License-Identifier: Apache-2.0

//! Adapts arrays that arrow-rs cannot read: aligns buffers, and adds offsets to an array without
//! rows.

use std::ffi::c_void;

use super::arrow_schema::DataType;
use fletching_abi::ArrowArray;

use super::check::{check_array, Kind, Obstacle, Place};
use crate::error::Error;
use crate::owner::Array;

/// The treatment of a buffer whose alignment is too small for arrow-rs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Alignment {
    /// Returns EINVAL, with the buffer and the type in the message.
    #[default]
    Refuse,
    /// Copies the buffer and lists it in [`Converted::copied`](super::Converted::copied).
    Copy,
    /// Passes the buffer to arrow-rs unchanged. arrow-rs copies it or panics, which is returned as
    /// EIO. Offsets and the sizes of view buffers must be aligned, because arrow-rs reads them
    /// before it checks.
    Accept,
}

/// The offset of an array without rows.
static ZERO: u64 = 0;

/// Returns the array in a form that arrow-rs can use, and the places of the buffers that were
/// copied.
///
/// Errors: EINVAL for an array that does not match the type, and for a misaligned buffer.
///
/// # Safety
///
/// The buffers are as large as the type and the length require.
pub(super) unsafe fn prepare(
    array: Array,
    data_type: &DataType,
    alignment: Alignment,
) -> Result<(Array, Vec<String>), Error> {
    let find = |root: *mut ArrowArray| {
        let mut found = Vec::new();
        // SAFETY: guaranteed by the contract of `Owner::from_raw`; the structs are only read.
        unsafe { check_array(root, data_type, &Place::Root, 0, &mut found)? };
        match alignment {
            Alignment::Copy => {}
            Alignment::Accept => found.retain(|place| matches!(place.kind, Kind::Empty { .. })),
            Alignment::Refuse => {
                for place in &found {
                    if let Kind::Misaligned { text, .. } = &place.kind {
                        return Err(Error::invalid(format!(
                            "{text}; hint: pass Alignment::Copy"
                        )));
                    }
                }
            }
        }
        Ok(found)
    };
    if find(std::ptr::from_ref(array.as_raw()).cast_mut())?.is_empty() {
        return Ok((array, Vec::new()));
    }
    let mut view = array.share()?.view()?;
    let (mut copies, mut texts) = (Copies::default(), Vec::new());
    for Obstacle { array, kind } in find(view.as_mut_ptr())? {
        // SAFETY: the view owns its structs exclusively. The caller guarantees that the buffers are
        // valid.
        let list = unsafe {
            let list = (*array).buffers_slice().to_vec();
            let list = match kind {
                Kind::Empty { has_offsets } => {
                    (*array).offset = 0;
                    with(list, 1, has_offsets.then_some((&raw const ZERO).cast()))
                }
                Kind::Misaligned { index, bytes, text } => {
                    let mut copy = vec![0u128; bytes.div_ceil(size_of::<u128>())];
                    let out = copy.as_mut_ptr().cast::<u8>();
                    std::ptr::copy_nonoverlapping(list[index].cast(), out, bytes);
                    let first = copy.as_ptr().cast();
                    copies.buffers.push(copy);
                    texts.push(text);
                    with(list, index, Some(first))
                }
            };
            (*array).buffers = list.as_ptr().cast_mut();
            list
        };
        copies.lists.push(list);
    }
    view.attach(copies)?;
    Ok((view, texts))
}

fn with(
    mut list: Vec<*const c_void>,
    index: usize,
    buffer: Option<*const c_void>,
) -> Vec<*const c_void> {
    if let Some(buffer) = buffer {
        list[index] = buffer;
    }
    list
}

#[derive(Default)]
struct Copies {
    buffers: Vec<Vec<u128>>,
    lists: Vec<Vec<*const c_void>>,
}

// SAFETY: the addresses are only stored.
unsafe impl Send for Copies {}

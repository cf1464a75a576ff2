// SPDX-License-Identifier: Apache-2.0

//! Buffers at addresses that arrow-rs does not take.

use std::ffi::c_void;

use arrow_data::{layout, BufferSpec};
use arrow_schema::DataType;
use fletching_abi::ArrowArray;

use super::convert::Alignment;
use crate::error::Error;
use crate::owner::Array;

/// A buffer that is not aligned.
struct Misaligned {
    array: *mut ArrowArray,
    index: usize,
    bytes: usize,
    /// Where it is and what it needed.
    text: String,
}

/// The array with every buffer where arrow-rs can use it, and where the buffers are that were copied.
///
/// # Safety
///
/// The buffers have the size that the type and the length ask for.
pub(super) unsafe fn align(
    array: Array,
    data_type: &DataType,
    alignment: Alignment,
) -> Result<(Array, Vec<String>), Error> {
    let mut found = Vec::new();
    let root = std::ptr::from_ref(array.as_raw()).cast_mut();
    // SAFETY: see Owner::from_raw; the array is only read.
    unsafe { find(root, data_type, "ArrowArray", &mut found)? };
    match found.first() {
        None => return Ok((array, Vec::new())),
        Some(first) if alignment == Alignment::Refuse => {
            let hint = "hint: pass Alignment::Copy";
            return Err(Error::invalid(format!("{}; {hint}", first.text)));
        }
        Some(_) if alignment == Alignment::Accept => return Ok((array, Vec::new())),
        Some(_) => found.clear(),
    }
    let mut view = array.share()?.view()?;
    let (mut copies, mut texts) = (Copies::default(), Vec::new());
    // SAFETY: the structs of the view are ours alone. The caller vouches for the buffers.
    unsafe {
        find(view.as_mut_ptr(), data_type, "ArrowArray", &mut found)?;
        for place in found {
            let mut list = (*place.array).buffers_slice().to_vec();
            let mut copy = vec![0u128; place.bytes.div_ceil(size_of::<u128>())];
            let out = copy.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(list[place.index].cast(), out, place.bytes);
            list[place.index] = copy.as_ptr().cast();
            (*place.array).buffers = list.as_mut_ptr();
            copies.0.push((copy, list));
            texts.push(place.text);
        }
    }
    view.attach(copies)?;
    Ok((view, texts))
}

/// The copies, and the lists of buffers that point to them.
#[derive(Default)]
struct Copies(Vec<(Vec<u128>, Vec<*const c_void>)>);

// SAFETY: the addresses are only kept.
unsafe impl Send for Copies {}

/// # Safety
///
/// `array` points to a struct as [`Owner::from_raw`](crate::Owner::from_raw) asks for it.
unsafe fn find(
    array: *mut ArrowArray,
    data_type: &DataType,
    path: &str,
    found: &mut Vec<Misaligned>,
) -> Result<(), Error> {
    // SAFETY: the caller vouches for the struct, and so for what is below it.
    let (buffers, children, dictionary, rows) = unsafe {
        let raw = &*array;
        let rows = raw.length.max(0).saturating_add(raw.offset.max(0));
        (
            raw.buffers_slice(),
            raw.children_slice(),
            raw.dictionary,
            rows,
        )
    };
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    let layout = layout(data_type);
    let first = usize::from(layout.can_contain_null_mask);
    let mut check = |index: usize, rows: usize, width: usize, alignment: usize| {
        let address = buffers.get(index).map_or(0, |buffer| buffer.addr());
        if rows > 0 && address % alignment != 0 {
            found.push(Misaligned {
                array,
                index,
                bytes: rows.saturating_mul(width),
                text: format!(
                    "{path}.buffers[{index}]: not aligned for {data_type}: expected a multiple of \
                     {alignment}, got {address:#x}"
                ),
            });
        }
    };
    use DataType as D;
    let has_end = match data_type {
        D::Utf8 | D::LargeUtf8 | D::Binary | D::LargeBinary => rows > 0,
        D::List(_) | D::LargeList(_) | D::Map(..) => rows > 0,
        _ => false,
    };
    for (index, spec) in layout.buffers.iter().enumerate() {
        let rows = rows + usize::from(has_end);
        if let BufferSpec::FixedWidth {
            byte_width,
            alignment,
        } = spec
        {
            check(first + index, rows, *byte_width, *alignment);
        }
    }
    if layout.variadic {
        // arrow-rs counts below 0, and without overflow checks reads as many sizes.
        if buffers.len() < 3 {
            return Err(Error::invalid(format!(
                "{path}.n_buffers: too small for {data_type}: expected at least 3, got {}",
                buffers.len()
            )));
        }
        let last = buffers.len().saturating_sub(1);
        check(
            last,
            last.saturating_sub(2),
            size_of::<i64>(),
            align_of::<i64>(),
        );
    }
    let types: Vec<&DataType> = match data_type {
        D::List(of) | D::LargeList(of) | D::FixedSizeList(of, _) | D::Map(of, _) => {
            vec![of.data_type()]
        }
        D::ListView(of) | D::LargeListView(of) => vec![of.data_type()],
        D::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        D::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        D::RunEndEncoded(ends, values) => vec![ends.data_type(), values.data_type()],
        _ => Vec::new(),
    };
    if types.len() != children.len() {
        return Err(Error::invalid(format!(
            "{path}.n_children: wrong for {data_type}: expected {}, got {}",
            types.len(),
            children.len()
        )));
    }
    let values = match data_type {
        D::Dictionary(_, values) => Some((dictionary, &**values, format!("{path}.dictionary"))),
        _ => None,
    };
    let below = children.iter().zip(types).enumerate();
    let below = below.map(|(i, (child, of))| (*child, of, format!("{path}.children[{i}]")));
    for (child, of, path) in below.chain(values) {
        if child.is_null() {
            return Err(Error::invalid(format!("{path}: NULL: expected an array")));
        }
        // SAFETY: the caller vouches for what is below the struct.
        unsafe { find(child, of, &path, found)? };
    }
    Ok(())
}

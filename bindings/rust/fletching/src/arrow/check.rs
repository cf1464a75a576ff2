// SPDX-License-Identifier: Apache-2.0

//! Checks an array against its type before arrow-rs reads it, with the rules of `check_array` in
//! the C++ library. Reads the structs, but no buffers.

use std::fmt;

use super::arrow_data::{layout, BufferSpec, DataTypeLayout};
use super::arrow_schema::{DataType, UnionMode};
use fletching_abi::ArrowArray;

use super::field::fields_below;
use crate::error::Error;
use crate::tree::MAX_STRUCTS;

/// The place of an array in the tree, such as "ArrowArray.children[0].dictionary".
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Root,
    Child(&'a Place<'a>, usize),
    Dictionary(&'a Place<'a>),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("ArrowArray"),
            Self::Child(parent, index) => write!(f, "{parent}.children[{index}]"),
            Self::Dictionary(parent) => write!(f, "{parent}.dictionary"),
        }
    }
}

/// A property of a valid array that arrow-rs rejects or handles incorrectly.
pub(super) struct Obstacle {
    pub array: *mut ArrowArray,
    pub kind: Kind,
}

pub(super) enum Kind {
    /// An array without rows: arrow-rs still reads its offsets, and needs the buffers up to the
    /// array's offset.
    Empty { has_offsets: bool },
    /// A buffer that is not aligned for the Rust type.
    Misaligned {
        index: usize,
        bytes: usize,
        /// The place of the buffer and the required alignment.
        text: String,
    },
}

/// An array, its type, and the layout of the type in arrow-rs.
struct Node<'a> {
    raw: &'a ArrowArray,
    data_type: &'a DataType,
    layout: DataTypeLayout,
    place: &'a Place<'a>,
}

/// Checks the array and its descendants. `least` is the minimum length that the parent requires.
///
/// Errors: EINVAL with the place and the rule.
///
/// # Safety
///
/// `array` points to a struct that meets the requirements of
/// [`Owner::from_raw`](crate::Owner::from_raw), and no descendant is released.
pub(super) unsafe fn check_array(
    array: *mut ArrowArray,
    data_type: &DataType,
    place: &Place<'_>,
    least: usize,
    found: &mut Vec<Obstacle>,
) -> Result<(), Error> {
    let node = Node {
        // SAFETY: the caller guarantees that the struct is valid.
        raw: unsafe { &*array },
        data_type,
        layout: layout(data_type),
        place,
    };
    let rows = node.rows(least)?;
    node.check_n_buffers()?;
    // SAFETY: the caller guarantees that the list of buffers is valid; its length matches the type.
    let buffers = unsafe { node.raw.buffers_slice() };
    node.check_buffers(array, buffers, rows, found)?;
    // SAFETY: the caller guarantees that the descendants are valid.
    unsafe {
        node.check_children(rows, found)?;
        node.check_dictionary(found)
    }
}

impl Node<'_> {
    #[cold]
    fn wrong(&self, rule: &str, what: fmt::Arguments<'_>) -> Error {
        Error::broken_rule(rule, &format!("{}{what}", self.place))
    }

    #[cold]
    fn too_large(&self) -> Error {
        let (offset, length) = (self.raw.offset, self.raw.length);
        self.wrong(
            "array.buffers-large-enough",
            format_args!(
                ": too large: expected offset and length that memory can hold, got {offset} and \
                 {length}"
            ),
        )
    }

    fn rows(&self, least: usize) -> Result<usize, Error> {
        let (length, nulls) = (self.raw.length, self.raw.null_count);
        let size = |rule, name, value: i64| {
            let text = format_args!(".{name}: negative: expected 0 or more, got {value}");
            match value {
                0.. => usize::try_from(value).map_err(|_| self.too_large()),
                _ => Err(self.wrong(rule, text)),
            }
        };
        let count = size("array.length-set", "length", length)?;
        let offset = size("array.offset-not-negative", "offset", self.raw.offset)?;
        if count < least {
            return Err(self.wrong(
                "array.buffers-large-enough",
                format_args!(
                    ".length: too small for the parent: expected at least {least}, got {length}"
                ),
            ));
        }
        let most = match self.data_type {
            DataType::Union(..) | DataType::RunEndEncoded(..) => 0,
            _ => length,
        };
        if !(-1..=most).contains(&nulls) {
            return Err(self.wrong(
                match most < length {
                    true => "array.null-count-correct",
                    false => "array.null-count-range",
                },
                format_args!(
                    ".null_count: out of range for {}: expected -1 to {most}, got {nulls}",
                    self.data_type
                ),
            ));
        }
        offset.checked_add(count).ok_or_else(|| self.too_large())
    }

    /// The number of buffers that every array of the type has. A view type has additional buffers,
    /// followed by their sizes.
    fn fixed(&self) -> usize {
        usize::from(self.layout.can_contain_null_mask) + self.layout.buffers.len()
    }

    fn check_n_buffers(&self) -> Result<(), Error> {
        let (fixed, count) = (self.fixed() as i64, self.raw.n_buffers);
        let fits = match self.layout.variadic {
            true => (fixed + 1..=MAX_STRUCTS).contains(&count),
            false => count == fixed,
        };
        if !fits {
            let expected = match self.layout.variadic {
                true => format!("at least {}", fixed + 1),
                false => fixed.to_string(),
            };
            let hint = match self.data_type {
                DataType::Union(..) if count == fixed + 1 => "; union layout before Arrow 1.0",
                _ => "",
            };
            let rule = match self.layout.variadic && count == fixed {
                true => "array.view-sizes-buffer",
                false => "array.n-buffers-of-type",
            };
            return Err(self.wrong(
                rule,
                format_args!(
                    ".n_buffers: wrong for {}: expected {expected}, got {count}{hint}",
                    self.data_type
                ),
            ));
        }
        if count > 0 && self.raw.buffers.is_null() {
            return Err(self.wrong(
                "array.buffers-count",
                format_args!(".buffers: NULL: expected a list of {count}"),
            ));
        }
        Ok(())
    }

    fn check_buffers(
        &self,
        array: *mut ArrowArray,
        buffers: &[*const std::ffi::c_void],
        rows: usize,
        found: &mut Vec<Obstacle>,
    ) -> Result<(), Error> {
        let first = usize::from(self.layout.can_contain_null_mask);
        let is_empty = self.raw.length == 0;
        let has_offsets = has_offsets(self.data_type);
        let bits = |width: usize| {
            let bits = rows.checked_add(1)?.checked_mul(width)?.checked_mul(8);
            bits.filter(|bits| *bits <= isize::MAX as usize)
        };
        let null = |index: usize| {
            let (length, nulls) = (self.raw.length, self.raw.null_count);
            self.wrong(
                "array.buffers-null-only-when",
                format_args!(
                    ".buffers[{index}]: NULL: expected an address for length {length} and \
                     null_count {nulls}"
                ),
            )
        };
        let misaligned =
            |found: &mut Vec<_>, index: usize, rows: usize, width: usize, alignment| {
                let address = buffers[index].addr();
                if rows > 0 && address % alignment != 0 {
                    let (place, data_type) = (self.place, self.data_type);
                    let kind = Kind::Misaligned {
                        index,
                        bytes: rows.saturating_mul(width),
                        text: format!(
                            "{place}.buffers[{index}]: not aligned for {data_type}: expected a \
                         multiple of {alignment}, got {address:#x}"
                        ),
                    };
                    found.push(Obstacle { array, kind });
                }
            };
        if self.layout.variadic {
            let last = buffers.len() - 1;
            let sizes = last - self.fixed();
            if sizes > 0 && buffers[last].is_null() {
                return Err(null(last));
            }
            misaligned(found, last, sizes, size_of::<i64>(), align_of::<i64>());
        }
        let lacks_values = || {
            let values = &buffers[first..self.fixed()];
            values.iter().any(|buffer| buffer.is_null())
        };
        if is_empty && (has_offsets || (rows > 0 && lacks_values())) {
            let kind = Kind::Empty { has_offsets };
            found.push(Obstacle { array, kind });
            return Ok(());
        }
        // A bitmap needs fewer bytes than there are rows.
        bits(1).ok_or_else(|| self.too_large())?;
        if first == 1 && buffers[0].is_null() && self.raw.null_count > 0 && !is_empty {
            return Err(null(0));
        }
        for (index, spec) in self.layout.buffers.iter().enumerate() {
            let (width, alignment) = match spec {
                BufferSpec::FixedWidth {
                    byte_width,
                    alignment,
                } => (*byte_width, *alignment),
                BufferSpec::BitMap => (1, 1),
                _ => continue,
            };
            bits(width).ok_or_else(|| self.too_large())?;
            let index = first + index;
            if buffers[index].is_null() && width > 0 && !is_empty {
                return Err(null(index));
            }
            misaligned(
                found,
                index,
                rows + usize::from(has_offsets),
                width,
                alignment,
            );
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`check_array`].
    unsafe fn check_children(&self, rows: usize, found: &mut Vec<Obstacle>) -> Result<(), Error> {
        let fields = fields_below(self.data_type);
        if self.raw.n_children != fields.len() as i64 {
            return Err(self.wrong(
                "array.n-children-of-type",
                format_args!(
                    ".n_children: wrong for {}: expected {}, got {}",
                    self.data_type,
                    fields.len(),
                    self.raw.n_children
                ),
            ));
        }
        let least = match self.data_type {
            DataType::Struct(_) | DataType::Union(_, UnionMode::Sparse) => Some(rows),
            DataType::FixedSizeList(_, size) => rows.checked_mul(*size as usize),
            DataType::RunEndEncoded(..) => Some(rows.min(1)),
            _ => Some(0),
        };
        let least = least.ok_or_else(|| self.too_large())?;
        // SAFETY: the caller guarantees that the descendants are valid.
        let children = unsafe { self.raw.children_slice() };
        if children.len() != fields.len() {
            return Err(self.wrong(
                "array.children-null-only-when-none",
                format_args!(".children: NULL: expected a list of {}", fields.len()),
            ));
        }
        for (index, (child, field)) in children.iter().zip(fields).enumerate() {
            let place = Place::Child(self.place, index);
            // SAFETY: the caller guarantees that the descendants are valid.
            unsafe { check_array(*child, field.data_type(), &place, least, found)? };
        }
        // SAFETY: the children were checked.
        unsafe { self.check_nulls_below(children) }
    }

    /// # Safety
    ///
    /// `children` were checked.
    unsafe fn check_nulls_below(&self, children: &[*mut ArrowArray]) -> Result<(), Error> {
        let first = Place::Child(self.place, 0);
        let no_nulls = |rule, array: &ArrowArray, place: &Place<'_>| match array.null_count {
            ..=0 => Ok(()),
            got => {
                let what = format!("{place}.null_count: expected no nulls, got {got}");
                Err(Error::broken_rule(rule, &what))
            }
        };
        // SAFETY: the caller guarantees that the children were checked: a map has its entries, and
        // a run-end encoded array its run ends and values.
        let below = unsafe {
            match self.data_type {
                DataType::Map(..) => {
                    let entries = &*children[0];
                    no_nulls("format.map-child", entries, &first)?;
                    let keys = &**entries.children;
                    return no_nulls("format.map-child", keys, &Place::Child(&first, 0));
                }
                DataType::RunEndEncoded(..) => &*children[0],
                _ => return Ok(()),
            }
        };
        no_nulls("format.run-end-children", below, &first)?;
        // SAFETY: as above.
        let values = unsafe { (*children[1]).length };
        if below.length > values {
            let place = Place::Child(self.place, 1);
            return Err(Error::broken_rule(
                "array.buffers-large-enough",
                &format!(
                    "{place}.length: less than the run ends' length: expected at least {}, got \
                     {values}",
                    below.length
                ),
            ));
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`check_array`].
    unsafe fn check_dictionary(&self, found: &mut Vec<Obstacle>) -> Result<(), Error> {
        let dictionary = self.raw.dictionary;
        match self.data_type {
            DataType::Dictionary(_, values) if !dictionary.is_null() => {
                let place = Place::Dictionary(self.place);
                // SAFETY: the caller guarantees that the descendants are valid.
                unsafe { check_array(dictionary, values, &place, 0, found) }
            }
            DataType::Dictionary(..) => Err(self.wrong(
                "array.dictionary-when-encoded",
                format_args!(".dictionary: NULL: expected one, as in the schema"),
            )),
            _ if !dictionary.is_null() => Err(self.wrong(
                "array.dictionary-null-otherwise",
                format_args!(".dictionary: not NULL: expected none, as in the schema"),
            )),
            _ => Ok(()),
        }
    }
}

fn has_offsets(data_type: &DataType) -> bool {
    use DataType as D;
    matches!(
        data_type,
        D::Utf8
            | D::LargeUtf8
            | D::Binary
            | D::LargeBinary
            | D::List(_)
            | D::LargeList(_)
            | D::Map(..)
    )
}

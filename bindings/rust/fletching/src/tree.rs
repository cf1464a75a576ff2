// SPDX-License-Identifier: Apache-2.0

//! Limits for the depth and size of a schema or an array, and the walk through a foreign one.

use crate::error::Error;
use crate::raw::Base;

/// The maximum number of levels. They are walked recursively.
pub(crate) const MAX_DEPTH: usize = 256;

/// The maximum number of structs in one tree. No table has that many columns; an uninitialized
/// count or a tree with a cycle exceeds it.
pub(crate) const MAX_STRUCTS: i64 = 1 << 22;

/// Returns the children of a struct that is not released. Empty if the list is NULL, or if the
/// count is negative or above [`MAX_STRUCTS`].
///
/// # Safety
///
/// `parent` meets the requirements of [`Owner::from_raw`](crate::Owner::from_raw).
pub(crate) unsafe fn children_of<B: Base>(parent: &B) -> &[*mut B] {
    let (list, count) = parent.children();
    if list.is_null() || !(1..=MAX_STRUCTS).contains(&count) {
        return &[];
    }
    // SAFETY: the caller guarantees that the list has `count` entries.
    unsafe { std::slice::from_raw_parts(list, count as usize) }
}

/// Calls `visit` for `root` and each descendant: a parent before its children, the children in
/// order, then the dictionary. Does not descend into a released struct.
///
/// Errors: EINVAL, prefixed with `operation`, if `visit` returns an error, if a struct is NULL, if
/// the number of children is out of range or their list is NULL, and if there are too many structs
/// or levels.
///
/// # Safety
///
/// `root` points to a struct that meets the requirements of
/// [`Owner::from_raw`](crate::Owner::from_raw).
pub(crate) unsafe fn walk<B: Base>(
    operation: &str,
    root: *mut B,
    visit: &mut dyn FnMut(*mut B) -> Result<(), &'static str>,
) -> Result<(), Error> {
    // SAFETY: guaranteed by the caller.
    unsafe { go(root, 0, &mut 0, visit) }
        .map_err(|why| Error::invalid(format!("{operation}: the struct or a descendant {why}")))
}

unsafe fn go<B: Base>(
    node: *mut B,
    depth: usize,
    structs: &mut i64,
    visit: &mut dyn FnMut(*mut B) -> Result<(), &'static str>,
) -> Result<(), String> {
    if node.is_null() {
        return Err("is NULL".into());
    }
    if depth == MAX_DEPTH {
        return Err(format!(
            "is nested too deep: expected at most {MAX_DEPTH} levels"
        ));
    }
    *structs += 1;
    if *structs > MAX_STRUCTS {
        return Err(format!(
            "is one of too many: expected at most {MAX_STRUCTS}"
        ));
    }
    visit(node)?;
    // SAFETY: the caller guarantees that the struct and its descendants are valid.
    unsafe {
        if (*node).is_released() {
            return Ok(());
        }
        let (list, count) = (*node).children();
        if !(0..=MAX_STRUCTS).contains(&count) {
            return Err(format!(
                "has n_children out of range: expected 0 to {MAX_STRUCTS}, got {count}"
            ));
        }
        if count > 0 && list.is_null() {
            return Err(format!("has children NULL: expected a list of {count}"));
        }
        for index in 0..count as usize {
            go(*list.add(index), depth + 1, structs, visit)?;
        }
        let dictionary = (*node).dictionary();
        if dictionary.is_null() {
            return Ok(());
        }
        go(dictionary, depth + 1, structs, visit)
    }
}

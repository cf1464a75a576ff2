// SPDX-License-Identifier: Apache-2.0

//! How deep and how large a schema or an array may be, and the walk through a foreign one.

use crate::error::Error;
use crate::raw::Base;

/// How many levels of structs there may be: they are walked by recursion.
pub(crate) const MAX_DEPTH: usize = 256;

/// How many structs there may be in one tree. No table has as many columns; a count that was never
/// set does, and so do structs that are listed below themselves.
pub(crate) const MAX_STRUCTS: i64 = 1 << 22;

/// The children of a struct that is not released. None for a list that is NULL, and for a count
/// that is negative or above [`MAX_STRUCTS`].
///
/// # Safety
///
/// `parent` is as [`Owner::from_raw`](crate::Owner::from_raw) asks for it.
pub(crate) unsafe fn children_of<B: Base>(parent: &B) -> &[*mut B] {
    let (list, count) = parent.children();
    if list.is_null() || !(1..=MAX_STRUCTS).contains(&count) {
        return &[];
    }
    // SAFETY: the caller vouches for the list.
    unsafe { std::slice::from_raw_parts(list, count as usize) }
}

/// Calls `visit` for `root` and for every struct below it, a parent before its children, for them
/// in their order, then for the dictionary. Below a released struct nothing is visited.
///
/// Errors: EINVAL, with `operation` in front, for what `visit` refuses, for a struct that is NULL,
/// for a count of children that is out of range or has no list, and for too many or too deep.
///
/// # Safety
///
/// `root` points to a struct as [`Owner::from_raw`](crate::Owner::from_raw) asks for it.
pub(crate) unsafe fn walk<B: Base>(
    operation: &str,
    root: *mut B,
    visit: &mut dyn FnMut(*mut B) -> Result<(), &'static str>,
) -> Result<(), Error> {
    // SAFETY: the caller vouches for the struct.
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
    // SAFETY: the caller vouches for the struct, and so for what is below it.
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

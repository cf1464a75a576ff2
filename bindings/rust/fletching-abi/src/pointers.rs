// SPDX-License-Identifier: Apache-2.0

//! Safe views of the memory that a struct's pointers refer to.

use core::ffi::{c_char, CStr};

/// Returns the string at `first`, or `None` for NULL.
///
/// # Safety
///
/// `first` is NULL or points to a NUL-terminated string that does not change during `'a`.
pub unsafe fn text<'a>(first: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller guarantees that `first` is a valid string unless it is NULL.
    (!first.is_null()).then(|| unsafe { CStr::from_ptr(first) })
}

/// Returns the values at `first`. Empty for NULL, and for a count below 1 or beyond the address
/// space.
///
/// # Safety
///
/// `first` is NULL or points to `count` values that do not change during `'a`.
pub unsafe fn list<'a, T>(first: *const T, count: impl TryInto<usize>) -> &'a [T] {
    let most = isize::MAX as usize / size_of::<T>();
    match count.try_into() {
        Ok(count) if !first.is_null() && count <= most => {
            // SAFETY: the caller guarantees that `first` points to `count` values.
            unsafe { core::slice::from_raw_parts(first, count) }
        }
        _ => &[],
    }
}

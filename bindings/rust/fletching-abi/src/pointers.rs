// SPDX-License-Identifier: Apache-2.0

//! What the pointers of a struct point to, as safe Rust has it.

use core::ffi::{c_char, CStr};

/// The text at `first`; `None` for NULL.
///
/// # Safety
///
/// `first` is NULL or points to a text that ends in NUL, and that stays as it is for `'a`.
pub unsafe fn text<'a>(first: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller vouches for a text that is not NULL.
    (!first.is_null()).then(|| unsafe { CStr::from_ptr(first) })
}

/// The values at `first`; none for NULL, for a count below 1 and for more than the address space holds.
///
/// # Safety
///
/// `first` is NULL or points to `count` values, which stay as they are for `'a`.
pub unsafe fn list<'a, T>(first: *const T, count: impl TryInto<usize>) -> &'a [T] {
    let most = isize::MAX as usize / size_of::<T>();
    match count.try_into() {
        Ok(count) if !first.is_null() && count <= most => {
            // SAFETY: the caller vouches for the values.
            unsafe { core::slice::from_raw_parts(first, count) }
        }
        _ => &[],
    }
}

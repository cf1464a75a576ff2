// SPDX-License-Identifier: Apache-2.0

//! What the fuzz targets share: how an input is taken apart, and the foreign structs that it
//! describes.

mod input;
mod tree;

use std::ffi::c_void;

pub use input::Input;
pub use tree::{Trees, MOST_LEVELS};

/// Not memory of this process: a read of it is a fault.
#[must_use]
pub fn nowhere() -> *mut c_void {
    std::ptr::without_provenance_mut(0x1000)
}

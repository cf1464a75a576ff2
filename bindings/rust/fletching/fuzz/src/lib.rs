// SPDX-License-Identifier: Apache-2.0

//! Helpers of the fuzz targets: parsing of an input, and the foreign structs that it describes.

mod input;
mod tree;

use std::ffi::c_void;

pub use input::Input;
pub use tree::{Trees, MOST_LEVELS};

/// An address outside the memory of this process: reading it is a fault.
#[must_use]
pub fn nowhere() -> *mut c_void {
    std::ptr::without_provenance_mut(0x1000)
}

// SPDX-License-Identifier: Apache-2.0

//! The dictionary as a struct.

use super::tables::VERSION;

/// The dictionary. Owns no device memory. `descr`, the fields of a struct, is omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The size of each dimension.
    pub shape: Vec<i64>,
    /// The type of an element, such as "<f4".
    pub typestr: String,
    /// The address of the first element, the first item of `data`. 0 if there are no elements.
    pub pointer: u64,
    /// The second item of `data`.
    pub read_only: bool,
    /// The version of the interface that the dictionary follows.
    pub version: i64,
    /// Strides in bytes, or `None` if the elements are C-contiguous.
    pub strides: Option<Vec<i64>>,
    /// The validity of the elements: the dictionary of another object.
    pub mask: Option<Box<Interface>>,
    /// A `cudaStream_t` as an integer, or `None` if no work is pending.
    pub stream: Option<i64>,
}

/// An array of the newest version, without dimensions, type and address.
impl Default for Interface {
    fn default() -> Self {
        Self {
            shape: Vec::new(),
            typestr: String::new(),
            pointer: 0,
            read_only: false,
            version: VERSION,
            strides: None,
            mask: None,
            stream: None,
        }
    }
}

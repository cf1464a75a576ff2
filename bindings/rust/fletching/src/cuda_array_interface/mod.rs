// SPDX-License-Identifier: Apache-2.0

//! The CUDA Array Interface, version 3: the dictionary `__cuda_array_interface__` of a Python object
//! as a struct, and checks of it. Your Python binding converts between the two. Nothing here reads
//! device memory or needs a GPU.
//!
//! ```
//! use fletching::cuda_array_interface::Interface;
//!
//! let mut array = Interface {
//!     shape: vec![2, 3],
//!     typestr: "<f4".into(),
//!     pointer: 0x7f00_0000_0000,
//!     ..Interface::default()
//! };
//! assert_eq!(array.check(), []);
//! array.stream = Some(0);
//! assert_eq!(array.check()[0].rule, "cuda-array-interface.stream-zero");
//! ```
//!
//! Text: "CUDA Array Interface (Version 3)" of Numba.

mod checks;
mod tables;
mod typestr;

pub use self::tables::{Severity, VERSION};

use self::checks::Checked;
use self::tables::{MAX_MASKS, RULES};

/// What the dictionary says. It owns no device memory. `descr` is left out: the fields of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The size of each dimension.
    pub shape: Vec<i64>,
    /// The type of an element, such as "<f4".
    pub typestr: String,
    /// The address of the first element, the first half of `data`; 0 without elements.
    pub pointer: u64,
    /// The second half of `data`.
    pub read_only: bool,
    /// The version of the interface that the dictionary follows.
    pub version: i64,
    /// In bytes; `None` when the elements are C-contiguous.
    pub strides: Option<Vec<i64>>,
    /// Says which elements are valid. Shown by an object with a dictionary of its own.
    pub mask: Option<Box<Interface>>,
    /// A `cudaStream_t` as an integer; `None` when there is nothing to wait for.
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

/// A rule that a description breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// Its id, "cuda-array-interface.stream-zero".
    pub rule: &'static str,
    /// The key, "stream", or "mask.stream" in what the mask says.
    pub key: String,
    /// Whether a rule of the text is broken.
    pub severity: Severity,
    /// What was found, for a message.
    pub found: String,
    /// How to fix it.
    pub hint: &'static str,
}

impl Interface {
    /// The rules that the description breaks; empty for none. It is held to the version that it
    /// gives, or to the newest one when that is not known.
    #[must_use]
    pub fn check(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut path = String::new();
        let mut next = Some(self);
        for depth in 0..=MAX_MASKS {
            let Some(array) = next else { break };
            let checked = Checked::new(array, depth);
            for rule in RULES {
                if checked.version() < rule.since {
                    continue;
                }
                if let Some(found) = checked.find(rule.check) {
                    violations.push(Violation {
                        rule: rule.id,
                        key: format!("{path}{}", rule.key),
                        severity: rule.severity,
                        found,
                        hint: rule.hint,
                    });
                }
            }
            next = checked.mask();
            path.push_str("mask.");
        }
        violations
    }
}

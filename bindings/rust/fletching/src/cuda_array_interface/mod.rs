// SPDX-License-Identifier: Apache-2.0

//! The CUDA Array Interface, version 3: the dictionary `__cuda_array_interface__` of a Python
//! object as a struct, and its validation. Your Python binding converts between the two. This
//! module neither reads device memory nor needs a GPU.
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
//! See "CUDA Array Interface (Version 3)" in the Numba documentation.

mod checks;
mod description;
mod tables;
mod typestr;

pub use self::description::Interface;
pub use self::tables::{Severity, VERSION};

use self::checks::Checked;
use self::tables::{MAX_MASKS, RULES};

/// A rule that a description breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The id of the rule, such as "cuda-array-interface.stream-zero".
    pub rule: &'static str,
    /// The key, such as "stream", or "mask.stream" in the mask's dictionary.
    pub key: String,
    /// Whether the specification requires the rule.
    pub severity: Severity,
    /// The value found, for a message.
    pub found: String,
    /// How to fix it.
    pub hint: &'static str,
}

impl Interface {
    /// Returns the rules that the description breaks. Checks the rules of its version, or of the
    /// newest version if its version is unknown.
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

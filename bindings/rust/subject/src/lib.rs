// SPDX-License-Identifier: Apache-2.0

//! The subjects of the crate's conformance test as a library, for `fletching_conformance` and for
//! chains of languages in one process.

use std::sync::OnceLock;

#[path = "../../fletching/tests/conformance/subject.rs"]
mod subject;
#[path = "../../fletching/tests/conformance/values.rs"]
mod values;

struct Subjects([subject::Subject; 2]);

// SAFETY: the table contains functions and literals.
unsafe impl Send for Subjects {}
// SAFETY: as above.
unsafe impl Sync for Subjects {}

/// Returns the subject with this index, or NULL past the last.
#[no_mangle]
pub extern "C" fn FletchingConformanceSubject(index: i32) -> *const subject::Subject {
    static SUBJECTS: OnceLock<Subjects> = OnceLock::new();
    let Subjects(subjects) = SUBJECTS.get_or_init(|| Subjects(subject::subjects()));
    usize::try_from(index)
        .ok()
        .and_then(|index| subjects.get(index))
        .map_or(std::ptr::null(), std::ptr::from_ref)
}

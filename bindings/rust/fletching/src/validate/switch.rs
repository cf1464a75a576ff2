// SPDX-License-Identifier: Apache-2.0

//! The environment variable `FLETCHING_VALIDATE`.

use std::env::var_os;
use std::ffi::c_void;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

use super::library;

const VARIABLE: &str = "FLETCHING_VALIDATE";

/// Whether the variable is set. One load and one branch if it is not.
#[inline]
pub(crate) fn is_set() -> bool {
    static MAY_BE_SET: AtomicBool = AtomicBool::new(true);
    #[cold]
    fn read() -> bool {
        let is_set = var_os(VARIABLE).is_some_and(|value| !value.is_empty());
        MAY_BE_SET.store(is_set, Ordering::Relaxed);
        is_set
    }
    MAY_BE_SET.load(Ordering::Relaxed) && read()
}

type Function = unsafe extern "C" fn(direction: i32, kind: i32, address: *mut c_void);

/// Loads the library once, and calls `FletchingValidateHandover`.
///
/// # Safety
///
/// As for this function in `fletching/validate.h`.
#[cold]
pub(crate) unsafe fn hand_over(direction: i32, kind: i32, address: *mut c_void) {
    static FUNCTION: OnceLock<Option<Function>> = OnceLock::new();
    if let Some(function) = FUNCTION.get_or_init(find) {
        // SAFETY: guaranteed by the caller.
        unsafe { function(direction, kind, address) }
    }
}

fn find() -> Option<Function> {
    // SAFETY: the type matches the header.
    let found = unsafe { library::function(c"FletchingValidateHandover") };
    if let Err(error) = &found {
        let text = error.message();
        let _ = writeln!(std::io::stderr(), "fletching: {VARIABLE}: {text}");
        let value = var_os(VARIABLE).unwrap_or_default();
        if value == "abort" || value.as_encoded_bytes().starts_with(b"abort:") {
            std::process::abort();
        }
    }
    found.ok()
}

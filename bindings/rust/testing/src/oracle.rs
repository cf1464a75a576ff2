// SPDX-License-Identifier: Apache-2.0

//! The oracle of `tests/oracle/oracle.h`: upstream's header as a C compiler sees it.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::sync::OnceLock;

crate::library! {
    /// The functions of the oracle. It has one current call, so use it on one thread at a time.
    pub struct Functions from "fletching_oracle" {
        struct_count = FletchingOracleStructCount() -> i32;
        struct_name = FletchingOracleStructName(i32) -> *const c_char;
        size = FletchingOracleSize(*const c_char) -> i64;
        check_struct = FletchingOracleCheckStruct(*const c_char, i64, i64, *mut c_char, usize) -> c_int;
        check_field_names = FletchingOracleCheckFieldNames(*const c_char, *const c_char, *mut c_char, usize) -> c_int;
        check_field = FletchingOracleCheckField(*const c_char, *const c_char, i64, i64, *mut c_char, usize) -> c_int;
        check_constant = FletchingOracleCheckConstant(*const c_char, i64, *mut c_char, usize) -> c_int;
        check_constant_names = FletchingOracleCheckConstantNames(*const c_char, *mut c_char, usize) -> c_int;
        check_enumerators = FletchingOracleCheckEnumerators(*const c_char, *const c_char, *mut c_char, usize) -> c_int;
        canary = FletchingOracleCanary(*const c_char, *const c_char, i32) -> u64;
        fill = FletchingOracleFill(*const c_char, *mut c_void) -> c_int;
        check_read = FletchingOracleCheckRead(*const c_char, *const c_char, i32, u64, *mut c_char, usize) -> c_int;
        check_written = FletchingOracleCheckWritten(*const c_char, *const c_void, *mut c_char, usize) -> c_int;
        variant_count = FletchingOracleVariantCount() -> i32;
        callback_count = FletchingOracleCallbackCount(*const c_char) -> i32;
        callback_name = FletchingOracleCallbackName(*const c_char, i32) -> *const c_char;
        check_callback_names = FletchingOracleCheckCallbackNames(*const c_char, *const c_char, *mut c_char, usize) -> c_int;
        check_signature = FletchingOracleCheckSignature(*const c_char, *const c_char, *const c_char, *mut c_char, usize) -> c_int;
        call = FletchingOracleCall(*const c_char, *const c_char, i32, *mut c_void, *mut c_char, usize) -> c_int;
        saw_argument = FletchingOracleSawArgument(*const c_char, *const c_char, i32, u64);
        expected_result = FletchingOracleExpectedResult() -> u64;
        install = FletchingOracleInstall(*const c_char, *mut c_void) -> c_int;
        begin_call = FletchingOracleBeginCall(*const c_char, *const c_char, i32, *const c_void);
        argument = FletchingOracleArgument(i32) -> u64;
        end_call = FletchingOracleEndCall(u64, *mut c_char, usize) -> c_int;
    }
}

/// The loaded oracle.
///
/// # Panics
///
/// If it cannot be loaded.
pub fn functions() -> &'static Functions {
    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
    FUNCTIONS.get_or_init(|| Functions::load().unwrap_or_else(|problem| panic!("{problem}")))
}

/// Returns the C form of a Rust name.
pub fn c_name(name: &str) -> CString {
    CString::new(name.replace("r#", "")).expect("a name holds no NUL")
}

/// Returns a name from the oracle, or `None` past the end.
///
/// # Safety
///
/// `name` is NULL or comes from the oracle.
pub unsafe fn name(name: *const c_char) -> Option<String> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the oracle's strings are NUL-terminated and live as long as the library.
    let name = unsafe { CStr::from_ptr(name) };
    Some(name.to_string_lossy().into_owned())
}

/// Runs a check with a buffer for its message. `Err` is the oracle's message.
pub fn checked(check: impl FnOnce(*mut c_char, usize) -> c_int) -> Result<(), String> {
    let mut message = [0_u8; 1024];
    if check(message.as_mut_ptr().cast(), message.len()) == 0 {
        return Ok(());
    }
    let line = message.split(|&byte| byte == 0).next().unwrap_or_default();
    Err(String::from_utf8_lossy(line).into_owned())
}

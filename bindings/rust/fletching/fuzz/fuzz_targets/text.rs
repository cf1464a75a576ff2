// SPDX-License-Identifier: Apache-2.0

//! Foreign error messages: the result is printable, has a bounded length, and does not change when
//! it is processed again.

#![no_main]

use std::ffi::{c_char, c_int, CString};

use fletching::abi::{ArrowArray, ArrowArrayStream, ArrowSchema};
use fletching::{ArrayStream, Error};
use libfuzzer_sys::fuzz_target;

/// The maximum number of bytes read from a string.
const LONGEST: usize = 4096;
const CODE: c_int = 7;

unsafe extern "C" fn get_schema(_: *mut ArrowArrayStream, _: *mut ArrowSchema) -> c_int {
    CODE
}

unsafe extern "C" fn get_next(_: *mut ArrowArrayStream, _: *mut ArrowArray) -> c_int {
    CODE
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: the consumer passes the stream of `failure`.
    unsafe { (*stream).private_data.cast() }
}

unsafe extern "C" fn release(stream: *mut ArrowArrayStream) {
    // SAFETY: as above; the text is no longer used.
    unsafe {
        drop(CString::from_raw((*stream).private_data.cast()));
        (*stream).release = None;
    }
}

fn failure(text: CString) -> Error {
    let raw = ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: text.into_raw().cast(),
    };
    // SAFETY: the callbacks are the functions above.
    let stream = unsafe { ArrayStream::from_raw(raw) };
    stream.into_iter().next().unwrap().unwrap_err()
}

fuzz_target!(|bytes: &[u8]| {
    let text = bytes.split(|byte| *byte == 0).next().unwrap();
    let error = failure(CString::new(text).unwrap());
    assert_eq!(error.code(), CODE);
    let made = error.message();
    let is_plain = |c: char| !c.is_ascii_control() || c == '\n' || c == '\t';
    assert!(made.chars().all(is_plain), "{made:?}");
    assert!(made.len() <= 4 * LONGEST + 3);
    match std::str::from_utf8(text) {
        Ok(sound) if text.len() <= LONGEST && sound.chars().all(is_plain) => {
            assert_eq!(made, sound);
        }
        _ => assert!(text.len() > LONGEST || made.contains("\\x")),
    }
    if made.len() <= LONGEST {
        let again = failure(CString::new(made).unwrap());
        assert_eq!(again.message(), made);
    }
});

// SPDX-License-Identifier: Apache-2.0

//! The peer, in C: `cpp/bench/c/peer.h`.

#![allow(dead_code, reason = "not every program uses all of it")]

use std::ffi::{c_char, c_int, c_void, CString};

use fletching::abi::ArrowDeviceArray;

/// The number of values of a column.
pub const ROWS: i64 = 64;
/// The number of columns of a batch.
pub const COLUMNS: usize = 1000;

extern "C" {
    fn peer_produce(out: *mut ArrowDeviceArray);
    fn peer_data() -> *const *const c_void;
    fn peer_drop(data: *const *const c_void);
    fn peer_consume(source: *mut ArrowDeviceArray);
    fn peer_main(
        argc: c_int,
        argv: *const *const c_char,
        cases: *const Case,
        count: c_int,
    ) -> c_int;
}

/// A case of a program.
#[repr(C)]
pub struct Case {
    name: *const c_char,
    run: extern "C" fn(),
}

/// The data of a batch, which is returned on drop.
pub struct Data(*const *const c_void);

// SAFETY: the addresses are static memory.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    /// Returns the data that the producer of a case owns.
    pub fn new() -> Self {
        // SAFETY: the function takes no arguments.
        Self(unsafe { peer_data() })
    }

    /// The values of each column.
    pub fn columns(&self) -> &'static [*const c_void; COLUMNS] {
        // SAFETY: the static memory has this many columns.
        unsafe { &*self.0.cast() }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // SAFETY: the data came from peer_data.
        unsafe { peer_drop(self.0) }
    }
}

/// Fills a device array that owns nothing.
pub fn produce(out: *mut ArrowDeviceArray) {
    // SAFETY: the callers pass a struct to fill.
    unsafe { peer_produce(out) }
}

/// Passes the batch to a C consumer, which moves it, reads every child, and releases it.
pub fn consume(mut array: ArrowDeviceArray) {
    // SAFETY: the array is owned and moved in.
    unsafe { peer_consume(&mut array) }
}

/// Runs the case in the arguments of the program, `CASE ROUNDS`. Returns the exit code.
pub fn run(cases: &[(&str, extern "C" fn())]) -> i32 {
    let text = |text: &str| {
        CString::new(text)
            .expect("an argument has no NUL")
            .into_raw()
    };
    let arguments: Vec<_> = std::env::args()
        .map(|argument| text(&argument).cast_const())
        .collect();
    let cases: Vec<_> = cases
        .iter()
        .map(|(name, run)| Case {
            name: text(name),
            run: *run,
        })
        .collect();
    // SAFETY: the counts match the lists, and the strings live until the process exits.
    unsafe {
        let count = arguments.len() as c_int;
        peer_main(
            count,
            arguments.as_ptr(),
            cases.as_ptr(),
            cases.len() as c_int,
        )
    }
}

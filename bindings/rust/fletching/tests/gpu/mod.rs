// SPDX-License-Identifier: Apache-2.0

//! The libraries for event tests: stand-ins of the vendors' runtimes, and their control functions
//! (`tests/standin/standin.h`).

#![allow(dead_code, reason = "not every test file uses all of it")]

/// Defines a CUDA test and a HIP test of one function.
#[allow(unused_macros, reason = "not every test file uses it")]
macro_rules! both {
    ($($test:ident => $cuda:ident, $hip:ident;)*) => {$(
        #[test]
        fn $cuda() {
            let _alone = gpu::alone();
            $test::<gpu::api::Cuda>();
        }

        #[test]
        fn $hip() {
            let _alone = gpu::alone();
            $test::<gpu::api::Hip>();
        }
    )*};
}

pub mod api;
pub mod released;

use std::ffi::{c_char, c_int, CString};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fletching::Error;
use libloading::Library;

/// Locks out other tests: a stand-in's counts are per process.
pub fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn error<T>(result: Result<T, Error>) -> Error {
    result.err().expect("an error")
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub primary_references: i64,
    pub contexts: i64,
    pub streams: i64,
    pub events: i64,
    pub modules: i64,
    pub device_memory: i64,
    pub host_memory: i64,
    pub managed_memory: i64,
    pub graphs: i64,
    pub abandoned: i64,
}

pub struct Control {
    library: &'static Library,
    set_fault: extern "C" fn(*const c_char) -> c_int,
    reset_faults: extern "C" fn(),
    calls: extern "C" fn(*const c_char) -> i64,
    settle: extern "C" fn(),
    relaxed_threads: extern "C" fn() -> i64,
    leaks: extern "C" fn(*mut Counts) -> i64,
}

impl Control {
    pub fn of(library: &'static Library) -> Self {
        // SAFETY: the types match the header.
        unsafe {
            Self {
                library,
                set_fault: *library.get(b"FletchingStandinSetFault").unwrap(),
                reset_faults: *library.get(b"FletchingStandinResetFaults").unwrap(),
                calls: *library.get(b"FletchingStandinCalls").unwrap(),
                settle: *library.get(b"FletchingStandinSettle").unwrap(),
                relaxed_threads: *library.get(b"FletchingStandinRelaxedThreads").unwrap(),
                leaks: *library.get(b"FletchingStandinLeaks").unwrap(),
            }
        }
    }

    /// Returns a function of the library.
    ///
    /// # Safety
    ///
    /// `F` is the function pointer type of this function.
    pub unsafe fn function<F: Copy>(&self, symbol: &str) -> F {
        // SAFETY: the caller guarantees that `F` is the function's type; the library stays loaded.
        *unsafe { self.library.get::<F>(symbol.as_bytes()) }.expect(symbol)
    }

    /// Sets a fault `function:n:error` until `reset_faults`.
    pub fn set_fault(&self, fault: &str) {
        let text = CString::new(fault).unwrap();
        assert_eq!((self.set_fault)(text.as_ptr()), 0, "{fault}");
    }

    pub fn reset_faults(&self) {
        (self.reset_faults)();
    }

    pub fn calls(&self, function: &str) -> i64 {
        let name = CString::new(function).unwrap();
        (self.calls)(name.as_ptr())
    }

    /// Returns when no stream can make progress.
    pub fn settle(&self) {
        (self.settle)();
    }

    /// Returns when no thread is in the relaxed capture mode, which threads that release arrays
    /// use.
    pub fn settle_releases(&self) {
        while (self.relaxed_threads)() > 0 {
            std::thread::yield_now();
        }
    }

    pub fn alive(&self) -> Counts {
        let mut counts = Counts::default();
        (self.leaks)(&mut counts);
        counts
    }
}

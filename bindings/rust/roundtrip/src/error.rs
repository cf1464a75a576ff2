// SPDX-License-Identifier: Apache-2.0

//! The error that becomes an errno and a text where C calls, and the fence that no panic passes.

use std::any::Any;
use std::ffi::{c_int, CString};
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// An errno value and what C code may say about it.
#[derive(Debug, PartialEq)]
pub struct Error {
    /// Never 0.
    pub code: c_int,
    /// As it came, so perhaps not UTF-8; `None` when foreign code gave NULL.
    pub text: Option<CString>,
}

impl Error {
    /// An error of our own.
    pub fn new(code: c_int, text: impl Into<String>) -> Self {
        let text = text.into().replace('\0', " ");
        Self {
            code,
            text: CString::new(text).ok(),
        }
    }

    /// A struct that breaks the specification.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new(libc::EINVAL, text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => write!(f, "{} (errno {})", text.to_string_lossy(), self.code),
            None => write!(f, "no text (errno {})", self.code),
        }
    }
}

/// Runs `work` for a caller in C: a panic becomes an error.
pub fn guard<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(Error::new(libc::EIO, panic_text(panic.as_ref()))))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    format!("panic: {}", text.unwrap_or("(no text)"))
}

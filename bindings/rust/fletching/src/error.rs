// SPDX-License-Identifier: Apache-2.0

//! The error of every operation: an errno value, a message and the cause.

use std::any::Any;
use std::error::Error as StdError;
use std::ffi::{c_char, c_int, CStr};
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use crate::errno::EIO;

/// The maximum number of bytes read from a foreign string.
const MAX_TEXT: usize = 4096;

/// An errno value and a message, as the C interfaces return them.
///
/// For an error returned by a stream, the code is the producer's and the message is the printable
/// form of its `get_last_error`.
#[derive(Clone, Debug)]
pub struct Error(Box<Fields>);

#[derive(Clone, Debug)]
struct Fields {
    code: c_int,
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Makes an error with an errno value. A code below 1, which means success in C, is replaced by
    /// `EIO`.
    pub fn new(code: c_int, message: impl Into<String>) -> Self {
        Self(Box::new(Fields {
            code: if code > 0 { code } else { EIO },
            message: message.into(),
            source: None,
        }))
    }

    /// Makes an error with a cause, which [`source`](StdError::source) returns.
    pub fn with_source(
        code: c_int,
        message: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        let mut error = Self::new(code, message);
        error.0.source = Some(Arc::from(source.into()));
        error
    }

    /// The errno value, at least 1.
    #[must_use]
    pub fn code(&self) -> c_int {
        self.0.code
    }

    /// The failed operation, the problem and the expected value. Empty if the producer sent no
    /// message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(crate::errno::EINVAL, message)
    }

    /// Puts the operation in front of the message.
    #[cfg(any(feature = "dlpack", feature = "runtime", feature = "validate"))]
    pub(crate) fn named(mut self, operation: &str) -> Self {
        self.0.message = format!("{operation}: {}", self.0.message);
        self
    }

    /// The error for a rule that another party broke. The ids are in docs/reference/rules.
    pub(crate) fn broken_rule(rule: &str, message: &str) -> Self {
        Self::invalid(format!("{message} (rule {rule})"))
    }

    /// The error that a foreign callback returned. A code below 1 is added to the message, because
    /// the error's code is then `EIO`.
    ///
    /// # Safety
    ///
    /// `message` is NULL or points to a NUL-terminated string.
    pub(crate) unsafe fn foreign(code: c_int, message: *const c_char) -> Self {
        // SAFETY: guaranteed by the caller.
        let mut text = unsafe { printable_c(message) };
        if code < 1 {
            let space = if text.is_empty() { "" } else { " " };
            text.push_str(&format!("{space}(code {code})"));
        }
        Self::new(code, text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message().is_empty() {
            return write!(f, "{}", std::io::Error::from_raw_os_error(self.code()));
        }
        f.write_str(self.message())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Keeps the errno value of the operating system if there is one. Otherwise `Unsupported` is
/// `ENOSYS`, `OutOfMemory` is `ENOMEM`, `InvalidInput` is `EINVAL`, and other kinds are `EIO`.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::with_source(errno_of(&error), error.to_string(), error)
    }
}

pub(crate) fn errno_of(error: &std::io::Error) -> c_int {
    use std::io::ErrorKind;
    // Windows error codes are not errno values.
    let code = error.raw_os_error().filter(|_| cfg!(unix));
    code.unwrap_or_else(|| match error.kind() {
        ErrorKind::Unsupported => crate::errno::ENOSYS,
        ErrorKind::OutOfMemory => crate::errno::ENOMEM,
        ErrorKind::InvalidInput => crate::errno::EINVAL,
        _ => EIO,
    })
}

// --- Panics -------------------------------------------------------------------------------------

/// Runs code that may panic where unwinding is not allowed. A panic is returned as EIO with its
/// message.
pub(crate) fn guarded<T>(body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let error = Error::new(EIO, format!("panic: {}", panic_message(&*payload)));
        discard(payload);
        Err(error)
    })
}

/// Drops a user's value where no error can be returned.
pub(crate) fn discard<T>(value: T) {
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(value)));
    // The panic payload's own drop may panic too. The payload of that second panic is leaked.
    if let Err(Err(last)) =
        dropped.map_err(|payload| catch_unwind(AssertUnwindSafe(|| drop(payload))))
    {
        std::mem::forget(last);
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

// --- Foreign strings ----------------------------------------------------------------------------

/// Returns the text with invalid UTF-8 and control characters, except line feeds and tabs, escaped
/// as `\xNN`. Text of more than 4096 bytes is truncated and ends with "...".
pub(crate) fn printable(text: &[u8]) -> String {
    let cut = text.len() > MAX_TEXT;
    let mut end = text.len().min(MAX_TEXT);
    // Do not split a character.
    while cut && end > MAX_TEXT - 4 && text[end] & 0xC0 == 0x80 {
        end -= 1;
    }
    let mut result = String::with_capacity(end);
    let escape = |result: &mut String, byte: u8| result.push_str(&format!("\\x{byte:02x}"));
    let is_escaped = |c: char| c.is_ascii_control() && c != '\n' && c != '\t';
    for chunk in text[..end].utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find(is_escaped) {
            result.push_str(&rest[..at]);
            escape(&mut result, rest.as_bytes()[at]);
            rest = &rest[at + 1..];
        }
        result.push_str(rest);
        chunk
            .invalid()
            .iter()
            .for_each(|byte| escape(&mut result, *byte));
    }
    if cut {
        result.push_str("...");
    }
    result
}

/// [`printable`] for a C string; empty for NULL.
///
/// # Safety
///
/// `text` is NULL or points to a NUL-terminated string.
pub(crate) unsafe fn printable_c(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: guaranteed by the caller.
    printable(unsafe { CStr::from_ptr(text) }.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_escapes_and_truncates_foreign_text() {
        assert_eq!(printable("a\tb\nü".as_bytes()), "a\tb\nü");
        assert_eq!(printable(b"a\xff\x00\x7f\x1bb"), "a\\xff\\x00\\x7f\\x1bb");
        let long = printable(&[b'x'; MAX_TEXT + 1]);
        assert_eq!(long, "x".repeat(MAX_TEXT) + "...");
        let split = printable(("x".repeat(MAX_TEXT - 1) + "ü!").as_bytes());
        assert_eq!(split, "x".repeat(MAX_TEXT - 1) + "...");
        let longest = "x".repeat(MAX_TEXT);
        assert_eq!(printable(longest.as_bytes()), longest);
        // A character has at most four bytes, so at most four bytes are cut.
        let broken = printable(&[[b'x'].repeat(MAX_TEXT - 8), [0x80].repeat(20)].concat());
        assert_eq!(
            broken,
            "x".repeat(MAX_TEXT - 8) + &"\\x80".repeat(4) + "..."
        );
    }

    #[test]
    fn guarded_returns_panic_message() {
        let error = guarded::<()>(|| panic!("number {}", 7)).unwrap_err();
        assert_eq!((error.code(), error.message()), (EIO, "panic: number 7"));
        let error = guarded::<()>(|| std::panic::panic_any(7)).unwrap_err();
        assert_eq!(error.message(), "panic: no message");
    }

    #[test]
    fn panic_in_payload_drop_is_caught() {
        struct PanicOnDrop;
        impl Drop for PanicOnDrop {
            fn drop(&mut self) {
                panic!("again");
            }
        }
        assert!(guarded::<()>(|| std::panic::panic_any(PanicOnDrop)).is_err());
        discard(PanicOnDrop);
    }

    #[test]
    fn foreign_invalid_errno_is_added_to_message() {
        // SAFETY: literals.
        let [named, unnamed, sound] = unsafe {
            [
                Error::foreign(-3, c"lost".as_ptr()),
                Error::foreign(0, std::ptr::null()),
                Error::foreign(7, c"late".as_ptr()),
            ]
        };
        assert_eq!((named.code(), named.message()), (EIO, "lost (code -3)"));
        assert_eq!((unnamed.code(), unnamed.message()), (EIO, "(code 0)"));
        assert_eq!((sound.code(), sound.message()), (7, "late"));
    }
}

// SPDX-License-Identifier: Apache-2.0

//! Loads the library of a vendor's runtime when it is needed.

use std::ffi::CStr;
use std::mem::ManuallyDrop;

use libloading::{Error as LoadError, Library as Handle};

use crate::Error;

/// What an event says when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventState {
    /// It has happened.
    Done,
    /// It has not happened yet.
    Pending,
    /// The answer is an error.
    Failed,
}

/// A function of a library, and how the library exports it.
#[derive(Clone, Copy, Debug)]
pub struct Symbol<F> {
    /// The name in the library: `cuEventDestroy_v2`.
    pub name: &'static str,
    /// A pointer to the function.
    pub function: F,
}

/// A function that a library may lack: only a producer needs it, or only newer versions have it.
pub type Optional<F> = Symbol<Option<F>>;

/// A library that is never unloaded: what was found in it is valid as long as the process lives.
pub(crate) struct Library {
    title: &'static str,
    pub(crate) name: &'static str,
    handle: ManuallyDrop<Handle>,
}

impl Library {
    /// The library under the first name that works. One that is loaded already is preferred,
    /// whatever its name: the handles of one version mean nothing to another.
    ///
    /// Errors: ENOENT, with every name and its reason.
    pub(crate) fn open(title: &'static str, names: &[&'static str]) -> Result<Self, Error> {
        let mut reasons = Vec::new();
        for already_loaded in [true, false] {
            for &name in names {
                match open(name, already_loaded) {
                    Ok(found) => {
                        let handle = ManuallyDrop::new(found);
                        #[rustfmt::skip]
                        return Ok(Self { title, name, handle });
                    }
                    Err(_) if already_loaded => {}
                    Err(reason) => reasons.push(reason.to_string()),
                }
            }
        }
        let (names, reasons) = (names.join(", "), reasons.join("; "));
        let text = if names.is_empty() {
            format!("{title}: no library for this system")
        } else {
            format!(
                "{title}: cannot load {names}; hint: install it, or add its folder to the library \
                 search path ({reasons})"
            )
        };
        Err(Error::new(crate::errno::ENOENT, text))
    }

    /// A function that the library may lack.
    ///
    /// # Safety
    ///
    /// `F` is a pointer to a function of the type that the symbol has.
    pub(crate) unsafe fn optional<F: Copy>(&self, symbol: &'static CStr) -> Optional<F> {
        // SAFETY: the caller vouches for the type, and the library stays loaded.
        let found = unsafe { self.handle.get::<F>(symbol.to_bytes_with_nul()) };
        Symbol {
            name: symbol.to_str().unwrap_or_default(),
            function: found.ok().map(|found| *found),
        }
    }

    /// One that every consumer needs. Errors: ENOSYS when the library lacks it.
    ///
    /// # Safety
    ///
    /// As for [`optional`](Self::optional).
    pub(crate) unsafe fn required<F: Copy>(
        &self,
        symbol: &'static CStr,
    ) -> Result<Symbol<F>, Error> {
        // SAFETY: the caller vouches for the type.
        unsafe { self.optional(symbol) }.in_library(self.title, self.name)
    }
}

impl<F> From<Symbol<F>> for Optional<F> {
    fn from(Symbol { name, function }: Symbol<F>) -> Self {
        let function = Some(function);
        Self { name, function }
    }
}

impl<F> Optional<F> {
    pub(crate) fn found(self) -> Option<Symbol<F>> {
        let Self { name, function } = self;
        function.map(|function| Symbol { name, function })
    }

    /// The function. Errors: ENOSYS when the library lacks it.
    pub(crate) fn in_library(self, title: &str, library: &str) -> Result<Symbol<F>, Error> {
        let name = self.name;
        self.found().ok_or_else(|| {
            let text = format!("{title}: {library} has no {name}; hint: install a newer version");
            Error::new(crate::errno::ENOSYS, text)
        })
    }
}

#[cfg(unix)]
fn open(name: &str, already_loaded: bool) -> Result<Handle, LoadError> {
    use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
    // One that is loaded keeps the visibility that it has.
    let scope = [RTLD_LOCAL, libc::RTLD_NOLOAD][usize::from(already_loaded)];
    // SAFETY: a vendor's library may be loaded by any program, on any thread.
    unsafe { Library::open(Some(name), RTLD_LAZY | scope) }.map(Handle::from)
}

#[cfg(windows)]
fn open(name: &str, already_loaded: bool) -> Result<Handle, LoadError> {
    use libloading::os::windows::Library;
    if already_loaded {
        return Library::open_already_loaded(name).map(Handle::from);
    }
    // SAFETY: a vendor's library may be loaded by any program, on any thread.
    unsafe { Library::new(name) }.map(Handle::from)
}

/// What a vendor's function has returned.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub(super) function: &'static str,
    pub(super) code: i32,
}

/// Calls a function of a vendor's.
macro_rules! call {
    ($symbol:expr $(, $argument:expr)*) => {{
        let symbol = $symbol;
        Answer {
            function: symbol.name,
            // SAFETY: the types are the vendor's. A stream and an event are alive, see
            // Stream::from_raw and Owner::from_raw; the other pointers are to variables.
            code: unsafe { (symbol.function)($($argument),*) },
        }
    }};
}
pub(super) use call;

impl Answer {
    /// The error of a call that failed; `name` and `text` are about its code, or empty.
    pub(super) fn error(self, title: &str, name: &str, text: &str, invalid: bool) -> Error {
        let Self { function, code } = self;
        let number = match name {
            "" => code.to_string(),
            name => format!("{name} ({code})"),
        };
        let colon = if text.is_empty() { "" } else { ": " };
        let message = format!("{title}: {function} failed with {number}{colon}{text}");
        if !invalid {
            return Error::new(crate::errno::EIO, message);
        }
        Error::invalid(
            message
                + "; hint: check that stream and event are alive, and that sync_event is the \
                   address of the event's handle, not the handle",
        )
    }
}

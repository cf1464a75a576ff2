// SPDX-License-Identifier: Apache-2.0

//! Loads the library of a vendor's runtime when it is needed, and words its errors.

use std::ffi::{c_int, CStr};

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

/// A library that is never unloaded: what was found in it is valid as long as the process lives.
pub(crate) struct Library {
    title: &'static str,
    name: &'static str,
    handle: &'static Handle,
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
                    Ok(handle) => {
                        let handle = Box::leak(Box::new(handle));
                        return Ok(Self {
                            title,
                            name,
                            handle,
                        });
                    }
                    Err(reason) if !already_loaded => reasons.push(reason.to_string()),
                    Err(_) => {}
                }
            }
        }
        let text = match names {
            [] => format!("{title}: no library for this system"),
            _ => format!(
                "{title}: cannot load {}; hint: install it, or add its folder to the library \
                 search path ({})",
                names.join(", "),
                reasons.join("; ")
            ),
        };
        Err(Error::new(libc::ENOENT, text))
    }

    /// The name under which it was found.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// A function, `None` when the library lacks it.
    ///
    /// # Safety
    ///
    /// `F` is a pointer to a function of the type that the symbol has.
    pub(crate) unsafe fn find<F: Copy>(&self, symbol: &CStr) -> Option<F> {
        // SAFETY: the caller vouches for the type, and the library stays loaded.
        unsafe { self.handle.get::<F>(symbol.to_bytes_with_nul()) }
            .ok()
            .map(|found| *found)
    }

    /// The same. Errors: ENOSYS when the library lacks it.
    ///
    /// # Safety
    ///
    /// As for [`find`](Self::find).
    pub(crate) unsafe fn required<F: Copy>(&self, symbol: &CStr) -> Result<F, Error> {
        // SAFETY: the caller vouches for the type.
        unsafe { self.find(symbol) }
            .ok_or_else(|| no_function(self.title, self.name, &symbol.to_string_lossy()))
    }
}

pub(crate) fn no_function(title: &str, library: &str, symbol: &str) -> Error {
    Error::new(
        libc::ENOSYS,
        format!("{title}: {library} has no {symbol}; hint: install a newer version"),
    )
}

#[cfg(unix)]
fn open(name: &str, already_loaded: bool) -> Result<Handle, LoadError> {
    use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
    // One that is loaded keeps the visibility that it has.
    let scope: c_int = if already_loaded {
        libc::RTLD_NOLOAD
    } else {
        RTLD_LOCAL
    };
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

/// A call of a vendor's function that failed.
pub(crate) struct Failure {
    pub(crate) title: &'static str,
    pub(crate) function: &'static str,
    pub(crate) status: i32,
    pub(crate) name: Option<String>,
    pub(crate) text: Option<String>,
    /// Whether the status says that a handle is none.
    pub(crate) is_invalid_handle: bool,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let Failure {
            title,
            function,
            status,
            ..
        } = failure;
        let mut message = match failure.name {
            Some(name) => format!("{title}: {function} failed with {name} ({status})"),
            None => format!("{title}: {function} failed with {status}"),
        };
        if let Some(text) = failure.text {
            message += &format!(": {text}");
        }
        if !failure.is_invalid_handle {
            return Self::new(libc::EIO, message);
        }
        Self::invalid(
            message
                + "; hint: check that stream and event are alive, and that sync_event is the \
                   address of the event's handle, not the handle",
        )
    }
}

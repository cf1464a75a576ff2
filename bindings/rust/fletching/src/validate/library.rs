// SPDX-License-Identifier: Apache-2.0

//! Loads `libfletching`.

use std::ffi::{c_char, c_int, c_void, CStr, CString, OsString};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use crate::errno::{ENOENT, ENOSYS};
use crate::Error;

pub(super) type Message = [c_char; 1024];

/// The library's names, in the order in which they are tried.
const NAMES: &[&CStr] = if cfg!(windows) {
    &[c"fletching.dll"]
} else if cfg!(target_vendor = "apple") {
    &[c"libfletching.0.1.dylib", c"libfletching.dylib"]
} else {
    &[c"libfletching.so.0.1", c"libfletching.so"]
};

extern "C" {
    /// The layout with which `layout.c` was compiled.
    #[link_name = concat!(env!("FLETCHING_PREFIX"), "Layout")]
    fn layout() -> u64;
}

struct Handle(*mut c_void);

// SAFETY: the loader's functions may be called on any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// Returns a function of the library, which it loads if needed.
///
/// # Safety
///
/// `F` is the function pointer type of this function.
pub(super) unsafe fn function<F: Copy>(name: &CStr) -> Result<F, Error> {
    static LIBRARY: OnceLock<Handle> = OnceLock::new();
    let library = match LIBRARY.get() {
        Some(library) => library,
        None => {
            let opened = open(std::env::var_os("FLETCHING_LIBRARY"))?;
            LIBRARY.get_or_init(|| opened)
        }
    };
    // SAFETY: the caller guarantees that `F` is the function's type.
    unsafe { find(library, name) }
}

fn open(path: Option<OsString>) -> Result<Handle, Error> {
    let path = path
        .filter(|path| !path.is_empty())
        .map(|path| CString::new(path.into_encoded_bytes()))
        .transpose()
        .map_err(|_| Error::invalid("FLETCHING_LIBRARY: NUL in the path: expected none"))?;
    let names = match &path {
        Some(path) => vec![path.as_c_str()],
        None => NAMES.to_vec(),
    };
    let mut reasons = Vec::new();
    for name in names {
        let library = Handle(system::open(name));
        if !library.0.is_null() {
            // SAFETY: the function has no requirements.
            check_layout(&library, unsafe { layout() })?;
            return Ok(library);
        }
        reasons.push(system::reason(name));
    }
    Err(Error::new(
        ENOENT,
        format!(
            "cannot load libfletching: {}; hint: install it, add its folder to the library \
             search path, or set FLETCHING_LIBRARY to its path",
            reasons.join("; ")
        ),
    ))
}

fn check_layout(library: &Handle, layout: u64) -> Result<(), Error> {
    type Check = unsafe extern "C" fn(u64, *mut Message) -> c_int;
    // SAFETY: the type matches the header.
    let check: Check = unsafe { find(library, c"FletchingCheckLayout") }?;
    // SAFETY: the message may be written.
    run(|message| unsafe { check(layout, message) })
}

/// Calls a function that writes a message if it fails.
pub(super) fn run(call: impl FnOnce(*mut Message) -> c_int) -> Result<(), Error> {
    let mut message = MaybeUninit::<Message>::zeroed();
    match call(message.as_mut_ptr()) {
        0 => Ok(()),
        // SAFETY: a function that fails has written a NUL-terminated string.
        code => Err(unsafe { Error::foreign(code, message.as_ptr().cast()) }),
    }
}

/// # Safety
///
/// `F` is the function pointer type of this function.
unsafe fn find<F: Copy>(library: &Handle, name: &CStr) -> Result<F, Error> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the handle comes from the loader.
    let found = unsafe { system::find(library.0, name) };
    if found.is_null() {
        let name = name.to_string_lossy();
        let text = format!("libfletching has no {name}; hint: install a newer version");
        return Err(Error::new(ENOSYS, text));
    }
    // SAFETY: the caller guarantees that `F` is the function's type.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

#[cfg(unix)]
mod system {
    use std::ffi::{c_void, CStr};

    pub(super) fn open(name: &CStr) -> *mut c_void {
        // SAFETY: the name is NUL-terminated.
        unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) }
    }

    /// Returns the last error of this thread.
    pub(super) fn reason(_: &CStr) -> String {
        // SAFETY: dlerror returns NULL, or a string that is valid until the next loader call on
        // this thread.
        unsafe { crate::error::printable_c(libc::dlerror()) }
    }

    pub(super) unsafe fn find(library: *mut c_void, name: &CStr) -> *mut c_void {
        // SAFETY: the caller guarantees that `library` is a loaded library.
        unsafe { libc::dlsym(library, name.as_ptr()) }
    }
}

#[cfg(windows)]
mod system {
    use std::ffi::{c_char, c_void, CStr};

    extern "system" {
        fn LoadLibraryW(name: *const u16) -> *mut c_void;
        fn GetProcAddress(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    pub(super) fn open(name: &CStr) -> *mut c_void {
        let wide: Vec<u16> = name.to_string_lossy().encode_utf16().chain([0]).collect();
        // SAFETY: the name is NUL-terminated.
        unsafe { LoadLibraryW(wide.as_ptr()) }
    }

    pub(super) fn reason(name: &CStr) -> String {
        name.to_string_lossy().into_owned()
    }

    pub(super) unsafe fn find(library: *mut c_void, name: &CStr) -> *mut c_void {
        // SAFETY: the caller guarantees that `library` is a loaded library.
        unsafe { GetProcAddress(library, name.as_ptr()) }
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use crate::errno::EINVAL;
    use crate::validate::library::*;
    use fletching_testing::library::folder;

    fn open_file(name: &str) -> Result<Handle, Error> {
        open(Some(
            folder().join(libloading::library_filename(name)).into(),
        ))
    }

    #[test]
    fn open_missing_library_error_names_path_and_fix() {
        let error = open(Some("/missing/libfletching.so".into())).err().unwrap();
        let text = error.message();
        assert_eq!(error.code(), ENOENT, "{text}");
        assert!(text.contains("/missing/libfletching.so"), "{text}");
        assert!(text.contains("hint: install it, add"), "{text}");
    }

    #[test]
    fn open_other_library_returns_error() {
        let error = open_file("fletching_corpus").err().unwrap();
        assert_eq!(error.code(), ENOSYS, "{}", error.message());
    }

    #[test]
    fn check_layout_of_other_structs_returns_error() {
        let library = open_file("fletching").unwrap();
        // SAFETY: the function has no requirements.
        let error = check_layout(&library, unsafe { layout() } + 1).unwrap_err();
        assert_eq!(error.code(), EINVAL);
        assert!(error
            .message()
            .starts_with("layout: expected the structs of version"));
    }

    #[test]
    fn find_missing_function_returns_error() {
        let library = open_file("fletching").unwrap();
        // SAFETY: the function does not exist.
        let error = unsafe { find::<usize>(&library, c"FletchingMissing") }.unwrap_err();
        assert_eq!(error.code(), ENOSYS);
        assert!(error.message().contains("has no FletchingMissing"));
    }
}

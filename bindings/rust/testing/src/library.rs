// SPDX-License-Identifier: Apache-2.0

//! Loads the test libraries that `make` builds.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::Library;

/// Returns the folder of the test libraries: `FLETCHING_LIB_DIR`, or `build/lib` of the repository.
pub fn folder() -> PathBuf {
    match std::env::var_os("FLETCHING_LIB_DIR") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../build/lib"),
    }
}

/// Loads `name` from [`folder`], until the process exits: structs that it fills point to its code.
pub fn open(name: &str) -> Result<&'static Library, String> {
    keep(&folder().join(libloading::library_filename(name)))
}

fn keep(path: &Path) -> Result<&'static Library, String> {
    // SAFETY: the test libraries run no code when they are loaded.
    let library = unsafe { Library::new(path) }
        .map_err(|error| format!("cannot load {}: {error}; run `make`", path.display()))?;
    let library: &'static Library = Box::leak(Box::new(library));
    // Referenced for leak detectors.
    static KEPT: Mutex<Vec<&Library>> = Mutex::new(Vec::new());
    KEPT.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(library);
    Ok(library)
}

/// Loads a CUDA or HIP stand-in, before other code looks for the library by name.
///
/// # Panics
///
/// If it is missing.
pub fn load_stand_in(name: &str) -> &'static Library {
    keep(&folder().join("standin").join(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the function `symbol` of a library from [`open`].
///
/// # Safety
///
/// `F` is the function pointer type of this function.
pub unsafe fn function<F: Copy>(library: &'static Library, symbol: &str) -> Result<F, String> {
    // SAFETY: the caller guarantees that `F` is the function's type; the library is never unloaded.
    match unsafe { library.get::<F>(symbol.as_bytes()) } {
        Ok(function) => Ok(*function),
        Err(error) => Err(format!(
            "{}: no {symbol}: {error}; run `make`",
            folder().display()
        )),
    }
}

/// Declares a struct of function pointers with a `load` function that fills it from a library.
#[macro_export]
macro_rules! library {
    ($(#[$doc:meta])* pub struct $name:ident from $library:literal {
        $($function:ident = $symbol:ident($($argument:ty),*) $(-> $result:ty)?;)+
    }) => {
        $(#[$doc])*
        #[allow(missing_docs, reason = "the C header documents the functions")]
        pub struct $name {
            $(pub $function: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl $name {
            /// Loads the library. An error names the path and the fix.
            pub fn load() -> Result<Self, String> {
                let library = $crate::library::open($library)?;
                // SAFETY: the types match the library's header.
                unsafe {
                    Ok(Self {
                        $($function: $crate::library::function(library, stringify!($symbol))?,)+
                    })
                }
            }
        }
    };
}

// SPDX-License-Identifier: Apache-2.0

//! The languages that data passes through inside this process: `libfletching_transit_LANGUAGE.so`.

use std::ffi::{c_char, c_int, CStr};

use fletching::abi::{ArrowDeviceArray, ArrowSchema};
use fletching::{DeviceArray, Error, Schema};
use fletching_testing::library;

type Transit = unsafe extern "C" fn(
    *mut ArrowSchema,
    *mut ArrowDeviceArray,
    *mut ArrowSchema,
    *mut ArrowDeviceArray,
    *mut c_char,
    usize,
) -> c_int;
type Count = unsafe extern "C" fn() -> i64;

/// The functions of `tests/roundtrip/transit.h` of one language.
pub struct Hop {
    pub language: String,
    transit: Transit,
    exported: Count,
    released: Count,
}

/// The languages that `FLETCHING_CHAIN` names, such as "cpp go rust".
pub fn load() -> Result<Vec<Hop>, Error> {
    let names = std::env::var("FLETCHING_CHAIN").unwrap_or_default();
    let hops = names
        .split_whitespace()
        .map(Hop::load)
        .collect::<Result<Vec<_>, _>>()?;
    if hops.is_empty() {
        let text = "FLETCHING_CHAIN: names no language: expected \"cpp ...\"";
        return Err(Error::new(libc::EINVAL, text));
    }
    Ok(hops)
}

impl Hop {
    fn load(language: &str) -> Result<Self, Error> {
        let missing = |problem: String| Error::new(libc::ENOENT, problem);
        let library = library::open(&format!("fletching_transit_{language}")).map_err(missing)?;
        // SAFETY: the types match transit.h.
        unsafe {
            Ok(Self {
                language: language.into(),
                transit: library::function(library, "FletchingTransitArray").map_err(missing)?,
                exported: library::function(library, "FletchingTransitExported")
                    .map_err(missing)?,
                released: library::function(library, "FletchingTransitReleased")
                    .map_err(missing)?,
            })
        }
    }

    /// Moves both in, and returns the result under the language's own release.
    pub fn send(&self, schema: Schema, array: DeviceArray) -> Result<(Schema, DeviceArray), Error> {
        let (mut schema, mut array) = (schema.into_raw(), array.into_raw());
        let (mut out_schema, mut out_array) = (Schema::default(), DeviceArray::default());
        let mut message: [c_char; 1024] = [0; 1024];
        // SAFETY: all four are structs of the interface. Those that the language has not moved out
        // are still ours.
        unsafe {
            let (text, size) = (message.as_mut_ptr(), message.len());
            let (to_schema, to_array) = (out_schema.out(), out_array.out());
            let code = (self.transit)(&mut schema, &mut array, to_schema, to_array, text, size);
            drop((Schema::from_raw(schema), DeviceArray::from_raw(array)));
            if code != 0 {
                let text = CStr::from_ptr(text).to_string_lossy();
                return Err(Error::new(code, format!("{}: {text}", self.language)));
            }
        }
        Ok((out_schema, out_array))
    }

    /// How many structs the language has exported.
    pub fn exported(&self) -> i64 {
        // SAFETY: takes nothing.
        unsafe { (self.exported)() }
    }

    /// How many of its releases have run.
    pub fn released(&self) -> i64 {
        // SAFETY: takes nothing.
        unsafe { (self.released)() }
    }
}

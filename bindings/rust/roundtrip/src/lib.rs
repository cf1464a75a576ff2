// SPDX-License-Identifier: Apache-2.0

//! The library that `transit.h` declares: passes structs on with separate release callbacks.

mod reexport;
pub mod transit;

// SPDX-License-Identifier: Apache-2.0

//! The library that `transit.h` declares: passes structs on under releases of its own.

mod reexport;
pub mod transit;

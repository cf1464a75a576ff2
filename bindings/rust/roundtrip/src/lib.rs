// SPDX-License-Identifier: Apache-2.0

//! What the round trip does on the crate `fletching`: it writes structs as text, and passes them on
//! under releases of its own. As a C library it is what `transit.h` declares.

pub mod dump;
pub mod producer;
pub mod reexport;
pub mod transit;

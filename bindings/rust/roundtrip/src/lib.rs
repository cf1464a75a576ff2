// SPDX-License-Identifier: Apache-2.0

//! What the round trip does to the structs that it gets: checks them, writes them as text, and hands
//! them on under release callbacks of its own. As a C library it is what `transit.h` declares.

pub mod check;
pub mod describe;
pub mod error;
pub mod forward;
mod layout;
pub mod owned;
pub mod stream;
pub mod transit;
pub mod tree;

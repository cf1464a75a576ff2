// SPDX-License-Identifier: Apache-2.0

//! The Arrow C data, device data, stream, device stream and async device stream interfaces and DLPack
//! as C sees them: structs with public fields, constants, and the tables of device types and of
//! data-type codes. Nothing here allocates, waits or releases.
//!
//! # Ownership
//!
//! A struct with a `release` callback owns what it points to, and [`release`](ArrowArray::release)
//! runs exactly once. So the structs are neither `Copy` nor `Clone`, and have no `Drop`: to move one
//! that foreign code can reach, copy it with [`core::ptr::read`] and set `release` of the source to
//! `None`. A struct whose `release` is `None` is released.
//!
//! # Safety
//!
//! The fields are plain data: reading and writing them is safe, following a pointer or calling a
//! callback is not. Whoever does so makes sure that the struct was filled by a producer that keeps
//! to the specification, that it has not been released, and that the thread is one that the callback
//! allows; the docs of each callback say which. A callback must not panic.
//!
//! # Threads
//!
//! Raw pointers make the structs neither `Send` nor `Sync`. A live struct may be handed to another
//! thread, but never used by two at once.
#![no_std]

mod constants;
mod data_type_codes;
mod devices;
mod layout;
mod operations;
mod pointers;
mod types;

pub use constants::*;
pub use data_type_codes::*;
pub use devices::*;
pub use types::*;

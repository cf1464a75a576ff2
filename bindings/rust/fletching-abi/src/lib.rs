// SPDX-License-Identifier: Apache-2.0

#![doc = include_str!("../README.md")]
#![no_std]

mod constants;
mod data_type_codes;
mod devices;
pub mod errno;
mod layout;
mod operations;
mod pointers;
mod types;

pub use constants::*;
pub use data_type_codes::*;
pub use devices::*;
pub use types::*;

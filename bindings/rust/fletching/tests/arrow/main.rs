// SPDX-License-Identifier: Apache-2.0

//! To arrow-rs and back.

#![cfg(feature = "arrow")]

mod alignment;
mod arrays;
mod checks;
mod corpus;
mod streams;

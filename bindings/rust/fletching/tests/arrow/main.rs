// SPDX-License-Identifier: Apache-2.0

//! Conversions to and from arrow-rs.

#![cfg(feature = "arrow")]

mod alignment;
mod arrays;
mod checks;
mod corpus;
mod streams;

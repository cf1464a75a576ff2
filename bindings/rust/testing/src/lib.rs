// SPDX-License-Identifier: Apache-2.0

//! Helpers of the Rust tests: the list of fields in Rust, the oracle to compare it with, and the
//! cells in which results are reported. Never published.

pub mod bits;
pub mod cells;
pub mod corpus;
pub mod entries;
pub mod fields;
pub mod library;
pub mod message;
pub mod oracle;

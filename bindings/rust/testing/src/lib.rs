// SPDX-License-Identifier: Apache-2.0

//! What the Rust tests share: the list of fields as Rust sees them, the oracle to hold it against,
//! and the cells in which results are reported. Never published.

pub mod bits;
pub mod cells;
pub mod corpus;
pub mod entries;
pub mod fields;
pub mod library;
pub mod message;
pub mod oracle;

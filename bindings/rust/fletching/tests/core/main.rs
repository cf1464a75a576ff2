// SPDX-License-Identifier: Apache-2.0

//! Tests of the crate's core. A test named `rule_release_once` tests the rule `release.once` of
//! spec/rules/.

mod foreign;

mod array_builder;
mod array_builder_errors;
mod columns;
mod errors;
mod metadata;
mod moved_child;
mod nesting;
mod ownership;
mod safe_sequences;
mod schema_builder;
mod schema_copy;
mod sealed;
mod shared;
mod take_child;

#[cfg(not(miri))]
mod properties;

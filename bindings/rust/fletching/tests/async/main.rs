// SPDX-License-Identifier: Apache-2.0

//! The async interface: executors, races, a storm, and the rules. The traces are replayed by the
//! crate's own tests.

#![cfg(feature = "async")]

mod behavior;
mod consumer_rules;
mod producer_rules;
mod races;
mod storm;
mod support;

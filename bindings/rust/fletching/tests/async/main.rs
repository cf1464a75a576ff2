// SPDX-License-Identifier: Apache-2.0

//! The async interface: executors, races, a storm, and the rules. The traces are replayed by the
//! crate's own tests.

#![cfg(feature = "async")]

mod behavior;
mod consumer_peer;
mod consumer_rules;
mod consumer_task_rules;
mod endings;
mod producer_call_rules;
mod producer_data_rules;
mod producer_peer;
mod producer_rules;
mod races;
mod storm;
mod support;
mod wakers;

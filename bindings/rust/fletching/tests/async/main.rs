// SPDX-License-Identifier: Apache-2.0

//! The async interface: executors, races, a stress test. The crate's unit tests replay the traces,
//! and the conformance suite checks the rules.

#![cfg(feature = "async")]

mod behavior;
mod consumer_peer;
mod endings;
mod producer_peer;
mod races;
mod storm;
mod support;
mod wakers;

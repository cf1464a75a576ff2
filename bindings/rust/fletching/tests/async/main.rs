// SPDX-License-Identifier: Apache-2.0

//! The async interface: executors, races, a storm. The crate's own tests replay the traces, and the
//! conformance suite plays the rules.

#![cfg(feature = "async")]

mod behavior;
mod consumer_peer;
mod endings;
mod producer_peer;
mod races;
mod storm;
mod support;
mod wakers;

// SPDX-License-Identifier: Apache-2.0

//! Runs the conformance suite (tests/conformance) with the crate as two subjects. Each group is a
//! test.

#![cfg(not(miri))]

mod run;
mod subject;
mod values;

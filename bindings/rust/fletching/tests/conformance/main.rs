// SPDX-License-Identifier: Apache-2.0

//! The conformance suite (tests/conformance) with the crate as two subjects. Each group is a test.

#![cfg(not(miri))]

mod run;
mod subject;
mod values;

// SPDX-License-Identifier: Apache-2.0

//! DLPack in both directions. The tests `rule_` have the names of rules. The types, shapes and orders
//! are the core's, which cpp/tests/dlpack_*_test.cpp tests.

#![cfg(feature = "dlpack")]
// Miri cannot call the core, which is C: it runs what reads foreign tensors in Rust alone.
#![cfg_attr(miri, allow(dead_code, unused_imports, reason = "of the other tests"))]

#[cfg(not(miri))]
mod create;
#[cfg(not(miri))]
mod exchange;
#[cfg(not(miri))]
mod export;
#[cfg(not(miri))]
mod export_rules;
#[cfg(not(miri))]
mod import;
#[cfg(not(miri))]
mod import_rules;
mod imported;
#[cfg(feature = "ndarray")]
mod ndarrays;
#[cfg(not(miri))]
mod opaque;
#[cfg(not(miri))]
mod properties;
#[cfg(not(miri))]
mod stream;
mod support;
mod tensor;

// SPDX-License-Identifier: Apache-2.0

//! DLPack in both directions. Tests named `rule_` test the rule of that name. Types, shapes and
//! orders are handled by the core and tested in cpp/tests/dlpack_*_test.cpp.

#![cfg(feature = "dlpack")]
// Miri cannot call the C core, so it only runs tests that read foreign tensors in Rust.
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
mod import_support;
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

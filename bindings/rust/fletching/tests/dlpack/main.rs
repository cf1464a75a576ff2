// SPDX-License-Identifier: Apache-2.0

//! DLPack in both directions. The tests `rule_` have the names of rules.

#![cfg(feature = "dlpack")]

mod export;
mod export_rules;
mod import;
mod import_rules;
mod imported;
mod stream;
mod support;
mod tensor_shape;

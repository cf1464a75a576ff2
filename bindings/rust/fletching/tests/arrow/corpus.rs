// SPDX-License-Identifier: Apache-2.0

//! The corpus, imported by the adapter: it rejects malformed cases before arrow-rs reads them.

use std::sync::Arc;

use crate::arrow::{to_array, to_field};
use crate::arrow_data::layout;
use crate::arrow_schema::{DataType, Field};
use fletching::{Array, DeviceArray, Schema};
use fletching_testing::corpus::{each, Case, Kind};

use crate::arrays::checked;

/// arrow-rs before 56 rejects decimals of 32 and 64 bits.
const SINCE_56: [&str; 4] = [
    "decimal.32-bits",
    "decimal.64-bits",
    "spelling.decimal-32",
    "spelling.decimal-64",
];
/// arrow-rs before 57 rejects run ends with an offset, and list views, for which it expects variadic
/// buffers.
const SINCE_57: [&str; 5] = [
    "large-list-view.",
    "list-view.",
    "run-ends-16.outside",
    "run-ends-32.outside",
    "run-ends-64.outside",
];

fn is_unknown(name: &str) -> bool {
    let decimal = fletching::SchemaBuilder::new("d:9,2,64").build().unwrap();
    let list_view = DataType::ListView(Arc::new(Field::new("item", DataType::Int8, true)));
    let is_one_of = |names: &[&str]| names.iter().any(|start| name.starts_with(start));
    is_one_of(&SINCE_56) && to_field(&decimal).is_err()
        || is_one_of(&SINCE_57) && layout(&list_view).variadic
}

fn check(case: &Case, error: Option<fletching::Error>) {
    let is_unknown = is_unknown(case.name.to_str().unwrap());
    let accepted = case.accepted && !case.is_exception(c"arrow-rs") && !is_unknown;
    assert_eq!(error.is_none(), accepted, "{:?}: {error:?}", case.name);
}

#[test]
fn corpus_schemas_match_verdicts() {
    each(Kind::Schema, |case| {
        let mut schema = Schema::default();
        // SAFETY: the slot belongs to an owner.
        unsafe { case.export_schema(schema.out()) };
        check(case, to_field(&schema).err());
    });
}

#[test]
fn corpus_arrays_match_verdicts() {
    each(Kind::Array, |case| {
        if case.needs_data() {
            return; // not every arrow-rs version detects every error
        }
        let mut schema = Schema::default();
        // SAFETY: the slot belongs to an owner.
        unsafe { case.export_schema(schema.out()) };
        let mut array = DeviceArray::default();
        // SAFETY: the slot belongs to an owner.
        unsafe { case.export_array(array.out()) };
        let array = Array::try_from(array).expect("an array on the CPU");
        // SAFETY: the buffers belong to a well-formed case, or the array is rejected.
        check(case, unsafe { to_array(&schema, array, checked()) }.err());
    });
}

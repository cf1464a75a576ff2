// SPDX-License-Identifier: Apache-2.0

//! The corpus through the adapter: what the verdict refuses is refused before arrow-rs reads it.

use fletching::arrow::{to_array, to_field};
use fletching::{Array, DeviceArray, Schema};
use fletching_testing::corpus::{each, Case, Kind};

use crate::arrays::checked;

fn check(case: &Case, error: Option<fletching::Error>) {
    let accepted = case.accepted && !case.is_exception(c"arrow-rs");
    assert_eq!(error.is_none(), accepted, "{:?}: {error:?}", case.name);
}

#[test]
fn schemas_get_their_verdict() {
    each(Kind::Schema, |case| {
        let mut schema = Schema::default();
        case.export_schema(schema.out());
        check(case, to_field(&schema).err());
    });
}

#[test]
fn arrays_get_their_verdict() {
    each(Kind::Array, |case| {
        let mut schema = Schema::default();
        case.export_schema(schema.out());
        let mut array = DeviceArray::default();
        case.export_array(array.out());
        let array = Array::try_from(array).expect("an array on the CPU");
        // SAFETY: the buffers are those of a well-formed case, or the array is refused.
        check(case, unsafe { to_array(&schema, array, checked()) }.err());
    });
}

// SPDX-License-Identifier: Apache-2.0

//! The corpus through the adapter: it refuses bad cases before arrow-rs reads them.

use fletching::arrow::{to_array, to_field};
use fletching::{Array, DeviceArray, Schema};
use fletching_testing::corpus::{each, Case, Kind};

use crate::arrays::checked;

fn check(case: &Case, error: Option<fletching::Error>) {
    // arrow-rs 54 has no decimals of 32 and 64 bits.
    let decimal = fletching::SchemaBuilder::new("d:9,2,64").build().unwrap();
    let narrow = [
        c"decimal.32-bits",
        c"decimal.64-bits",
        c"spelling.decimal-32",
        c"spelling.decimal-64",
    ];
    let is_narrow = narrow.contains(&case.name.as_c_str());
    let is_unknown = is_narrow && to_field(&decimal).is_err();
    let accepted = case.accepted && !case.is_exception(c"arrow-rs") && !is_unknown;
    assert_eq!(error.is_none(), accepted, "{:?}: {error:?}", case.name);
}

#[test]
fn schemas_get_their_verdict() {
    each(Kind::Schema, |case| {
        let mut schema = Schema::default();
        // SAFETY: the slot of an owner.
        unsafe { case.export_schema(schema.out()) };
        check(case, to_field(&schema).err());
    });
}

#[test]
fn arrays_get_their_verdict() {
    each(Kind::Array, |case| {
        if case.needs_data() {
            return; // not every arrow-rs looks for every fault
        }
        let mut schema = Schema::default();
        // SAFETY: the slot of an owner.
        unsafe { case.export_schema(schema.out()) };
        let mut array = DeviceArray::default();
        // SAFETY: the slot of an owner.
        unsafe { case.export_array(array.out()) };
        let array = Array::try_from(array).expect("an array on the CPU");
        // SAFETY: the buffers are those of a well-formed case, or the array is refused.
        check(case, unsafe { to_array(&schema, array, checked()) }.err());
    });
}

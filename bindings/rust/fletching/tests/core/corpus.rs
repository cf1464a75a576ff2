// SPDX-License-Identifier: Apache-2.0

//! The corpus with the crate's owners: every struct arrives unchanged, and is released once.

use fletching::{ArrayStream, DeviceArray, Schema};
use fletching_testing::corpus::{each, Kind};

#[test]
fn schemas_are_moved_unchanged() {
    each(Kind::Schema, |case| {
        let mut schema = Schema::default();
        case.export_schema(schema.out());
        let moved = Box::new(schema);
        case.compare_schema(moved.as_raw());
    });
}

#[test]
fn arrays_are_moved_unchanged() {
    each(Kind::Array, |case| {
        let mut array = DeviceArray::default();
        case.export_array(array.out());
        let moved = Box::new(array);
        case.compare_array(moved.as_raw());
    });
}

#[test]
fn streams_give_their_batches_and_their_error() {
    each(Kind::Stream, |case| {
        let mut stream = ArrayStream::default();
        case.export_stream(stream.out());
        let (mut batches, mut code) = (0, 0);
        for batch in stream {
            match batch {
                Ok(_) => batches += 1,
                Err(error) => code = error.code(),
            }
        }
        assert_eq!((batches, code), case.batches(), "{:?}", case.name);
    });
}

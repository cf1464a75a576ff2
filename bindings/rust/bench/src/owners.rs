// SPDX-License-Identifier: Apache-2.0

//! The cases of `cpp/bench/c/raw.c`, written with the crate `fletching`.

mod peer;

use std::mem::MaybeUninit;
use std::process::ExitCode;
use std::ptr;
use std::sync::LazyLock;

use fletching::dlpack::{from_dlpack, to_dlpack};
use fletching::{
    ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Node, Schema,
    SchemaBuilder,
};

use peer::{Data, COLUMNS, ROWS};

extern "C" fn move_release() {
    let mut source = MaybeUninit::uninit();
    peer::produce(source.as_mut_ptr());
    // SAFETY: the producer has filled the struct.
    let array = unsafe { DeviceArray::move_from(source.as_mut_ptr()) };
    drop(array);
}

fn make_leaf() -> DeviceArray {
    let capacity = ArrayCapacity {
        arrays: 0,
        buffers: 2,
    };
    let mut builder = ArrayBuilder::new(capacity, Data::new()).expect("room for a leaf");
    let buffers = [ptr::null(), builder.object().columns()[0]];
    builder.set(Node::ROOT, ArrayValues::of(ROWS), &buffers);
    builder.finish_on(ArrowDeviceType::CPU, -1).expect("a leaf")
}

extern "C" fn leaf() {
    let array = make_leaf();
    let moved = array;
    drop(moved);
}

extern "C" fn tensor() {
    // A user already has the schema.
    static SCHEMA: LazyLock<Schema> =
        LazyLock::new(|| SchemaBuilder::new("l").build().expect("a schema"));
    let mut array = make_leaf();
    let tensor = to_dlpack(&SCHEMA, &mut array, &Default::default()).expect("a tensor");
    let imported = from_dlpack(tensor, &Default::default()).expect("an array");
    drop(imported);
}

extern "C" fn handoff() {
    let capacity = ArrayCapacity {
        arrays: COLUMNS,
        buffers: 2 * COLUMNS + 1,
    };
    let mut builder = ArrayBuilder::new(capacity, Data::new()).expect("room for a batch");
    builder.set(Node::ROOT, ArrayValues::of(ROWS), &[ptr::null()]);
    let first = builder.add_children(Node::ROOT, COLUMNS);
    for (index, column) in builder.object().columns().iter().enumerate() {
        builder.set(
            first.sibling(index),
            ArrayValues::of(ROWS),
            &[ptr::null(), *column],
        );
    }
    let array = builder
        .finish_on(ArrowDeviceType::CPU, -1)
        .expect("a batch");
    peer::consume(array.into_raw());
}

fn main() -> ExitCode {
    let code = peer::run(&[
        ("move_release", move_release),
        ("leaf", leaf),
        ("handoff", handoff),
        ("tensor", tensor),
    ]);
    ExitCode::from(code as u8)
}

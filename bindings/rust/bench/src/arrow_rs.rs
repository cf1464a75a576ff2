// SPDX-License-Identifier: Apache-2.0

//! The cases of `cpp/bench/c/raw.c` as a user of arrow-rs writes them. arrow-rs has no device
//! array, so the device fields are set separately.

mod peer;

use std::process::ExitCode;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Fields};
use fletching::abi::{ArrowArray, ArrowDeviceArray, ArrowDeviceType};

use peer::{Data, COLUMNS, ROWS};

fn column(data: &Arc<Data>, index: usize) -> ArrayData {
    let values =
        NonNull::new(data.columns()[index].cast_mut().cast()).expect("a column has values");
    let size = ROWS as usize * size_of::<i64>();
    // SAFETY: only the peer reads the values, and it knows their size.
    unsafe {
        let buffer = Buffer::from_custom_allocation(values, size, Arc::clone(data) as _);
        ArrayData::builder(DataType::Int64)
            .len(ROWS as usize)
            .add_buffer(buffer)
            .build_unchecked()
    }
}

fn export(data: &ArrayData) -> ArrowDeviceArray {
    let array = FFI_ArrowArray::new(data);
    // SAFETY: both types are the struct of the C data interface.
    let array = unsafe { std::mem::transmute::<FFI_ArrowArray, ArrowArray>(array) };
    ArrowDeviceArray {
        array,
        device_id: -1,
        device_type: ArrowDeviceType::CPU,
        ..ArrowDeviceArray::zeroed()
    }
}

extern "C" fn move_release() {
    let mut source = ArrowDeviceArray::zeroed();
    peer::produce(&mut source);
    // SAFETY: the producer has filled the struct, which is the same in both crates.
    drop(unsafe { FFI_ArrowArray::from_raw((&raw mut source.array).cast()) });
}

extern "C" fn leaf() {
    let mut source = export(&column(&Arc::new(Data::new()), 0));
    let mut moved = source.move_out();
    // SAFETY: the array was moved out.
    unsafe { ArrowDeviceArray::release_once(&mut moved) };
}

extern "C" fn handoff() {
    let data = Arc::new(Data::new());
    let fields: Fields = (0..COLUMNS)
        .map(|_| Field::new("", DataType::Int64, true))
        .collect::<Vec<_>>()
        .into();
    let mut batch = ArrayData::builder(DataType::Struct(fields)).len(ROWS as usize);
    for index in 0..COLUMNS {
        batch = batch.add_child_data(column(&data, index));
    }
    // SAFETY: as in `column`.
    peer::consume(export(&unsafe { batch.build_unchecked() }));
}

fn main() -> ExitCode {
    let code = peer::run(&[
        ("move_release", move_release),
        ("leaf", leaf),
        ("handoff", handoff),
    ]);
    ExitCode::from(code as u8)
}

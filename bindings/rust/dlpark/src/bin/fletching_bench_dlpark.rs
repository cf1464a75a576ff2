// SPDX-License-Identifier: Apache-2.0

//! A program of `make bench-rust`: `PROGRAM fletching|dlpark ROUNDS` makes a tensor of a `Vec`,
//! views it as an array of `ndarray`, and deletes it.

use std::hint::black_box;
use std::process::ExitCode;

use dlpark::allocation::dynamic::Initialized;
use dlpark::ffi::DLManagedTensorVersioned;
use dlpark::TryFromDlpack;
use fletching::dlpack::DlpackTensor;
use ndarray::{Array1, ArrayViewD};

const ROWS: usize = 64;

fn by_fletching() {
    let tensor = DlpackTensor::from_vec(vec![0i64; ROWS], &[ROWS as i64]).unwrap();
    // SAFETY: the values are on the CPU, and nobody writes to them.
    black_box(unsafe { tensor.view::<i64>() }.unwrap());
}

fn by_dlpark() {
    let values = Box::new(Array1::from(vec![0i64; ROWS]));
    let initialized = Initialized::<DLManagedTensorVersioned>::try_from(values).unwrap();
    // SAFETY: the array owns its values.
    let tensor = unsafe { initialized.finish() };
    // SAFETY: the values are on the CPU, and nobody writes to them.
    black_box(unsafe { ArrayViewD::<i64>::try_from_dlpack(&tensor, ()) }.unwrap());
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (run, rounds): (fn(), _) = match &arguments[..] {
        [name, rounds] if name == "fletching" => (by_fletching, rounds),
        [name, rounds] if name == "dlpark" => (by_dlpark, rounds),
        _ => {
            eprintln!("usage: fletching_bench_dlpark fletching|dlpark ROUNDS");
            return ExitCode::from(2);
        }
    };
    for _ in 0..rounds.parse().expect("a number of rounds") {
        run();
    }
    ExitCode::SUCCESS
}

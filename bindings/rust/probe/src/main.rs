// SPDX-License-Identifier: Apache-2.0

//! Prints the Rust names of device types and data-type codes. Each number is stored in a struct
//! first.

use fletching_abi::{ArrowDeviceArray, ArrowDeviceType, DLDataType, DLDataTypeCode};

fn main() {
    for argument in std::env::args().skip(1) {
        let (kind, number) = argument.split_once(':').expect("kind:number");
        if kind == "code" {
            let mut data_type = DLDataType::zeroed();
            data_type.code = DLDataTypeCode(number.parse().expect("a number"));
            println!("{}", data_type.code);
            continue;
        }
        let mut array = ArrowDeviceArray::zeroed();
        array.device_type = ArrowDeviceType(number.parse().expect("a number"));
        println!("{}", array.device_type);
    }
}

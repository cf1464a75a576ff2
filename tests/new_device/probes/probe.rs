// SPDX-License-Identifier: Apache-2.0

//! Prints how Rust names device types: each number goes through a device array.

use fletching_abi::{ArrowDeviceArray, ArrowDeviceType};

fn main() {
    for number in std::env::args().skip(1) {
        let mut array = ArrowDeviceArray::zeroed();
        array.device_type = ArrowDeviceType(number.parse().expect("a number"));
        println!("{}", array.device_type);
    }
}

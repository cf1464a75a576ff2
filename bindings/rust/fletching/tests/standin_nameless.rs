// SPDX-License-Identifier: Apache-2.0

//! A library that lacks a function that no operation calls. In a process of its own.

#![cfg(all(feature = "runtime", unix, not(miri)))]

mod gpu;

use gpu::alone;
use gpu::api::{use_stand_ins, Api, Cuda, Gated};
use gpu::released::counted;

#[test]
fn only_what_an_operation_calls_has_to_be_there() {
    let _alone = alone();
    use_stand_ins("standin-nameless");
    assert!(Cuda::api().cu_device_get_name.function.is_none());
    let gated = Gated::<Cuda>::new(0);
    let (mut array, _, _) = counted(Cuda::TYPE, 0);
    array.export_with_event(&gated.producer()).unwrap();
    array.synchronize().unwrap();
    drop(array);
    let (array, releases, _) = counted(Cuda::TYPE, 0);
    array.release_after(&gated.consumer()).unwrap();
    releases.wait_for(1);
    gated.end();
}

// SPDX-License-Identifier: Apache-2.0

//! A device that is lost while the driver reports it from every call. In a process of its own: the
//! driver does not let threads leave the mode of captures that they are in.

#![cfg(all(feature = "runtime", unix, not(miri)))]

mod gpu;

use std::thread;

use fletching::runtime::pending_releases;
use gpu::alone;
use gpu::api::{Api, Cuda, Gated, Hip};
use gpu::released::counted;

/// Only the event's own answer says whether it is its device that is lost.
fn a_loss_that_every_call_reports_is_noticed<A: Api>() {
    let _alone = alone();
    let gated = Gated::<A>::new(0);
    gated.shut();
    let (array, releases, _) = counted(A::TYPE, 0);
    array.release_after(&gated.producer()).unwrap();
    gated
        .control
        .set_fault(&format!("{}:*:700", A::EXCHANGE_MODE));
    let before = gated.control.calls(A::EXCHANGE_MODE);
    while gated.control.calls(A::EXCHANGE_MODE) < before + 10 {
        thread::yield_now();
    }
    assert_eq!(
        releases.count(),
        0,
        "of another device, for all that is known"
    );
    gated.control.set_fault(&format!("{}:*:700", A::QUERY));
    releases.wait_for(1);
    assert_eq!(pending_releases().pending, 0);
    gated.control.reset_faults();
}

#[test]
fn cuda_loss() {
    a_loss_that_every_call_reports_is_noticed::<Cuda>();
}

#[test]
fn hip_loss() {
    a_loss_that_every_call_reports_is_noticed::<Hip>();
}

// SPDX-License-Identifier: Apache-2.0

//! Libraries that lack what the tables call optional. In a process of its own: a library that is
//! loaded already is preferred.

#![cfg(all(feature = "runtime", unix, not(miri)))]

mod gpu;

use fletching::runtime::OnCapture;
use gpu::alone;
use gpu::api::{use_stand_ins, Api, Cuda, Gated, Handle, Hip};
use gpu::released::counted;

fn an_old_library_does_what_it_can<A: Api>() {
    let _alone = alone();
    use_stand_ins("standin-old");
    let gated = Gated::<A>::new(0);
    let (mut array, _, _) = counted(A::TYPE, 0);
    array.export_with_event(&gated.producer()).unwrap();
    array.wait_on(&gated.consumer()).unwrap();
    array
        .wait_on_with(&gated.consumer(), OnCapture::External)
        .unwrap(); // nothing is captured
    array.synchronize().unwrap();
    assert!(array.is_ready().unwrap());
    drop(array);
    let (array, releases, _) = counted(A::TYPE, 0);
    array.release_after(&gated.consumer()).unwrap();
    releases.wait_for(1);
    gated.end();
}

#[test]
fn old_cuda_does_what_it_can() {
    an_old_library_does_what_it_can::<Cuda>();
}

#[test]
fn old_hip_does_what_it_can() {
    an_old_library_does_what_it_can::<Hip>();
}

#[test]
fn old_cuda_has_no_external_event() {
    let _alone = alone();
    use_stand_ins("standin-old");
    let gated = Gated::<Cuda>::new(0);
    let (begin, end, destroy) = {
        let captures = Cuda::captures();
        (captures.begin, captures.end, captures.destroy)
    };
    let (mut array, _, _) = counted(Cuda::TYPE, 0);
    let mut graph: Handle = std::ptr::null_mut();
    // SAFETY: the stream is alive.
    assert_eq!(unsafe { begin(gated.producer, 0) }, 0);
    let result = array.export_with_event_with(&gated.producer(), OnCapture::External);
    let error = result.unwrap_err();
    assert_eq!(error.code(), libc::ENOTSUP);
    assert!(
        error.message().contains("cuEventRecordWithFlags"),
        "{error}"
    );
    assert!(error.message().contains("CUDA 11.1"), "{error}");
    assert!(array.sync_event().is_null());
    // SAFETY: as above.
    unsafe {
        assert_eq!(end(gated.producer, &mut graph), 0);
        assert_eq!(destroy(graph), 0);
    }
    gated.end();
}

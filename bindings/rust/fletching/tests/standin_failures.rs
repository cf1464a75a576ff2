// SPDX-License-Identifier: Apache-2.0

//! Calls of CUDA and HIP that fail, on the stand-ins: each is an error, and nothing leaks.

#![cfg(all(feature = "runtime", unix, not(miri)))]

#[macro_use]
mod gpu;

use std::collections::BTreeSet;
use std::thread;

use fletching::runtime::{pending_releases, Stream};
use fletching::Error;

use gpu::api::{Api, Cuda, Gated};
use gpu::released::counted;
use gpu::{alone, error};

both! {
    every_failure_is_an_error => cuda_failures, hip_failures;
    a_refused_query_is_not_done => cuda_refused_query, hip_refused_query;
    a_lost_device_releases => cuda_lost_device, hip_lost_device;
}

fn every_failure_is_an_error<A: Api>() {
    let gated = Gated::<A>::new(0);
    let mut event = A::make_event();
    A::record(event, gated.producer);
    A::synchronize_stream(gated.producer);
    let awaited = A::array_with(&mut event);
    let (stream, null) = (gated.consumer(), Stream::legacy(A::TYPE));
    let control = gated.control;
    let export = || {
        let (mut array, releases, _) = counted(A::TYPE, 0);
        let result = array.export_with_event(&stream);
        assert_eq!(result.is_ok(), !array.sync_event().is_null());
        drop(array);
        assert_eq!(releases.count(), 1);
        result
    };
    let defer = || {
        let (array, releases, _) = counted(A::TYPE, 0);
        let result = array.release_after(&stream).map_err(|failed| {
            let error = failed.error().clone();
            assert_eq!(releases.count(), 0);
            drop(failed.into_array());
            error
        });
        releases.wait_for(1);
        control.settle_releases(); // the next fault is not for the thread that released it
        result
    };
    type Operation<'a> = &'a (dyn Fn() -> Result<(), Error> + Sync);
    let operations: [Operation; 6] = [
        &|| awaited.synchronize(),
        &|| awaited.wait_on(&stream),
        &|| awaited.wait_on(&null),
        &|| awaited.is_ready().map(drop),
        &export,
        &defer,
    ];
    const RELEASING: usize = 4; // from here on the operations release an array as well
    let mut failed = BTreeSet::new();
    let mut run_all = |function: &str, nth: i64| {
        for (index, operation) in operations.iter().enumerate() {
            let (current, alive) = (A::current(), control.alive());
            let calls = control.calls(function);
            let fault = format!("{function}:{nth}:{}", A::ERROR);
            control.set_fault(&fault);
            let result = operation();
            let has_failed = control.calls(function) >= calls + nth;
            control.reset_faults();
            assert_eq!(A::current(), current, "{fault} of {index}");
            assert_eq!(
                control.alive(),
                alive,
                "{fault} of {index}: something leaks"
            );
            // A release has no way to report an error.
            assert!(
                !has_failed || result.is_err() || index >= RELEASING,
                "{fault} of {index} is lost"
            );
            if let Err(error) = result {
                assert!(has_failed, "{fault} of {index}: {error}");
                failed.insert(function.to_owned());
                assert!(error.message().contains(function), "{fault}: {error}");
                let says_how = function == "hipGetStreamDeviceId"; // with a number below 0 alone
                assert!(
                    says_how || error.message().contains(A::ERROR),
                    "{fault}: {error}"
                );
            }
        }
    };
    for operation in operations {
        operation().unwrap(); // all of their functions are in the report now
    }
    for function in control.called() {
        for nth in [1, 2] {
            run_all(&function, nth);
            let run_all = &mut run_all;
            // Also on a thread without a context.
            thread::scope(|scope| {
                struct Moved<T>(T);
                // SAFETY: only one thread at a time uses it, and it outlives the scope.
                unsafe impl<T> Send for Moved<T> {}
                let moved = Moved(run_all);
                let function = &function;
                scope
                    .spawn(move || {
                        let moved = moved;
                        (moved.0)(function, nth)
                    })
                    .join()
                    .unwrap();
            });
        }
    }
    for function in [A::QUERY, A::RECORD, A::SYNCHRONIZE, A::EXCHANGE_MODE] {
        assert!(
            failed.contains(function),
            "{function} has not failed: the test is blind"
        );
    }
    drop(awaited);
    A::destroy_event(event);
    gated.end();
}

fn a_refused_query_is_not_done<A: Api>() {
    let gated = Gated::<A>::new(0);
    gated.control.set_fault(&format!("{}:*:900", A::QUERY));
    let (array, releases, _) = counted(A::TYPE, 0);
    array.release_after(&gated.consumer()).unwrap();
    let before = gated.control.calls(A::QUERY);
    while gated.control.calls(A::QUERY) < before + 5 {
        thread::yield_now();
    }
    assert_eq!(releases.count(), 0);
    let pending = pending_releases();
    assert_eq!((pending.pending, pending.refused), (1, 1));
    assert!(pending.last_refusal.contains(A::QUERY), "{pending:?}");
    gated.control.reset_faults();
    releases.wait_for(1);
    assert_eq!(pending_releases().refused, 0);
    gated.end();
}

fn a_lost_device_releases<A: Api>() {
    let gated = Gated::<A>::new(0);
    gated.shut();
    for error in ["700", "719"] {
        let (array, releases, _) = counted(A::TYPE, 0);
        array.release_after(&gated.producer()).unwrap();
        gated.control.set_fault(&format!("{}:1:{error}", A::QUERY));
        releases.wait_for(1);
        gated.control.reset_faults();
    }
    gated.end();
}

/// What a vendor says about an error may fail as well.
#[test]
fn cuda_errors_have_a_number_at_least() {
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    let mut event = Cuda::make_event();
    let awaited = Cuda::array_with(&mut event);
    for (code, expected) in [
        (304, "failed with 304"),
        (719, "CUDA_ERROR_LAUNCH_FAILED (719)"),
    ] {
        gated.control.set_fault(&format!(
            "cuCtxGetCurrent:1:{code},cuGetErrorName:1:1,cuGetErrorString:1:1"
        ));
        let error = error(awaited.synchronize());
        gated.control.reset_faults();
        assert!(error.message().contains("cuCtxGetCurrent"), "{error}");
        assert!(error.message().ends_with(expected), "{error}");
    }
    drop(awaited);
    Cuda::destroy_event(event);
    gated.end();
}

// SPDX-License-Identifier: Apache-2.0

//! Events while streams are captured into graphs, on the stand-ins of CUDA and HIP: no capture is
//! broken.

#![cfg(all(feature = "runtime", unix, not(miri)))]

#[macro_use]
mod gpu;

use std::sync::Arc;
use std::thread;

use fletching::runtime::OnCapture;

use gpu::api::{Api, Gated, Handle};
use gpu::error;
use gpu::released::{array, counted, Releases};

both! {
    a_capturing_stream_is_refused => cuda_capture_refused, hip_capture_refused;
    a_capture_is_not_disturbed => cuda_capture_undisturbed, hip_capture_undisturbed;
    external_events_belong_to_each_launch => cuda_external_events, hip_external_events;
}

/// Begins a capture in global mode.
fn begin<A: Api>(stream: Handle) {
    // SAFETY: the stream is alive.
    assert_eq!(unsafe { (A::captures().begin)(stream, 0) }, 0);
}

/// Ends a capture that nothing has invalidated.
fn end<A: Api>(stream: Handle) -> Handle {
    let mut graph = std::ptr::null_mut();
    // SAFETY: the stream is alive.
    let result = unsafe { (A::captures().end)(stream, &mut graph) };
    assert_eq!(result, 0, "it has been invalidated");
    graph
}

fn destroy<A: Api>(graph: Handle) {
    // SAFETY: the graph is not used any more.
    assert_eq!(unsafe { (A::captures().destroy)(graph) }, 0);
}

fn a_capturing_stream_is_refused<A: Api>() {
    let gated = Gated::<A>::new(0);
    let (mut exported, _, _) = counted(A::TYPE, 0);
    exported.export_with_event(&gated.producer()).unwrap();
    let (mut array, releases, _) = counted(A::TYPE, 0);
    begin::<A>(gated.consumer);
    let stream = gated.consumer();
    let mut errors = vec![
        error(exported.wait_on(&stream)),
        error(array.export_with_event(&stream)),
    ];
    let refused = array.release_after(&stream).unwrap_err();
    errors.push(refused.error().clone());
    for error in errors {
        assert_eq!(error.code(), libc::EBUSY, "{error}");
        assert!(error.message().contains("captured into a graph"), "{error}");
        assert!(error.message().contains("hint: "), "{error}");
    }
    assert_eq!(releases.count(), 0);
    let mut array = refused.into_array();
    assert!(array.sync_event().is_null());
    destroy::<A>(end::<A>(gated.consumer));
    array.export_with_event(&stream).unwrap(); // it is over
    drop((array, exported));
    gated.end();
}

fn a_capture_is_not_disturbed<A: Api>() {
    let gated = Gated::<A>::new(0);
    let captured = A::make_stream();
    let (memory, freed) = (A::make_word() as usize, Arc::<Releases>::default());
    let (mut array, _, _) = counted(A::TYPE, 0);
    array.export_with_event(&gated.consumer()).unwrap();
    gated.shut();
    let (behind, releases, _) = counted(A::TYPE, 0);
    behind.release_after(&gated.producer()).unwrap();
    begin::<A>(captured);
    let ask = || {
        array.synchronize().unwrap();
        assert!(array.is_ready().unwrap());
    };
    ask();
    thread::scope(|scope| scope.spawn(ask).join().unwrap());
    // An event is made, recorded and destroyed as well, and the reaper asks all the time.
    let (mut second, _, _) = counted(A::TYPE, 0);
    second.export_with_event(&gated.consumer()).unwrap();
    drop(second);
    let (free, free_releases, _) = counted(A::TYPE, 0);
    free.release_after(&gated.consumer()).unwrap();
    free_releases.wait_for(1);
    assert_eq!(releases.count(), 0);
    // A callback may free memory of the device, which the driver calls unsafe.
    let released = Arc::clone(&freed);
    let freeing = self::array(A::TYPE, move || {
        A::open_device(0);
        A::free_word(memory as *mut u32);
        A::close_device(0);
        released.add();
    });
    destroy::<A>(end::<A>(captured));
    begin::<A>(captured);
    freeing.release_after(&gated.producer()).unwrap();
    gated.open();
    freed.wait_for(1);
    releases.wait_for(1);
    destroy::<A>(end::<A>(captured));
    drop(array);
    A::destroy_stream(captured);
    gated.end();
}

fn external_events_belong_to_each_launch<A: Api>() {
    let gated = Gated::<A>::new(0);
    let captured = A::make_stream();
    let mut event = A::make_event();
    let incoming = A::array_with(&mut event);
    let stream = A::stream(captured);
    let (mut array, _, _) = counted(A::TYPE, 0);
    begin::<A>(captured);
    incoming.wait_on_with(&stream, OnCapture::External).unwrap();
    array
        .export_with_event_with(&stream, OnCapture::External)
        .unwrap();
    let (graph, mut executable) = (end::<A>(captured), std::ptr::null_mut());
    let captures = A::captures();
    // SAFETY: the graph is alive.
    let result = unsafe { (captures.instantiate)(&mut executable, graph, 0) };
    assert_eq!(result, 0);
    destroy::<A>(graph);
    assert!(array.is_ready().unwrap(), "nothing has been recorded in it");
    gated.shut();
    A::record(event, gated.producer);
    // SAFETY: both are alive, and so are the events.
    assert_eq!(unsafe { (captures.launch)(executable, captured) }, 0);
    assert!(!array.is_ready().unwrap(), "the gate is shut");
    array.wait_on(&gated.consumer()).unwrap();
    assert!(gated.is_blocked(gated.consumer));
    gated.open();
    array.synchronize().unwrap();
    A::synchronize_stream(captured);
    // SAFETY: nothing is launched any more.
    assert_eq!(unsafe { (captures.destroy_executable)(executable) }, 0);
    A::synchronize_stream(gated.consumer);
    drop((incoming, array));
    A::destroy_event(event);
    A::destroy_stream(captured);
    gated.end();
}

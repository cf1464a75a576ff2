// SPDX-License-Identifier: Apache-2.0

//! Event operations on the CUDA and HIP stand-ins (`tests/standin`).

#![cfg(all(feature = "runtime", target_pointer_width = "64", unix, not(miri)))]

#[macro_use]
mod gpu;

use std::sync::{mpsc, Arc, Mutex};
use std::thread;

use fletching::runtime::{pending_releases, OnCapture, PendingReleases, Stream};
use fletching::{ArrowDeviceType, DeviceArray};

use gpu::api::{Api, Cuda, Gated};
use gpu::error;
use gpu::released::{array, counted, empty, Releases};

both! {
    default_stream_uses_device_of_array => cuda_default_streams, hip_default_streams;
    event_outlives_parent => cuda_event_outlives_parent, hip_event_outlives_parent;
    taken_child_keeps_event => cuda_taken_child, hip_taken_child;
    released_arrays_are_rejected => cuda_released_arrays, hip_released_arrays;
    malformed_arrays_are_rejected => cuda_malformed_arrays, hip_malformed_arrays;
    driver_failures_become_errors => cuda_driver_failures, hip_driver_failures;
    pending_releases_counts_each_state => cuda_pending_release_counts, hip_pending_release_counts;
    release_overtakes_blocked_release => cuda_release_overtakes_blocked_release, hip_release_overtakes_blocked_release;
    capturing_stream_is_rejected => cuda_capturing_stream, hip_capturing_stream;
    kept_array_is_released_after_capture => cuda_kept_array, hip_kept_array;
    external_events_are_recorded_per_launch => cuda_external_events, hip_external_events;
    stream_of_other_runtime_leaks_array => cuda_stream_of_other_runtime, hip_stream_of_other_runtime;
}

/// A default stream belongs to the array's device, regardless of the current device.
fn default_stream_uses_device_of_array<A: Api>() {
    let gated = Gated::<A>::new(0);
    gated.shut();
    let (legacy, none) = (Stream::legacy(A::TYPE), std::ptr::null_mut());
    let [mut written, mut exported] = [counted(A::TYPE, 0).0, counted(A::TYPE, 0).0];
    let ((read, releases, _), (other, others, _)) = (counted(A::TYPE, 0), counted(A::TYPE, 0));
    written.export_with_event(&gated.producer()).unwrap();
    A::open_device(1);
    written.wait_on(&legacy).unwrap();
    exported.export_with_event(&legacy).unwrap();
    read.release_after(&legacy).unwrap();
    assert_eq!(legacy.device_id(), None);
    assert_eq!(legacy.on_device(1).device_id(), Some(1));
    other.release_after(&legacy.on_device(1)).unwrap();
    others.wait_for(1);
    // The id of host memory does not identify a GPU: device 1 is used.
    let (host, hosts, _) = counted(ArrowDeviceType::EXT_DEV, 0);
    host.release_after(&legacy).unwrap();
    hosts.wait_for(1);
    assert!(!gated.is_blocked(none), "of device 1");
    A::close_device(1);
    assert!(gated.is_blocked(none), "of device 0");
    assert!(!exported.is_ready().unwrap());
    assert_eq!(releases.count(), 0);
    gated.open();
    releases.wait_for(1);
    A::synchronize_stream(none);
    drop((written, exported));
    gated.end();
}

fn event_outlives_parent<A: Api>() {
    let gated = Gated::<A>::new(0);
    let events = gated.control.alive().events;
    gated.shut();
    let (mut array, parents, children) = counted(A::TYPE, 0);
    array.export_with_event(&gated.producer()).unwrap();
    let text = error(array.export_with_event(&gated.producer()));
    assert!(text.message().contains("sync_event is set"), "{text}");
    let mut raw = array.into_raw();
    // SAFETY: a consumer without the crate moves a child out and reads the event.
    let (child, event) = unsafe { ((**raw.array.children).move_out(), raw.sync_event) };
    // SAFETY: the test owns the array.
    unsafe { fletching::abi::ArrowDeviceArray::release_once(&mut raw) };
    assert_eq!(parents.count(), 1);
    let awaited = A::array_with(event.cast());
    assert!(
        !awaited.is_ready().unwrap(),
        "the event is there, and the gate is shut"
    );
    gated.open();
    awaited.synchronize().unwrap();
    drop(awaited);
    assert_eq!(gated.control.alive().events, events + 1);
    // SAFETY: the test owns the child, which is released on a thread without a context.
    let child = unsafe { fletching::Array::from_raw(child) };
    thread::spawn(move || drop(child)).join().unwrap();
    assert_eq!(children.count(), 2);
    assert_eq!(gated.control.alive().events, events);
    gated.end();
}

fn taken_child_keeps_event<A: Api>() {
    let gated = Gated::<A>::new(0);
    let events = gated.control.alive().events;
    gated.shut();
    let (mut array, parents, children) = counted(A::TYPE, 0);
    let token = Arc::new(());
    array.attach(Arc::clone(&token)).unwrap();
    array.export_with_event(&gated.producer()).unwrap();
    let child = array.take_child(0).unwrap();
    drop(array);
    assert_eq!((parents.count(), children.count()), (1, 1));
    assert_eq!(Arc::strong_count(&token), 1);
    assert!(!child.is_ready().unwrap());
    gated.open();
    child.synchronize().unwrap();
    drop(child);
    assert_eq!(children.count(), 2);
    assert_eq!(gated.control.alive().events, events);
    gated.end();
}

fn released_arrays_are_rejected<A: Api>() {
    let gated = Gated::<A>::new(0);
    let mut none = DeviceArray::default();
    let stream = gated.consumer();
    let results = [
        ("synchronize", none.synchronize()),
        ("wait_on", none.wait_on(&stream)),
        ("is_ready", none.is_ready().map(drop)),
        ("export_with_event", none.export_with_event(&stream)),
        ("release_after", none.release_after(&stream)),
    ];
    for (operation, result) in results {
        let error = error(result);
        assert_eq!(error.code(), libc::EINVAL);
        let text = format!("{operation}: array is released: expected a live array");
        assert!(error.message().starts_with(&text), "{error}");
    }
    let (empty, _, _) = counted(A::TYPE, 0);
    empty.synchronize().unwrap();
    empty
        .wait_on(&Stream::legacy(ArrowDeviceType::CPU))
        .unwrap(); // nothing to wait for
    assert!(empty.is_ready().unwrap());
    gated.end();
}

/// The pointer is the address of a handle, which is an event.
#[test]
fn rule_sync_event_type_of_table() {
    let _alone = gpu::alone();
    let gated = Gated::<Cuda>::new(0);
    for address in [42, 0x0007_0000_0000_0001] {
        let array = Cuda::array_with(std::ptr::without_provenance_mut(address));
        assert_eq!(error(array.is_ready()).code(), libc::EINVAL);
    }
    let mut handle = std::ptr::null_mut();
    let array = Cuda::array_with(&mut handle);
    let error = error(array.wait_on(&gated.consumer()));
    assert!(error.message().contains("the handle is NULL"), "{error}");
    gated.end();
}

/// The arrays get no event, no event is leaked, and none was recorded.
fn malformed_arrays_are_rejected<A: Api>() {
    let gated = Gated::<A>::new(0);
    let events = gated.control.alive().events;
    let records = gated.control.calls(A::NAMES.record);
    let mut null = std::ptr::null_mut();
    let list = &raw mut null;
    for (count, children) in [
        (-1, list),
        (1 << 23, list),
        (1, std::ptr::null_mut()),
        (1, list),
    ] {
        let mut raw = empty(A::TYPE);
        (raw.array.n_children, raw.array.children) = (count, children);
        // SAFETY: only the tested operation reads the list.
        let mut array = unsafe { DeviceArray::from_raw(raw) };
        let error = error(array.export_with_event(&gated.producer()));
        assert_eq!(error.code(), libc::EINVAL, "{error}");
        assert!(
            error.message().starts_with("export_with_event: "),
            "{error}"
        );
        assert!(array.sync_event().is_null());
        assert_eq!(gated.control.alive().events, events);
    }
    assert_eq!(gated.control.calls(A::NAMES.record), records);
    gated.end();
}

/// The error has the name of the driver's error, and the array is unchanged.
fn driver_failures_become_errors<A: Api>() {
    let gated = Gated::<A>::new(0);
    let (mut array, _, _) = counted(A::TYPE, 0);
    let fail = |function: &str| {
        gated
            .control
            .set_fault(&format!("{function}:1:{}", A::ERROR))
    };
    fail(A::NAMES.record);
    let mut errors = vec![error(array.export_with_event(&gated.producer()))];
    assert!(array.sync_event().is_null());
    array.export_with_event(&gated.producer()).unwrap();
    fail(A::NAMES.synchronize);
    errors.push(error(array.synchronize()));
    fail(A::NAMES.wait_event);
    errors.push(error(array.wait_on(&gated.consumer())));
    fail(A::NAMES.query);
    errors.push(error(array.is_ready()));
    gated.control.reset_faults();
    for error in errors {
        assert_eq!(error.code(), libc::EIO, "{error}");
        assert!(error.message().contains(A::ERROR), "{error}");
    }
    drop(array);
    gated.end();
}

/// Checks each count, and the message of a failed query.
fn pending_releases_counts_each_state<A: Api>() {
    let gated = Gated::<A>::new(0);
    let query = A::NAMES.query;
    let settle = || {
        while pending_releases().running > 0 {
            thread::yield_now();
        }
    };
    settle();
    gated.shut();
    let (waiting, waited, _) = counted(A::TYPE, 0);
    waiting.release_after(&gated.producer()).unwrap();
    let pending = pending_releases();
    gated.open();
    waited.wait_for(1);
    settle();
    gated.control.set_fault(&format!("{query}:*:900"));
    let (end, behind) = mpsc::channel::<()>();
    let (begun, behind) = (Arc::<Releases>::default(), Mutex::new(behind));
    let releases = Arc::clone(&begun);
    let slow = array(A::TYPE, move || {
        releases.add();
        let _ = behind.lock().unwrap().recv(); // until the other end is dropped
    });
    slow.release_after(&gated.consumer()).unwrap();
    let before = gated.control.calls(query);
    while gated.control.calls(query) < before + 2 {
        thread::yield_now();
    }
    let failing = pending_releases();
    gated.control.reset_faults();
    begun.wait_for(1);
    let blocked = pending_releases();
    drop(end);
    settle();
    let numbers = |it: &PendingReleases| (it.pending, it.refused, it.running);
    assert_eq!(numbers(&pending), (1, 0, 0));
    assert_eq!(numbers(&failing), (1, 1, 0));
    assert!(failing.last_refusal.contains(query), "{failing:?}");
    assert_eq!(numbers(&blocked), (0, 0, 1));
    gated.end();
}

fn release_overtakes_blocked_release<A: Api>() {
    let gated = Gated::<A>::new(0);
    gated.shut();
    let (behind, waiting, _) = counted(A::TYPE, 0);
    behind.release_after(&gated.producer()).unwrap();
    let (free, released, _) = counted(A::TYPE, 0);
    free.release_after(&gated.consumer()).unwrap();
    released.wait_for(1);
    assert_eq!(waiting.count(), 0);
    gated.open();
    waiting.wait_for(1);
    gated.end();
}

/// The array is leaked and counted, because the graph may read it at each launch.
fn capturing_stream_is_rejected<A: Api>() {
    let gated = Gated::<A>::new(0);
    let (mut exported, _, _) = counted(A::TYPE, 0);
    exported.export_with_event(&gated.producer()).unwrap();
    let (mut array, _, _) = counted(A::TYPE, 0);
    let leaked = pending_releases().leaked;
    // SAFETY: the array conforms to the specification and has no memory.
    let read = unsafe { DeviceArray::from_raw(empty(A::TYPE)) };
    A::begin_capture(gated.consumer);
    let stream = gated.consumer();
    for error in [
        error(exported.wait_on(&stream)),
        error(array.export_with_event(&stream)),
        error(read.release_after(&stream)),
    ] {
        assert_eq!(error.code(), libc::EBUSY, "{error}");
        assert!(error.message().contains("captured into a graph"), "{error}");
        assert!(error.message().contains("hint: "), "{error}");
    }
    assert_eq!(pending_releases().leaked, leaked + 1);
    assert!(array.sync_event().is_null());
    A::destroy_graph(A::end_capture(gated.consumer));
    array.export_with_event(&stream).unwrap(); // the capture is over
    drop((array, exported));
    gated.end();
}

fn kept_array_is_released_after_capture<A: Api>() {
    let gated = Gated::<A>::new(0);
    let (kept, releases, _) = counted(A::TYPE, 0);
    A::begin_capture(gated.consumer);
    kept.release_after_with(&gated.consumer(), OnCapture::Keep)
        .unwrap();
    assert_eq!(releases.count(), 0);
    A::destroy_graph(A::end_capture(gated.consumer));
    releases.wait_for(1);
    gated.end();
}

fn external_events_are_recorded_per_launch<A: Api>() {
    let gated = Gated::<A>::new(0);
    let captured = A::make_stream();
    let mut event = A::make_event();
    let incoming = A::array_with(&mut event);
    let stream = A::stream(captured);
    let (mut array, _, _) = counted(A::TYPE, 0);
    A::begin_capture(captured);
    incoming.wait_on_with(&stream, OnCapture::External).unwrap();
    array
        .export_with_event_with(&stream, OnCapture::External)
        .unwrap();
    let graph = A::end_capture(captured);
    let executable = A::instantiate(graph);
    A::destroy_graph(graph);
    assert!(array.is_ready().unwrap(), "nothing has been recorded in it");
    gated.shut();
    A::record(event, gated.producer);
    A::launch(executable, captured);
    assert!(!array.is_ready().unwrap(), "the gate is shut");
    array.wait_on(&gated.consumer()).unwrap();
    assert!(gated.is_blocked(gated.consumer));
    gated.open();
    array.synchronize().unwrap();
    A::synchronize_stream(captured);
    A::destroy_executable(executable);
    A::synchronize_stream(gated.consumer);
    drop((incoming, array));
    A::destroy_event(event);
    A::destroy_stream(captured);
    gated.end();
}

/// The order of such a stream says nothing about work on the array's device. A waiter's handle is
/// never passed to a driver, and NULL is not a default stream for a waiter.
fn stream_of_other_runtime_leaks_array<A: Api>() {
    let gated = Gated::<A>::new(0);
    let (other, its) = match A::TYPE {
        ArrowDeviceType::CUDA => (ArrowDeviceType::ROCM, "of HIP"),
        _ => (ArrowDeviceType::CUDA, "of CUDA"),
    };
    for (device_type, handle, got) in [
        (other, 0, its),
        (ArrowDeviceType::METAL, 0, "of Metal"),
        (ArrowDeviceType::EXT_DEV, 0, "without a runtime"),
        (ArrowDeviceType::EXT_DEV, 0x1234, "without a runtime"),
        (ArrowDeviceType::CPU, 0, "without a runtime"),
    ] {
        let leaked = pending_releases().leaked;
        // SAFETY: the array conforms to the specification and has no memory.
        let array = unsafe { DeviceArray::from_raw(empty(A::TYPE)) };
        let handle = std::ptr::without_provenance_mut(handle);
        // SAFETY: no operation uses the handle.
        let stream = unsafe { Stream::from_raw(device_type, handle) };
        let error = error(array.release_after(&stream));
        assert_eq!(error.code(), libc::EINVAL, "{error}");
        let text = format!(
            "release_after: stream of another runtime: expected one of {}, got one {got}",
            A::TYPE
        );
        assert_eq!(error.message(), text);
        assert_eq!(pending_releases().leaked, leaked + 1);
    }
    gated.end();
}

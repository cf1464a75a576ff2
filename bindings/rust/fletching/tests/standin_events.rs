// SPDX-License-Identifier: Apache-2.0

//! The operations on events, on the stand-ins of CUDA and HIP (`tests/standin`).

#![cfg(all(feature = "runtime", unix, not(miri)))]

#[macro_use]
mod gpu;

use std::sync::{mpsc, Arc, Barrier};
use std::thread;

use fletching::runtime::{pending_releases, Stream};
use fletching::{ArrowDeviceType, DeviceArray};

use gpu::api::{Api, Cuda, Gated, Handle};
use gpu::released::{array, counted, Releases};
use gpu::{alone, error};

both! {
    default_streams_are_taken => cuda_takes_default_streams, hip_takes_default_streams;
    a_handle_is_not_its_address => cuda_handle_address, hip_handle_address;
    an_event_outlives_the_parent => cuda_event_outlives, hip_event_outlives;
    a_taken_child_keeps_the_event => cuda_taken_child, hip_taken_child;
    is_released_after_the_stream => cuda_release_after, hip_release_after;
    slow_callbacks_delay_no_other => cuda_slow_callbacks, hip_slow_callbacks;
    released_arrays_are_refused => cuda_released, hip_released;
}

fn default_streams_are_taken<A: Api>() {
    let gated = Gated::<A>::new(0);
    let mut event = A::make_event();
    A::record(event, gated.producer);
    let array = A::array_with(&mut event);
    for number in 0..3_usize {
        let stream = A::stream(number as Handle);
        array.wait_on(&stream).unwrap();
        A::synchronize_stream((number & 2) as Handle);
    }
    drop(array);
    A::destroy_event(event);
    gated.end();
}

fn a_handle_is_not_its_address<A: Api>() {
    let gated = Gated::<A>::new(0);
    let mut event = A::make_event();
    let array = A::array_with(event.cast());
    for result in [array.synchronize(), array.wait_on(&gated.consumer())] {
        let error = error(result);
        assert_eq!(error.code(), libc::EINVAL);
        assert!(error.message().contains("address"), "{error}");
    }
    drop(array);
    let mut null: Handle = std::ptr::null_mut();
    let text = error(A::array_with(&mut null).is_ready()).to_string();
    assert!(text.contains("the handle is NULL"), "{text}");
    let text =
        error(A::array_with((&raw mut event).cast::<u8>().wrapping_add(1).cast()).is_ready());
    assert!(text.message().contains("aligned address"), "{text}");
    A::destroy_event(event);
    gated.end();
}

fn an_event_outlives_the_parent<A: Api>() {
    let gated = Gated::<A>::new(0);
    let events = gated.control.alive().events;
    gated.shut();
    let (mut array, parents, children) = counted(A::TYPE, 0);
    array.export_with_event(&gated.producer()).unwrap();
    let text = error(array.export_with_event(&gated.producer()));
    assert!(text.message().contains("sync_event is set"), "{text}");
    let mut raw = array.into_raw();
    // SAFETY: a consumer moves a child out without asking us, and looks at the event.
    let (child, event) = unsafe { ((**raw.array.children).move_out(), raw.sync_event) };
    // SAFETY: the array is ours.
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
    // SAFETY: the child is ours, and released on a thread without a context.
    let child = unsafe { fletching::Array::from_raw(child) };
    thread::spawn(move || drop(child)).join().unwrap();
    assert_eq!(children.count(), 2);
    assert_eq!(gated.control.alive().events, events);
    gated.end();
}

fn a_taken_child_keeps_the_event<A: Api>() {
    let gated = Gated::<A>::new(0);
    let events = gated.control.alive().events;
    gated.shut();
    let (mut array, parents, children) = counted(A::TYPE, 0);
    array.export_with_event(&gated.producer()).unwrap();
    let child = array.take_child(0).unwrap();
    drop(array);
    assert_eq!((parents.count(), children.count()), (1, 1));
    assert!(!child.is_ready().unwrap());
    gated.open();
    child.synchronize().unwrap();
    drop(child);
    assert_eq!(children.count(), 2);
    assert_eq!(gated.control.alive().events, events);
    gated.end();
}

fn is_released_after_the_stream<A: Api>() {
    let gated = Gated::<A>::new(0);
    gated.shut();
    let (behind, releases, _) = counted(A::TYPE, 0);
    behind.release_after(&gated.producer()).unwrap();
    // One that need not wait overtakes the other: the reaper has looked at both by then.
    let (free, free_releases, _) = counted(A::TYPE, 0);
    free.release_after(&gated.consumer()).unwrap();
    free_releases.wait_for(1);
    assert_eq!(releases.count(), 0, "the gate is shut");
    assert_eq!(pending_releases().pending, 1);
    gated.open();
    assert_ne!(releases.wait_for(1), thread::current().id());
    gated.end();
}

fn slow_callbacks_delay_no_other<A: Api>() {
    let gated = Gated::<A>::new(0);
    let barrier = Arc::new(Barrier::new(41));
    let done = Arc::<Releases>::default();
    for _ in 0..40 {
        // Each waits for all the others to begin.
        let (barrier, done) = (Arc::clone(&barrier), Arc::clone(&done));
        let slow = array(A::TYPE, move || {
            barrier.wait();
            done.add();
        });
        slow.release_after(&gated.consumer()).unwrap();
    }
    let (quick, releases, _) = counted(A::TYPE, 0);
    quick.release_after(&gated.consumer()).unwrap();
    releases.wait_for(1);
    assert_eq!(done.count(), 0);
    barrier.wait();
    done.wait_for(40);
    gated.end();
}

fn released_arrays_are_refused<A: Api>() {
    let gated = Gated::<A>::new(0);
    let mut none = DeviceArray::default();
    let stream = gated.consumer();
    let results = [
        none.synchronize(),
        none.wait_on(&stream),
        none.is_ready().map(drop),
        none.export_with_event(&stream),
        none.release_after(&stream)
            .map_err(|failed| failed.error().clone()),
    ];
    for result in results {
        let error = error(result);
        assert_eq!(error.code(), libc::EINVAL);
        assert!(error.message().contains("released"), "{error}");
    }
    let (empty, _, _) = counted(A::TYPE, 0);
    empty.synchronize().unwrap();
    empty
        .wait_on(&Stream::legacy(ArrowDeviceType::CPU))
        .unwrap(); // nothing to wait for
    assert!(empty.is_ready().unwrap());
    gated.end();
}

/// `wait_on` and `synchronize` from several threads at once.
#[test]
fn operations_run_on_several_threads() {
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    let (mut array, _, _) = counted(Cuda::TYPE, 0);
    array.export_with_event(&gated.producer()).unwrap();
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..4 {
            let (array, gated_stream, sender) = (&array, gated.consumer(), sender.clone());
            scope.spawn(move || {
                array.wait_on(&gated_stream).unwrap();
                array.synchronize().unwrap();
                sender.send(array.is_ready().unwrap()).unwrap();
            });
        }
    });
    drop(sender);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [true; 4]);
    drop(array);
    gated.end();
}

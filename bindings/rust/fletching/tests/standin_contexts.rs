// SPDX-License-Identifier: Apache-2.0

//! The contexts of CUDA and the devices of HIP around the operations on events, on the stand-ins.

#![cfg(all(feature = "runtime", unix, not(miri)))]

#[macro_use]
mod gpu;

use std::thread;

use fletching::runtime::{pending_releases, Stream};
use fletching::{ArrowDeviceType, DeviceArray};

use gpu::api::{Api, Cuda, Gated};
use gpu::released::counted;
use gpu::{alone, error};

both! {
    works_without_a_context => cuda_without_a_context, hip_without_a_context;
    leaves_the_current_context_alone => cuda_keeps_the_context, hip_keeps_the_device;
}

fn works_without_a_context<A: Api>() {
    let gated = Gated::<A>::new(0);
    gated.shut();
    let (mut array, parents, _) = counted(A::TYPE, 0);
    let (producer, consumer) = (gated.producer(), gated.consumer());
    let array = thread::scope(|scope| {
        let work = || {
            let none = A::current();
            array.export_with_event(&producer).unwrap();
            assert!(!array.is_ready().unwrap());
            array.wait_on(&consumer).unwrap();
            array.wait_on(&Stream::legacy(A::TYPE)).unwrap();
            assert_eq!(A::current(), none);
            array
        };
        scope.spawn(work).join().unwrap()
    });
    assert!(gated.is_blocked(gated.consumer));
    assert!(gated.is_blocked(std::ptr::null_mut()));
    gated.open();
    thread::spawn(move || {
        let none = A::current();
        array.synchronize().unwrap();
        drop(array);
        assert_eq!(A::current(), none);
    })
    .join()
    .unwrap();
    assert_eq!(parents.count(), 1);
    A::synchronize_stream(std::ptr::null_mut());
    gated.end();
}

fn leaves_the_current_context_alone<A: Api>() {
    let gated = Gated::<A>::new(0);
    let mut event = A::make_event();
    A::record(event, gated.producer);
    let awaited = A::array_with(&mut event);
    let first = A::current();
    A::open_device(1);
    let second = A::current();
    assert_ne!(first, second);
    let other = A::make_stream();
    for stream in [gated.consumer(), A::stream(other)] {
        awaited.wait_on(&stream).unwrap();
        assert_eq!(A::current(), second);
    }
    awaited.synchronize().unwrap();
    awaited.is_ready().unwrap();
    let (mut array, _, _) = counted(A::TYPE, 0);
    array.export_with_event(&gated.producer()).unwrap();
    assert_eq!(A::current(), second);
    drop(array);
    assert_eq!(A::current(), second);
    A::destroy_stream(other);
    A::close_device(1);
    assert_eq!(A::current(), first);
    drop(awaited);
    A::destroy_event(event);
    gated.end();
}

/// No context is current and the device has none that is active: none is created.
#[test]
fn cuda_contexts_are_not_created() {
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    let mut event = Cuda::make_event();
    let before = gated.control.alive();
    let arrays: Vec<DeviceArray> = [1, -1, 1000]
        .map(|device| {
            let mut raw = Cuda::array_with(&mut event).into_raw();
            raw.device_id = device;
            // SAFETY: the array is ours.
            unsafe { DeviceArray::from_raw(raw) }
        })
        .into();
    thread::spawn(move || {
        for array in &arrays {
            error(array.synchronize());
            error(array.wait_on(&Stream::legacy(ArrowDeviceType::CUDA)));
            error(array.is_ready());
            assert_eq!(Cuda::current(), 0);
        }
        let text = error(arrays[0].synchronize());
        assert!(text.message().contains("not active"), "{text}");
    })
    .join()
    .unwrap();
    assert_eq!(gated.control.alive(), before);
    Cuda::destroy_event(event);
    gated.end();
}

/// The last release of a primary context destroys the event, and a reset does so even when others
/// have a reference. Its handle is not used any more, nor is the context's, which may be another one.
#[test]
fn cuda_events_of_a_context_that_is_gone_are_left_alone() {
    let _alone = alone();
    let control = Cuda::control();
    let stale = control.stale_handles();
    Cuda::open_device(0); // another context is current when the event is let go
                          // SAFETY: the type is the vendor's.
    let reset: extern "C" fn(i32) -> i32 =
        unsafe { control.function("cuDevicePrimaryCtxReset_v2") };
    for comes_back in [false, true] {
        Cuda::open_device(1);
        let (mut array, releases, _) = counted(Cuda::TYPE, 1);
        array
            .export_with_event(&Cuda::stream(Cuda::make_stream()))
            .unwrap();
        if comes_back {
            assert_eq!(reset(1), 0);
            Cuda::open_device(1);
            drop(array);
            Cuda::close_device(1);
        } else {
            Cuda::close_device(1);
            drop(array);
        }
        assert_eq!(releases.count(), 1);
        assert_eq!(control.stale_handles(), stale);
    }
    Cuda::close_device(1); // the one that was reset

    // The reaper has a reference while it asks, so that the context does not go in between.
    Cuda::open_device(1);
    let (stream, word) = (Cuda::make_stream(), Cuda::make_word());
    // SAFETY: the word is ours. It goes with the context.
    unsafe { word.write_volatile(0) };
    Cuda::wait_for(stream, word);
    let (array, releases, _) = counted(Cuda::TYPE, 1);
    array.release_after(&Cuda::stream(stream)).unwrap();
    Cuda::close_device(1);
    releases.wait_for(1); // nothing runs in the context any more
    assert_eq!(control.stale_handles(), stale);
    Cuda::close_device(0);
}

/// Neither the reaper's thread nor the driver is there in a child of fork.
#[test]
fn cuda_leaves_the_parents_events_alone_in_a_child_of_fork() {
    let _alone = alone();
    let gated = Gated::<Cuda>::new(0);
    let (first, releases, _) = counted(Cuda::TYPE, 0);
    first.release_after(&gated.consumer()).unwrap();
    releases.wait_for(1); // the reaper runs
    gated.control.settle_releases();
    let (mut exported, exported_releases, _) = counted(Cuda::TYPE, 0);
    exported.export_with_event(&gated.producer()).unwrap();
    let (plain, plain_releases, _) = counted(Cuda::TYPE, 0);
    let exported_raw = exported.into_raw();
    // SAFETY: the child calls nothing but what is tested, and ends without a destructor.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let calls = gated.control.calls("cuEventDestroy");
        let result = plain.release_after(&gated.consumer());
        let is_refused = matches!(&result, Err(failed) if failed.error().code() == libc::ECHILD);
        // SAFETY: the child's copy of the array is released once.
        drop(unsafe { DeviceArray::from_raw(exported_raw) });
        let is_left = gated.control.calls("cuEventDestroy") == calls
            && exported_releases.count() == 1
            && pending_releases().inherited_events == 1;
        // SAFETY: ends the child.
        unsafe { libc::_exit(if is_refused && is_left { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: the child is ours.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!(pending_releases().inherited_events, 0);
    // SAFETY: the parent's copy of the array.
    drop(unsafe { DeviceArray::from_raw(exported_raw) });
    plain.release_after(&gated.consumer()).unwrap();
    plain_releases.wait_for(1);
    gated.end();
}

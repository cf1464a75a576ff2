// SPDX-License-Identifier: Apache-2.0

//! The operations on events, on the stand-ins of CUDA and HIP (`tests/standin`).

#![cfg(all(feature = "runtime", unix, not(miri)))]

mod gpu;

use std::collections::BTreeSet;
use std::sync::{mpsc, Arc, Barrier};
use std::thread;

use fletching::runtime::{pending_releases, OnCapture, Stream};
use fletching::{ArrowDeviceType, DeviceArray, Error};
use gpu::alone;
use gpu::api::{Api, Cuda, Gated, Handle, Hip};
use gpu::released::{array, counted, Releases};

/// A test for both runtimes.
macro_rules! both {
    ($($test:ident => $cuda:ident, $hip:ident;)*) => {$(
        #[test]
        fn $cuda() {
            let _alone = alone();
            $test::<Cuda>();
        }

        #[test]
        fn $hip() {
            let _alone = alone();
            $test::<Hip>();
        }
    )*};
}

both! {
    default_streams_are_taken => cuda_takes_default_streams, hip_takes_default_streams;
    a_handle_is_not_its_address => cuda_handle_address, hip_handle_address;
    works_without_a_context => cuda_without_a_context, hip_without_a_context;
    leaves_the_current_context_alone => cuda_keeps_the_context, hip_keeps_the_device;
    an_event_outlives_the_parent => cuda_event_outlives, hip_event_outlives;
    a_taken_child_keeps_the_event => cuda_taken_child, hip_taken_child;
    is_released_after_the_stream => cuda_release_after, hip_release_after;
    slow_callbacks_delay_no_other => cuda_slow_callbacks, hip_slow_callbacks;
    every_failure_is_an_error => cuda_failures, hip_failures;
    a_refused_query_is_not_done => cuda_refused_query, hip_refused_query;
    a_lost_device_releases => cuda_lost_device, hip_lost_device;
    a_capturing_stream_is_refused => cuda_capture_refused, hip_capture_refused;
    a_capture_is_not_disturbed => cuda_capture_undisturbed, hip_capture_undisturbed;
    external_events_belong_to_each_launch => cuda_external_events, hip_external_events;
    released_arrays_are_refused => cuda_released, hip_released;
}

fn error<T>(result: Result<T, impl Into<Error>>) -> Error {
    result.err().expect("an error").into()
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
    A::close_device();
    assert_eq!(A::current(), first);
    drop(awaited);
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
        A::close_device();
        released.add();
    });
    destroy::<A>(end::<A>(captured));
    begin::<A>(captured);
    freeing.release_after(&gated.consumer()).unwrap();
    freed.wait_for(1);
    destroy::<A>(end::<A>(captured));
    gated.open();
    releases.wait_for(1);
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

/// The last release of a primary context destroys the event, whose handle is not used any more, nor
/// is the context's.
#[test]
fn cuda_events_of_a_context_that_is_gone_are_left_alone() {
    let _alone = alone();
    let control = Cuda::control();
    for is_deferred in [false, true] {
        Cuda::open_device(1);
        let stream = Cuda::make_stream();
        let stale = control.stale_handles();
        let (mut array, releases, _) = counted(Cuda::TYPE, 1);
        if is_deferred {
            let word = Cuda::make_word();
            // SAFETY: the word is ours. It goes with the context.
            unsafe { word.write_volatile(0) };
            Cuda::wait_for(stream, word);
            array.release_after(&Cuda::stream(stream)).unwrap();
            Cuda::close_device();
            releases.wait_for(1); // nothing runs in the context any more
        } else {
            array.export_with_event(&Cuda::stream(stream)).unwrap();
            Cuda::close_device();
            drop(array);
            assert_eq!(releases.count(), 1);
        }
        assert_eq!(control.stale_handles(), stale);
    }
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

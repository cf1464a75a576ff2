// SPDX-License-Identifier: Apache-2.0

//! Calls of OpenCL that fail, on the real library behind an interposer
//! (`tests/faults/interpose_opencl.cpp`): each is an error, and nothing leaks.

#![cfg(all(feature = "runtime", unix, not(miri)))]

mod gpu;

use std::collections::BTreeSet;
use std::env;
use std::ffi::{c_char, c_int, c_void, CString};
use std::process::Command;
use std::ptr;

use fletching::runtime::tables::opencl as cl;
use fletching::runtime::{pending_releases, Stream};
use fletching::{ArrowDeviceType, DeviceArray, Error};
use libloading::Library;

use gpu::preload;
use gpu::released::{counted, empty};

/// What a consumer and a producer call.
const FUNCTIONS: [&str; 7] = [
    "clGetEventInfo",
    "clWaitForEvents",
    "clGetCommandQueueInfo",
    "clFlush",
    "clEnqueueBarrierWithWaitList",
    "clEnqueueMarkerWithWaitList",
    "clReleaseEvent",
];

/// The control functions of the interposer.
struct Control {
    set_fault: extern "C" fn(*const c_char) -> c_int,
    reset_faults: extern "C" fn(),
    calls: extern "C" fn(*const c_char) -> i64,
    leaks: extern "C" fn(*mut c_void) -> i64,
}

impl Control {
    /// For a process in which the interposer is found in place of the library.
    fn load() -> Self {
        let library: &'static Library = preload("interposers/libOpenCL.so.1");
        // SAFETY: the types match interpose.hpp.
        unsafe {
            Self {
                set_fault: *library.get(b"FletchingInterposerSetFault").unwrap(),
                reset_faults: *library.get(b"FletchingInterposerResetFaults").unwrap(),
                calls: *library.get(b"FletchingInterposerCalls").unwrap(),
                leaks: *library.get(b"FletchingInterposerLeaks").unwrap(),
            }
        }
    }

    /// `error` is a name: `CL_OUT_OF_RESOURCES`.
    fn fail(&self, function: &str, nth: i64, error: &str) {
        let fault = CString::new(format!("{function}:{nth}:{error}")).unwrap();
        assert_eq!((self.set_fault)(fault.as_ptr()), 0, "{fault:?}");
    }

    fn calls(&self, function: &str) -> i64 {
        (self.calls)(CString::new(function).unwrap().as_ptr())
    }

    fn alive(&self) -> i64 {
        (self.leaks)(ptr::null_mut())
    }
}

/// A device that is open, and two queues of one context.
struct Device {
    control: Control,
    context: cl::cl_context,
    producer: cl::cl_command_queue,
    consumer: cl::cl_command_queue,
}

/// Runs a test of this file in a process of its own, which finds the interposer in place of the
/// library: it has no name by which it is known once it is loaded. True in that process.
fn is_interposed(test: &str) -> bool {
    const FOLDER: &str = "LD_LIBRARY_PATH";
    let folder = fletching_testing::library::folder().join("interposers");
    let mut path = folder.clone().into_os_string();
    if let Some(rest) = env::var_os(FOLDER) {
        if env::split_paths(&rest).next() == Some(folder) {
            return true;
        }
        path.push(":");
        path.push(rest);
    }
    let mut child = Command::new(env::current_exe().unwrap());
    child
        .args([test, "--exact", "--nocapture"])
        .env(FOLDER, path);
    assert!(child.status().unwrap().success());
    false
}

/// The function, which every OpenCL library has.
macro_rules! given {
    ($function:ident) => {
        cl::functions().unwrap().$function.function.unwrap()
    };
}

impl Device {
    /// `None` where there is no device.
    fn new() -> Option<Self> {
        let control = Control::load();
        let (mut platform, mut device, mut error) = (ptr::null_mut(), ptr::null_mut(), 0);
        const ANY: cl::cl_bitfield = u32::MAX as cl::cl_bitfield;
        // SAFETY: the arguments are as OpenCL has them, and what is created is released by `end`.
        unsafe {
            let none = ptr::null_mut();
            if given!(cl_get_platform_ids)(1, &mut platform, none) != cl::CL_SUCCESS
                || given!(cl_get_device_ids)(platform, ANY, 1, &mut device, none) != cl::CL_SUCCESS
            {
                eprintln!("opencl is absent");
                return None;
            }
            let create = given!(cl_create_context);
            let context = create(ptr::null(), 1, &device, None, ptr::null_mut(), &mut error);
            let mut queue = || given!(cl_create_command_queue)(context, device, 0, &mut error);
            let (producer, consumer) = (queue(), queue());
            assert_eq!(error, cl::CL_SUCCESS);
            Some(Self {
                control,
                context,
                producer,
                consumer,
            })
        }
    }

    fn stream(&self) -> Stream {
        // SAFETY: the queue lives as long as the test.
        unsafe { Stream::from_raw(ArrowDeviceType::OPENCL, self.consumer) }
    }

    /// An event of the producer's queue, which has happened.
    fn event(&self) -> cl::cl_event {
        let mut event = ptr::null_mut();
        // SAFETY: the queue is ours.
        unsafe {
            let mark = given!(cl_enqueue_marker_with_wait_list);
            assert_eq!(mark(self.producer, 0, ptr::null(), &mut event), 0);
            assert_eq!(given!(cl_finish)(self.producer), 0);
        }
        event
    }

    fn end(self, events: &[cl::cl_event]) {
        // SAFETY: nothing uses them any more.
        unsafe {
            for event in events {
                let release = cl::functions().unwrap().cl_release_event.function;
                assert_eq!(release(*event), 0);
            }
            for queue in [self.producer, self.consumer] {
                assert_eq!(given!(cl_finish)(queue), 0);
                assert_eq!(given!(cl_release_command_queue)(queue), 0);
            }
            assert_eq!(given!(cl_release_context)(self.context), 0);
        }
        assert_eq!(self.control.alive(), 0, "something leaks");
    }
}

fn array_with(event: &mut cl::cl_event) -> DeviceArray {
    let mut raw = empty(ArrowDeviceType::OPENCL);
    raw.sync_event = ptr::from_mut(event).cast();
    // SAFETY: the array is as the texts ask for it; the event outlives it.
    unsafe { DeviceArray::from_raw(raw) }
}

#[test]
fn opencl_failures() {
    if !is_interposed("opencl_failures") {
        return;
    }
    let Some(device) = Device::new() else { return };
    let control = &device.control;
    let mut event = device.event();
    let awaited = array_with(&mut event);
    let stream = device.stream();
    let export = || {
        let (mut array, releases, _) = counted(ArrowDeviceType::OPENCL, 0);
        let result = array.export_with_event(&stream);
        assert_eq!(result.is_ok(), !array.sync_event().is_null());
        drop(array);
        assert_eq!(releases.count(), 1);
        result
    };
    let defer = || {
        let (array, releases, _) = counted(ArrowDeviceType::OPENCL, 0);
        let result = array.release_after(&stream).map_err(|failed| {
            let error = failed.error().clone();
            assert_eq!(releases.count(), 0);
            drop(failed.into_array());
            error
        });
        releases.wait_for(1);
        result
    };
    type Operation<'a> = (&'a str, &'a dyn Fn() -> Result<(), Error>);
    let operations: [Operation; 5] = [
        ("synchronize", &|| awaited.synchronize()),
        ("wait_on", &|| awaited.wait_on(&stream)),
        ("is_ready", &|| awaited.is_ready().map(drop)),
        ("export", &export),
        ("defer", &defer),
    ];
    let mut failed = BTreeSet::new();
    for function in FUNCTIONS {
        for nth in [1, 2] {
            for (name, operation) in operations {
                let (alive, calls) = (control.alive(), control.calls(function));
                control.fail(function, nth, "CL_OUT_OF_RESOURCES");
                let result = operation();
                let has_failed = control.calls(function) >= calls + nth;
                (control.reset_faults)();
                let case = format!("{function}:{nth} of {name}");
                assert_eq!(control.alive(), alive, "{case}: something leaks");
                // A release has no way to report an error, and what asks for the thread that
                // releases asks again.
                let is_silent = function == "clReleaseEvent"
                    || (name == "defer" && function == "clGetEventInfo");
                assert_eq!(result.is_err(), has_failed && !is_silent, "{case}");
                if let Err(error) = result {
                    let text = error.message();
                    assert_eq!(error.code(), libc::EIO, "{case}: {error}");
                    assert!(text.contains(function), "{case}: {error}");
                    assert!(text.contains("CL_OUT_OF_RESOURCES (-5)"), "{case}: {error}");
                }
                if has_failed {
                    failed.insert(function);
                }
            }
        }
    }
    assert_eq!(failed, BTreeSet::from(FUNCTIONS), "the test is blind");
    assert_eq!(pending_releases().pending, 0);
    drop(awaited);
    device.end(&[event]);
}

/// A command that has failed is told from a wait that has.
#[test]
fn opencl_command_failures() {
    if !is_interposed("opencl_command_failures") {
        return;
    }
    let Some(device) = Device::new() else { return };
    let mut error = 0;
    // SAFETY: the context is ours.
    let mut event = unsafe { given!(cl_create_user_event)(device.context, &mut error) };
    // SAFETY: the event is ours, and its state is set once.
    unsafe {
        assert_eq!(
            given!(cl_set_user_event_status)(event, cl::CL_OUT_OF_RESOURCES),
            0
        )
    };
    let awaited = array_with(&mut event);
    for result in [awaited.synchronize(), awaited.is_ready().map(drop)] {
        let text = result.unwrap_err().message().to_owned();
        assert!(text.contains("the command of the event"), "{text}");
        assert!(text.contains("CL_OUT_OF_RESOURCES (-5)"), "{text}");
    }
    // The state cannot be asked for, or says that the command is done.
    let code = "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
    device.control.fail("clWaitForEvents", 1, code);
    device
        .control
        .fail("clGetEventInfo", 1, "CL_OUT_OF_HOST_MEMORY");
    let text = awaited.synchronize().unwrap_err().message().to_owned();
    (device.control.reset_faults)();
    assert!(text.contains("clGetEventInfo"), "{text}");
    let mut done = device.event();
    let sound = array_with(&mut done);
    device.control.fail("clWaitForEvents", 1, code);
    let text = sound.synchronize().unwrap_err().message().to_owned();
    (device.control.reset_faults)();
    assert!(
        text.contains("clWaitForEvents") && text.contains(code),
        "{text}"
    );
    device
        .control
        .fail("clWaitForEvents", 1, "CL_INVALID_EVENT");
    let error = sound.synchronize().unwrap_err();
    (device.control.reset_faults)();
    assert_eq!(error.code(), libc::EINVAL, "{error}");
    let hint = "the address of the event's handle, not the handle";
    assert!(error.message().ends_with(hint), "{error}");
    drop((awaited, sound));
    device.end(&[event, done]);
}

// SPDX-License-Identifier: Apache-2.0

//! Events behind a gate (`cpp/producer/gate.h`): CUDA and ROCm on the stand-ins, OpenCL and Vulkan
//! on whatever device there is.

#![cfg(all(feature = "runtime", target_pointer_width = "64", unix, not(miri)))]

mod gpu;

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr;
use std::sync::OnceLock;

use fletching::abi::{ArrowDeviceArray, ArrowSchema};
use fletching::runtime::{pending_releases, Stream, VulkanContext};
use fletching::{ArrowDeviceType, DeviceArray, Schema};
use gpu::released::counted;
use gpu::{alone, preload};
use libloading::Library;

const OLD: i32 = 0;
const NEW: i32 = 1;
const ABSENT: i32 = 2;

#[repr(C)]
struct Message([c_char; 1024]);

#[repr(C)]
#[derive(Default)]
struct Counters {
    live_allocations: i64,
    live_schemas: i64,
    live_arrays: i64,
    live_streams: i64,
    exported: i64,
    released: i64,
    double_released: i64,
}

#[repr(C)]
struct VulkanHandles {
    instance: *mut c_void,
    physical_device: *mut c_void,
    device: *mut c_void,
    queue: *mut c_void,
    queue_family: u32,
    set_stages: u32,
    get_device_proc_addr: Option<unsafe extern "C" fn()>,
}

fletching_testing::library! {
    pub struct Functions from "fletching_producer" {
        presence = FletchingProducerBackendPresence(*const c_char, *mut i32, *mut Message) -> c_int;
        create_gate = FletchingProducerGateCreate(*const c_char, *mut *mut c_void, *mut Message) -> c_int;
        open_gate = FletchingProducerGateOpen(*mut c_void, *mut Message) -> c_int;
        destroy_gate = FletchingProducerGateDestroy(*mut c_void, *mut Message) -> c_int;
        export_behind = FletchingProducerExportArrayBehind(*mut c_void, *const c_char, *mut ArrowSchema, *mut ArrowDeviceArray, *mut Message) -> c_int;
        create_queue = FletchingProducerQueueCreate(*const c_char, *mut *mut c_void, *mut Message) -> c_int;
        queue_handle = FletchingProducerQueueHandle(*mut c_void) -> *mut c_void;
        read = FletchingProducerQueueRead(*mut c_void, *const c_char, *const ArrowDeviceArray, *mut Message) -> c_int;
        is_idle = FletchingProducerQueueIsIdle(*mut c_void, *mut i32, *mut Message) -> c_int;
        verify = FletchingProducerQueueVerify(*mut c_void, i32, *mut i64, *mut Message) -> c_int;
        destroy_queue = FletchingProducerQueueDestroy(*mut c_void, *mut Message) -> c_int;
        read_counters = FletchingProducerReadCounters(*mut Counters);
        vulkan_handles = FletchingProducerVulkanHandles(*mut VulkanHandles, *mut Message) -> c_int;
    }
}

/// Runs a call of the producer's, which has to succeed.
fn done(call: impl FnOnce(*mut Message) -> c_int) {
    let mut message = Message([0; 1024]);
    let code = call(&mut message);
    // SAFETY: the producer's message ends in NUL.
    let text = unsafe { CStr::from_ptr(message.0.as_ptr()) };
    assert_eq!(code, 0, "{text:?}");
}

const CASE: &CStr = c"record_batch";

/// An array behind a shut gate, and a queue of the consumer that has waited for nothing.
struct Gated {
    producer: Functions,
    device_type: ArrowDeviceType,
    gate: *mut c_void,
    queue: *mut c_void,
    schema: Schema,
    array: DeviceArray,
}

impl Gated {
    /// `None` where there is no such device.
    fn new(backend: &CStr) -> Option<Self> {
        // Kept here, because an unreachable library is a leak for the sanitizer.
        static STAND_INS: OnceLock<[&Library; 2]> = OnceLock::new();
        STAND_INS.get_or_init(|| ["standin/libcuda.so.1", "standin/libamdhip64.so.7"].map(preload));
        let producer = Functions::load().unwrap();
        let (mut gate, mut queue) = (ptr::null_mut(), ptr::null_mut());
        let (mut schema, mut array) = (Schema::default(), DeviceArray::default());
        let mut presence = ABSENT;
        let (name, case) = (backend.as_ptr(), CASE.as_ptr());
        // SAFETY: as the header has it.
        unsafe {
            done(|message| (producer.presence)(name, &mut presence, message));
            if presence == ABSENT {
                eprintln!("{backend:?} is absent");
                return None;
            }
            done(|message| (producer.create_gate)(name, &mut gate, message));
            done(|message| (producer.create_queue)(name, &mut queue, message));
            done(|message| {
                (producer.export_behind)(gate, case, schema.out(), array.out(), message)
            });
        }
        let device_type = array.device_type();
        Some(Self {
            producer,
            device_type,
            gate,
            queue,
            schema,
            array,
        })
    }

    fn stream(&self) -> Stream {
        // SAFETY: the queue lives as long as the test.
        unsafe { Stream::from_raw(self.device_type, (self.producer.queue_handle)(self.queue)) }
    }

    fn open_gate(&self) {
        // SAFETY: the gate lives as long as the test.
        done(|message| unsafe { (self.producer.open_gate)(self.gate, message) });
    }

    fn read(&self) {
        // SAFETY: the array lives until the read is verified.
        done(|message| unsafe {
            (self.producer.read)(self.queue, CASE.as_ptr(), self.array.as_raw(), message)
        });
    }

    fn is_idle(&self) -> bool {
        let mut idle = 1;
        // SAFETY: the queue lives as long as the test.
        done(|message| unsafe { (self.producer.is_idle)(self.queue, &mut idle, message) });
        idle != 0
    }

    fn verify(&self, expected: i32) {
        let mut asserted = 0;
        // SAFETY: the queue lives as long as the test.
        done(|message| unsafe {
            (self.producer.verify)(self.queue, expected, &mut asserted, message)
        });
        assert!(asserted > 0);
    }

    fn live_arrays(&self) -> i64 {
        let mut counters = Counters::default();
        // SAFETY: the counters are ours.
        unsafe { (self.producer.read_counters)(&mut counters) };
        assert_eq!(counters.double_released, 0);
        counters.live_arrays
    }

    fn end(self) {
        self.open_gate();
        // SAFETY: nothing uses them any more.
        unsafe {
            done(|message| (self.producer.destroy_queue)(self.queue, message));
            done(|message| (self.producer.destroy_gate)(self.gate, message));
        }
        drop(self.schema);
    }
}

fn waits_behind_the_gate(backend: &CStr) {
    let _alone = alone();
    let Some(gated) = Gated::new(backend) else {
        return;
    };
    assert!(!gated.array.sync_event().is_null());
    assert!(!gated.array.is_ready().unwrap());
    gated.read();
    gated.verify(OLD); // the negative control: without a wait the old data is read

    gated.array.wait_on(&gated.stream()).unwrap(); // it has returned, and the gate is shut
    gated.read();
    assert!(!gated.is_idle());
    assert!(!gated.array.is_ready().unwrap());
    gated.open_gate();
    gated.verify(NEW);
    gated.array.synchronize().unwrap();
    assert!(gated.array.is_ready().unwrap());
    gated.end();
}

#[test]
fn cuda_waits_behind_the_gate() {
    waits_behind_the_gate(c"cuda");
    waits_behind_the_gate(c"cuda_managed");
}

#[test]
fn rocm_waits_behind_the_gate() {
    waits_behind_the_gate(c"rocm");
}

#[test]
fn opencl_waits_behind_the_gate() {
    waits_behind_the_gate(c"opencl");
}

/// A consumer's queue is blocked behind the gate: the array has to live until the gate is open.
fn keeps_the_array_behind_the_gate(backend: &CStr) {
    let _alone = alone();
    let Some(mut gated) = Gated::new(backend) else {
        return;
    };
    gated.array.wait_on(&gated.stream()).unwrap();
    gated.read();
    let live = gated.live_arrays();
    let array = std::mem::take(&mut gated.array);
    array.release_after(&gated.stream()).unwrap();
    // One that need not wait overtakes it: the reaper has looked at both by then.
    let mut other = ptr::null_mut();
    let (free, releases, _) = counted(gated.device_type, 0);
    // SAFETY: as the header has it.
    unsafe {
        done(|message| (gated.producer.create_queue)(backend.as_ptr(), &mut other, message));
        let queue = (gated.producer.queue_handle)(other);
        free.release_after(&Stream::from_raw(gated.device_type, queue))
            .unwrap();
        releases.wait_for(1);
        done(|message| (gated.producer.destroy_queue)(other, message));
    }
    assert!(!gated.is_idle());
    assert_eq!(gated.live_arrays(), live);
    assert_eq!(pending_releases().pending, 1);
    gated.open_gate();
    gated.verify(NEW); // of memory that is still there, or the stand-in breaks the context
    while gated.live_arrays() == live {
        std::thread::yield_now();
    }
    assert_eq!(pending_releases().pending, 0);
    gated.end();
}

#[test]
fn an_array_outlives_the_work_that_reads_it() {
    for backend in [c"cuda", c"rocm", c"opencl"] {
        keeps_the_array_behind_the_gate(backend);
    }
}

#[test]
fn opencl_takes_only_a_queue_of_the_context() {
    let _alone = alone();
    let Some(mut gated) = Gated::new(c"opencl") else {
        return;
    };
    let none = Stream::legacy(ArrowDeviceType::OPENCL);
    let error = gated.array.wait_on(&none).unwrap_err();
    assert!(error.message().contains("no default queue"), "{error}");
    // SAFETY: a stream that no operation accepts.
    let other = unsafe { Stream::from_raw(ArrowDeviceType::CUDA, ptr::null_mut()) };
    let error = gated.array.wait_on(&other).unwrap_err();
    assert_eq!(error.code(), libc::EINVAL);
    assert!(
        error
            .message()
            .contains("expected one of opencl, got one of CUDA"),
        "{error}"
    );
    drop(std::mem::take(&mut gated.array));
    gated.end();
}

#[test]
fn vulkan_waits_behind_the_gate() {
    let _alone = alone();
    let Some(gated) = Gated::new(c"vulkan") else {
        return;
    };
    for result in [
        gated.array.synchronize(),
        gated.array.wait_on(&gated.stream()),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.code(), libc::ENOTSUP, "{error}");
        assert!(error.message().contains("VkDevice"), "{error}");
    }
    let mut handles = std::mem::MaybeUninit::<VulkanHandles>::uninit();
    // SAFETY: as the header has it; the handles live as long as the process.
    let (handles, context) = unsafe {
        done(|message| (gated.producer.vulkan_handles)(handles.as_mut_ptr(), message));
        let handles = handles.assume_init();
        let context = VulkanContext::new(handles.device)
            .with_device_functions(handles.get_device_proc_addr.unwrap());
        (handles, context)
    };
    // SAFETY: the producer made the event with this device.
    let is_ready = |array: &DeviceArray| unsafe { array.is_ready_vulkan(&context) };
    // SAFETY: as above.
    let synchronize = |array: &DeviceArray| unsafe { array.synchronize_vulkan(&context) };
    assert!(!is_ready(&gated.array).unwrap());
    let command_buffer = gated.stream().as_ptr();
    // SAFETY: the producer's queue is recording.
    let error = unsafe { gated.array.wait_on_vulkan(&context, command_buffer) }.unwrap_err();
    assert_eq!(error.code(), libc::ENOTSUP, "{error}");
    let queued = context.with_queues(handles.queue, handles.queue, handles.set_stages);
    // SAFETY: as above.
    unsafe { gated.array.wait_on_vulkan(&queued, command_buffer) }.unwrap();
    gated.read();
    assert!(!gated.is_idle());
    gated.open_gate();
    gated.verify(NEW);
    synchronize(&gated.array).unwrap();
    assert!(is_ready(&gated.array).unwrap());
    gated.end();
}

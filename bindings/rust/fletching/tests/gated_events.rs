// SPDX-License-Identifier: Apache-2.0

//! A Vulkan event behind a gate (`cpp/producer/gate.h`). The conformance suite plays the other
//! runtimes.

#![cfg(all(feature = "runtime", target_pointer_width = "64", unix, not(miri)))]

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr;

use fletching::abi::{ArrowDeviceArray, ArrowSchema};
use fletching::runtime::{Stream, VulkanContext};
use fletching::{ArrowDeviceType, DeviceArray, Schema};

const NEW: i32 = 1;
const ABSENT: i32 = 2;

#[repr(C)]
struct Message([c_char; 1024]);

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
    gate: *mut c_void,
    queue: *mut c_void,
    schema: Schema,
    array: DeviceArray,
}

impl Gated {
    /// `None` where there is no such device.
    fn new() -> Option<Self> {
        let producer = Functions::load().unwrap();
        let (mut gate, mut queue) = (ptr::null_mut(), ptr::null_mut());
        let (mut schema, mut array) = (Schema::default(), DeviceArray::default());
        let mut presence = ABSENT;
        let (name, case) = (c"vulkan".as_ptr(), CASE.as_ptr());
        // SAFETY: as the header has it.
        unsafe {
            done(|message| (producer.presence)(name, &mut presence, message));
            if presence == ABSENT {
                eprintln!("vulkan is absent");
                return None;
            }
            done(|message| (producer.create_gate)(name, &mut gate, message));
            done(|message| (producer.create_queue)(name, &mut queue, message));
            done(|message| {
                (producer.export_behind)(gate, case, schema.out(), array.out(), message)
            });
        }
        Some(Self {
            producer,
            gate,
            queue,
            schema,
            array,
        })
    }

    fn stream(&self) -> Stream {
        // SAFETY: the queue lives as long as the test.
        unsafe {
            Stream::from_raw(
                ArrowDeviceType::VULKAN,
                (self.producer.queue_handle)(self.queue),
            )
        }
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

    /// The reads saw the new data.
    fn verify(&self) {
        let mut asserted = 0;
        // SAFETY: the queue lives as long as the test.
        done(|message| unsafe { (self.producer.verify)(self.queue, NEW, &mut asserted, message) });
        assert!(asserted > 0);
    }

    fn end(self) {
        self.open_gate();
        // SAFETY: nothing uses them any more.
        unsafe {
            done(|message| (self.producer.destroy_queue)(self.queue, message));
            done(|message| (self.producer.destroy_gate)(self.gate, message));
        }
        drop((self.schema, self.array));
    }
}

#[test]
fn vulkan_waits_behind_the_gate() {
    let Some(gated) = Gated::new() else {
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
    gated.verify();
    synchronize(&gated.array).unwrap();
    assert!(is_ready(&gated.array).unwrap());
    gated.end();
}

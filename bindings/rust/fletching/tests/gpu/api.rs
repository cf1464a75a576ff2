// SPDX-License-Identifier: Apache-2.0

//! A common interface of CUDA and HIP, so that each test runs on both stand-ins.

use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

use fletching::runtime::Stream;
use fletching::{ArrowDeviceType, DeviceArray};
use fletching_testing::library::load_stand_in;

use super::Control;

pub type Handle = *mut c_void;

/// Calls a function of a vendor's library and returns its result.
macro_rules! answer {
    ($api:ty, $symbol:expr $(, $argument:expr => $type:ty)*) => {{
        // SAFETY: the types match the vendor's header, and handles and addresses come from the
        // library.
        unsafe {
            let function: unsafe extern "C" fn($($type),*) -> i32 =
                <$api>::control().function($symbol);
            function($($argument),*)
        }
    }};
}

/// Calls a function of a vendor's library that must succeed.
macro_rules! call {
    ($($argument:tt)*) => { assert_eq!(answer!($($argument)*), 0) };
}

/// The names of functions that both runtimes have.
pub struct Names {
    pub create_stream: &'static str,
    pub destroy_stream: &'static str,
    pub synchronize_stream: &'static str,
    pub query_stream: &'static str,
    pub wait_event: &'static str,
    pub create_event: &'static str,
    pub destroy_event: &'static str,
    pub record: &'static str,
    pub synchronize: &'static str,
    pub query: &'static str,
    pub begin_capture: &'static str,
    pub end_capture: &'static str,
    pub instantiate: &'static str,
    pub launch: &'static str,
    pub destroy_graph: &'static str,
    pub destroy_executable: &'static str,
}

/// The operations of both runtimes. Every result is checked. The caller runs one test at a time.
pub trait Api {
    const TYPE: ArrowDeviceType;
    const ERROR: &'static str;
    const NAMES: Names;

    /// Makes the device current for the calling thread.
    fn open_device(device: i32);
    fn close_device(device: i32);
    /// Allocates a word that a stream can wait for.
    fn make_word() -> *mut u32;
    fn free_word(word: *mut u32);
    fn wait_for(stream: Handle, word: *mut u32);

    fn control() -> &'static Control;

    fn make_stream() -> Handle {
        const NON_BLOCKING: u32 = 1;
        let mut stream = ptr::null_mut();
        let out = &raw mut stream;
        call!(Self, Self::NAMES.create_stream, out => *mut Handle, NON_BLOCKING => u32);
        stream
    }

    fn destroy_stream(stream: Handle) {
        Self::synchronize_stream(stream);
        call!(Self, Self::NAMES.destroy_stream, stream => Handle);
    }

    fn synchronize_stream(stream: Handle) {
        call!(Self, Self::NAMES.synchronize_stream, stream => Handle);
    }

    fn is_idle(stream: Handle) -> bool {
        const NOT_READY: i32 = 600;
        let answer = answer!(Self, Self::NAMES.query_stream, stream => Handle);
        assert!([0, NOT_READY].contains(&answer), "{answer}");
        answer == 0
    }

    fn make_event() -> Handle {
        const DISABLE_TIMING: u32 = 2;
        let mut event = ptr::null_mut();
        let out = &raw mut event;
        call!(Self, Self::NAMES.create_event, out => *mut Handle, DISABLE_TIMING => u32);
        event
    }

    fn record(event: Handle, stream: Handle) {
        call!(Self, Self::NAMES.record, event => Handle, stream => Handle);
    }

    fn destroy_event(event: Handle) {
        call!(Self, Self::NAMES.destroy_event, event => Handle);
    }

    /// Begins a capture in global mode.
    fn begin_capture(stream: Handle) {
        call!(Self, Self::NAMES.begin_capture, stream => Handle, 0 => i32);
    }

    /// Ends a capture that was not invalidated.
    fn end_capture(stream: Handle) -> Handle {
        let mut graph = ptr::null_mut();
        call!(Self, Self::NAMES.end_capture, stream => Handle, &raw mut graph => *mut Handle);
        graph
    }

    fn destroy_graph(graph: Handle) {
        call!(Self, Self::NAMES.destroy_graph, graph => Handle);
    }

    fn instantiate(graph: Handle) -> Handle {
        let mut made = ptr::null_mut();
        let out = &raw mut made;
        call!(Self, Self::NAMES.instantiate, out => *mut Handle, graph => Handle, 0 => u64);
        made
    }

    fn launch(executable: Handle, stream: Handle) {
        call!(Self, Self::NAMES.launch, executable => Handle, stream => Handle);
    }

    fn destroy_executable(executable: Handle) {
        call!(Self, Self::NAMES.destroy_executable, executable => Handle);
    }

    fn stream(handle: Handle) -> Stream {
        // SAFETY: the tests destroy a stream after its last use.
        unsafe { Stream::from_raw(Self::TYPE, handle) }
    }

    /// Makes an array whose event handle is at `event`. The caller keeps the event.
    fn array_with(event: *mut Handle) -> DeviceArray {
        let mut raw = super::released::empty(Self::TYPE);
        raw.sync_event = event.cast();
        // SAFETY: the array conforms to the specification.
        unsafe { DeviceArray::from_raw(raw) }
    }
}

pub struct Cuda;

impl Api for Cuda {
    const TYPE: ArrowDeviceType = ArrowDeviceType::CUDA;
    const ERROR: &'static str = "CUDA_ERROR_LAUNCH_FAILED";
    const NAMES: Names = Names {
        create_stream: "cuStreamCreate",
        destroy_stream: "cuStreamDestroy_v2",
        synchronize_stream: "cuStreamSynchronize",
        query_stream: "cuStreamQuery",
        wait_event: "cuStreamWaitEvent",
        create_event: "cuEventCreate",
        destroy_event: "cuEventDestroy_v2",
        record: "cuEventRecord",
        synchronize: "cuEventSynchronize",
        query: "cuEventQuery",
        begin_capture: "cuStreamBeginCapture_v2",
        end_capture: "cuStreamEndCapture",
        instantiate: "cuGraphInstantiateWithFlags",
        launch: "cuGraphLaunch",
        destroy_graph: "cuGraphDestroy",
        destroy_executable: "cuGraphExecDestroy",
    };

    fn control() -> &'static Control {
        static CONTROL: OnceLock<Control> = OnceLock::new();
        CONTROL.get_or_init(|| Control::of(load_stand_in("libcuda.so.1")))
    }

    fn open_device(device: i32) {
        let mut context = ptr::null_mut();
        let out = &raw mut context;
        call!(Self, "cuInit", 0 => u32);
        call!(Self, "cuDevicePrimaryCtxRetain", out => *mut Handle, device => i32);
        call!(Self, "cuCtxPushCurrent_v2", context => Handle);
    }

    fn close_device(device: i32) {
        let mut context = ptr::null_mut();
        call!(Self, "cuCtxPopCurrent_v2", &raw mut context => *mut Handle);
        call!(Self, "cuDevicePrimaryCtxRelease_v2", device => i32);
    }

    fn make_word() -> *mut u32 {
        const DEVICE_MAP: u32 = 2;
        let mut word = ptr::null_mut();
        let out = &raw mut word;
        call!(Self, "cuMemHostAlloc", out => *mut *mut u32, 4 => usize, DEVICE_MAP => u32);
        word
    }

    fn free_word(word: *mut u32) {
        call!(Self, "cuMemFreeHost", word => *mut u32);
    }

    fn wait_for(stream: Handle, word: *mut u32) {
        const GEQ: u32 = 0;
        let mut address = 0;
        let (out, wait) = (&raw mut address, "cuStreamWaitValue32_v2");
        call!(Self, "cuMemHostGetDevicePointer_v2", out => *mut u64, word => *mut u32, 0 => u32);
        call!(Self, wait, stream => Handle, address => u64, 1 => u32, GEQ => u32);
    }
}

pub struct Hip;

impl Api for Hip {
    const TYPE: ArrowDeviceType = ArrowDeviceType::ROCM;
    const ERROR: &'static str = "hipErrorLaunchFailure";
    const NAMES: Names = Names {
        create_stream: "hipStreamCreateWithFlags",
        destroy_stream: "hipStreamDestroy",
        synchronize_stream: "hipStreamSynchronize",
        query_stream: "hipStreamQuery",
        wait_event: "hipStreamWaitEvent",
        create_event: "hipEventCreateWithFlags",
        destroy_event: "hipEventDestroy",
        record: "hipEventRecord",
        synchronize: "hipEventSynchronize",
        query: "hipEventQuery",
        begin_capture: "hipStreamBeginCapture",
        end_capture: "hipStreamEndCapture",
        instantiate: "hipGraphInstantiateWithFlags",
        launch: "hipGraphLaunch",
        destroy_graph: "hipGraphDestroy",
        destroy_executable: "hipGraphExecDestroy",
    };

    fn control() -> &'static Control {
        static CONTROL: OnceLock<Control> = OnceLock::new();
        CONTROL.get_or_init(|| Control::of(load_stand_in("libamdhip64.so.7")))
    }

    fn open_device(device: i32) {
        call!(Self, "hipInit", 0 => u32);
        call!(Self, "hipSetDevice", device => i32);
    }

    fn close_device(_device: i32) {
        Self::open_device(0);
    }

    fn make_word() -> *mut u32 {
        const SIGNAL_MEMORY: u32 = 2;
        let mut word = ptr::null_mut();
        let (allocate, out) = ("hipExtMallocWithFlags", &raw mut word);
        call!(Self, allocate, out => *mut *mut u32, 8 => usize, SIGNAL_MEMORY => u32);
        word
    }

    fn free_word(word: *mut u32) {
        call!(Self, "hipFree", word => *mut u32);
    }

    fn wait_for(stream: Handle, word: *mut u32) {
        const GTE: u32 = 0;
        let (wait, mask) = ("hipStreamWaitValue32", u32::MAX);
        call!(Self, wait, stream => Handle, word => *mut u32, 1 => u32, GTE => u32, mask => u32);
    }
}

/// An open device, a consumer's stream, and a producer's stream behind a gate.
pub struct Gated<A: Api> {
    pub control: &'static Control,
    device: i32,
    pub producer: Handle,
    pub consumer: Handle,
    before: super::Counts,
    word: *mut u32,
    api: std::marker::PhantomData<A>,
}

impl<A: Api> Gated<A> {
    pub fn new(device: i32) -> Self {
        let control = A::control();
        control.settle_releases();
        A::open_device(device);
        let before = control.alive();
        let word = A::make_word();
        // SAFETY: the word belongs to the test.
        unsafe { word.write_volatile(0) };
        Self {
            control,
            device,
            producer: A::make_stream(),
            consumer: A::make_stream(),
            before,
            word,
            api: std::marker::PhantomData,
        }
    }

    /// Makes the producer's stream wait for the gate.
    pub fn shut(&self) {
        A::wait_for(self.producer, self.word);
    }

    pub fn open(&self) {
        // SAFETY: the word belongs to the test.
        unsafe { self.word.write_volatile(1) };
    }

    pub fn is_blocked(&self, stream: Handle) -> bool {
        self.control.settle();
        !A::is_idle(stream)
    }

    pub fn producer(&self) -> Stream {
        A::stream(self.producer)
    }

    pub fn consumer(&self) -> Stream {
        A::stream(self.consumer)
    }

    /// Checks that the test leaves no live objects.
    pub fn end(self) {
        self.open();
        A::destroy_stream(self.producer);
        A::destroy_stream(self.consumer);
        A::free_word(self.word);
        self.control.settle_releases();
        assert_eq!(self.control.alive(), self.before, "something leaks");
        A::close_device(self.device);
    }
}

// SPDX-License-Identifier: Apache-2.0

//! CUDA and HIP under the same names, so that one test holds for both, on the stand-ins.

use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

use fletching::runtime::tables::{cuda, hip};
use fletching::runtime::Stream;
use fletching::{ArrowDeviceType, DeviceArray};

use super::{preload, Control};

pub type Handle = *mut c_void;

/// A result of a vendor's function, which has to succeed.
fn ok(result: i32) {
    assert_eq!(result, 0);
}

/// A function that the stand-in has.
macro_rules! given {
    ($symbol:expr) => {
        $symbol.function.expect($symbol.name)
    };
}

/// How a capture looks in both runtimes.
pub struct Captures {
    pub begin: unsafe extern "C" fn(Handle, i32) -> i32,
    pub end: unsafe extern "C" fn(Handle, *mut Handle) -> i32,
    pub instantiate: unsafe extern "C" fn(*mut Handle, Handle, u64) -> i32,
    pub launch: unsafe extern "C" fn(Handle, Handle) -> i32,
    pub destroy: unsafe extern "C" fn(Handle) -> i32,
    pub destroy_executable: unsafe extern "C" fn(Handle) -> i32,
}

/// The folder of the stand-ins: one per process, because a library that is there is preferred.
static FOLDER: OnceLock<&str> = OnceLock::new();

/// Takes the stand-ins from this folder. Before any other call.
pub fn use_stand_ins(folder: &'static str) {
    assert_eq!(*FOLDER.get_or_init(|| folder), folder);
}

/// Both runtimes. Every result is checked; the caller has one test at a time.
pub trait Api {
    const TYPE: ArrowDeviceType;
    const LIBRARY: &'static str;
    const ERROR: &'static str;
    const QUERY: &'static str;
    const SYNCHRONIZE: &'static str;
    const RECORD: &'static str;
    const EXCHANGE_MODE: &'static str;

    fn open_device(device: i32);
    fn close_device(device: i32);
    /// What is current for the calling thread.
    fn current() -> isize;
    fn make_stream() -> Handle;
    fn destroy_stream(stream: Handle);
    fn synchronize_stream(stream: Handle);
    fn is_idle(stream: Handle) -> bool;
    fn make_event() -> Handle;
    fn record(event: Handle, stream: Handle);
    fn destroy_event(event: Handle);
    /// A word that a stream can wait for.
    fn make_word() -> *mut u32;
    fn free_word(word: *mut u32);
    fn wait_for(stream: Handle, word: *mut u32);

    fn control() -> Control {
        let folder = FOLDER.get_or_init(|| "standin");
        Control::of(preload(&format!("{folder}/{}", Self::LIBRARY)))
    }

    fn captures() -> Captures {
        let control = Self::control();
        let names = match Self::TYPE {
            ArrowDeviceType::CUDA => ["cu", "_v2"],
            _ => ["hip", ""],
        };
        let [start, version] = names;
        // SAFETY: the types match the vendors' headers.
        unsafe {
            Captures {
                begin: control.function(&format!("{start}StreamBeginCapture{version}")),
                end: control.function(&format!("{start}StreamEndCapture")),
                instantiate: control.function(&format!("{start}GraphInstantiateWithFlags")),
                launch: control.function(&format!("{start}GraphLaunch")),
                destroy: control.function(&format!("{start}GraphDestroy")),
                destroy_executable: control.function(&format!("{start}GraphExecDestroy")),
            }
        }
    }

    fn stream(handle: Handle) -> Stream {
        // SAFETY: the tests destroy a stream after its last use.
        unsafe { Stream::from_raw(Self::TYPE, handle) }
    }

    /// An array with the event whose handle is at `event`, which the caller keeps.
    fn array_with(event: *mut Handle) -> DeviceArray {
        let mut raw = super::released::empty(Self::TYPE);
        raw.sync_event = event.cast();
        // SAFETY: the array is as the texts ask for it.
        unsafe { DeviceArray::from_raw(raw) }
    }
}

pub struct Cuda;

impl Cuda {
    pub fn api() -> &'static cuda::Functions {
        Self::control();
        let api = cuda::functions().unwrap();
        // SAFETY: 0 is the only flag.
        ok(unsafe { (api.cu_init.function)(0) });
        api
    }
}

// SAFETY of the calls below: handles and addresses are those that the library made.
#[allow(clippy::undocumented_unsafe_blocks, reason = "see above")]
impl Api for Cuda {
    const TYPE: ArrowDeviceType = ArrowDeviceType::CUDA;
    const LIBRARY: &'static str = "libcuda.so.1";
    const ERROR: &'static str = "CUDA_ERROR_LAUNCH_FAILED";
    const QUERY: &'static str = "cuEventQuery";
    const SYNCHRONIZE: &'static str = "cuEventSynchronize";
    const RECORD: &'static str = "cuEventRecord";
    const EXCHANGE_MODE: &'static str = "cuThreadExchangeStreamCaptureMode";

    fn open_device(device: i32) {
        let (api, mut context) = (Self::api(), ptr::null_mut());
        unsafe {
            ok((api.cu_device_primary_ctx_retain.function)(
                &mut context,
                device,
            ));
            ok((api.cu_ctx_push_current.function)(context));
        }
    }

    fn close_device(device: i32) {
        let (api, mut context) = (Self::api(), ptr::null_mut());
        unsafe {
            ok((api.cu_ctx_pop_current.function)(&mut context));
            ok((api.cu_device_primary_ctx_release.function)(device));
        }
    }

    fn current() -> isize {
        let mut context = ptr::null_mut();
        ok(unsafe { (Self::api().cu_ctx_get_current.function)(&mut context) });
        context as isize
    }

    fn make_stream() -> Handle {
        let mut stream = ptr::null_mut();
        let create = given!(Self::api().cu_stream_create);
        ok(unsafe { create(&mut stream, cuda::CU_STREAM_NON_BLOCKING) });
        stream
    }

    fn destroy_stream(stream: Handle) {
        Self::synchronize_stream(stream);
        ok(unsafe { given!(Self::api().cu_stream_destroy)(stream) });
    }

    fn synchronize_stream(stream: Handle) {
        ok(unsafe { given!(Self::api().cu_stream_synchronize)(stream) });
    }

    fn is_idle(stream: Handle) -> bool {
        let answer = unsafe { given!(Self::api().cu_stream_query)(stream) };
        assert!(
            [0, cuda::CUDA_ERROR_NOT_READY].contains(&answer),
            "{answer}"
        );
        answer == 0
    }

    fn make_event() -> Handle {
        let mut event = ptr::null_mut();
        let create = given!(Self::api().cu_event_create);
        ok(unsafe { create(&mut event, cuda::CU_EVENT_DISABLE_TIMING) });
        event
    }

    fn record(event: Handle, stream: Handle) {
        ok(unsafe { given!(Self::api().cu_event_record)(event, stream) });
    }

    fn destroy_event(event: Handle) {
        ok(unsafe { given!(Self::api().cu_event_destroy)(event) });
    }

    fn make_word() -> *mut u32 {
        let (api, mut word) = (Self::api(), ptr::null_mut());
        let flags = cuda::CU_MEMHOSTALLOC_DEVICEMAP;
        ok(unsafe { given!(api.cu_mem_host_alloc)(&mut word, 4, flags) });
        word.cast()
    }

    fn free_word(word: *mut u32) {
        ok(unsafe { given!(Self::api().cu_mem_free_host)(word.cast()) });
    }

    fn wait_for(stream: Handle, word: *mut u32) {
        let (api, mut address) = (Self::api(), 0);
        let geq = cuda::CU_STREAM_WAIT_VALUE_GEQ;
        unsafe {
            ok(given!(api.cu_mem_host_get_device_pointer)(
                &mut address,
                word.cast(),
                0,
            ));
            ok(given!(api.cu_stream_wait_value32)(stream, address, 1, geq));
        }
    }
}

pub struct Hip;

impl Hip {
    pub fn api() -> &'static hip::Functions {
        Self::control();
        let api = hip::functions().unwrap();
        // SAFETY: 0 is the only flag.
        ok(unsafe { (api.hip_init.function)(0) });
        api
    }
}

// SAFETY of the calls below: handles and addresses are those that the library made.
#[allow(clippy::undocumented_unsafe_blocks, reason = "see above")]
impl Api for Hip {
    const TYPE: ArrowDeviceType = ArrowDeviceType::ROCM;
    const LIBRARY: &'static str = "libamdhip64.so.7";
    const ERROR: &'static str = "hipErrorLaunchFailure";
    const QUERY: &'static str = "hipEventQuery";
    const SYNCHRONIZE: &'static str = "hipEventSynchronize";
    const RECORD: &'static str = "hipEventRecord";
    const EXCHANGE_MODE: &'static str = "hipThreadExchangeStreamCaptureMode";

    fn open_device(device: i32) {
        ok(unsafe { (Self::api().hip_set_device.function)(device) });
    }

    fn close_device(_device: i32) {
        Self::open_device(0);
    }

    fn current() -> isize {
        let mut device = -1;
        ok(unsafe { (Self::api().hip_get_device.function)(&mut device) });
        device as isize
    }

    fn make_stream() -> Handle {
        let mut stream = ptr::null_mut();
        let create = given!(Self::api().hip_stream_create_with_flags);
        ok(unsafe { create(&mut stream, hip::HIP_STREAM_NON_BLOCKING) });
        stream
    }

    fn destroy_stream(stream: Handle) {
        Self::synchronize_stream(stream);
        ok(unsafe { given!(Self::api().hip_stream_destroy)(stream) });
    }

    fn synchronize_stream(stream: Handle) {
        ok(unsafe { given!(Self::api().hip_stream_synchronize)(stream) });
    }

    fn is_idle(stream: Handle) -> bool {
        let answer = unsafe { given!(Self::api().hip_stream_query)(stream) };
        assert!([0, hip::HIP_ERROR_NOT_READY].contains(&answer), "{answer}");
        answer == 0
    }

    fn make_event() -> Handle {
        let mut event = ptr::null_mut();
        let create = given!(Self::api().hip_event_create_with_flags);
        ok(unsafe { create(&mut event, hip::HIP_EVENT_DISABLE_TIMING) });
        event
    }

    fn record(event: Handle, stream: Handle) {
        ok(unsafe { given!(Self::api().hip_event_record)(event, stream) });
    }

    fn destroy_event(event: Handle) {
        ok(unsafe { given!(Self::api().hip_event_destroy)(event) });
    }

    fn make_word() -> *mut u32 {
        let (api, mut word) = (Self::api(), ptr::null_mut());
        let flags = hip::HIP_MALLOC_SIGNAL_MEMORY;
        ok(unsafe { given!(api.hip_ext_malloc_with_flags)(&mut word, 8, flags) });
        word.cast()
    }

    fn free_word(word: *mut u32) {
        ok(unsafe { given!(Self::api().hip_free)(word.cast()) });
    }

    fn wait_for(stream: Handle, word: *mut u32) {
        let (wait, geq) = (
            given!(Self::api().hip_stream_wait_value32),
            hip::HIP_STREAM_WAIT_VALUE_GTE,
        );
        ok(unsafe { wait(stream, word.cast(), 1, geq, u32::MAX) });
    }
}

/// A device that is open, a consumer's stream, and a producer's behind a gate.
pub struct Gated<A: Api> {
    pub control: Control,
    device: i32,
    pub producer: Handle,
    pub consumer: Handle,
    before: super::Counts,
    word: *mut u32,
    api: std::marker::PhantomData<A>,
}

impl<A: Api> Gated<A> {
    /// Opens the device for the test.
    pub fn new(device: i32) -> Self {
        let control = A::control();
        control.settle_releases();
        A::open_device(device);
        let before = control.alive();
        let word = A::make_word();
        // SAFETY: the word is ours.
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

    /// The producer's stream waits for the gate from now on.
    pub fn shut(&self) {
        A::wait_for(self.producer, self.word);
    }

    pub fn open(&self) {
        // SAFETY: the word is ours.
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

    /// Nothing may be alive that was not before.
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

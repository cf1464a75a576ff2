// SPDX-License-Identifier: Apache-2.0

//! The reference producer of `cpp/producer/producer.h`.

use std::ffi::{c_char, c_int, CStr, CString};

use fletching_abi::{ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema};
use fletching_transit_rust::error::Error;
use fletching_transit_rust::owned::Owned;

#[repr(C)]
pub struct Message {
    text: [u8; 1024],
}

/// What is alive, and what happened since the last reset.
#[repr(C)]
#[derive(Default)]
pub struct Counters {
    pub live_allocations: i64,
    pub live_schemas: i64,
    pub live_arrays: i64,
    pub live_streams: i64,
    pub exported: i64,
    pub released: i64,
    pub double_released: i64,
}

fletching_testing::library! {
    pub struct Functions from "fletching_producer" {
        case_count = FletchingProducerCaseCount() -> i32;
        case_name = FletchingProducerCaseName(i32) -> *const c_char;
        describe = FletchingProducerDescribe(*const c_char) -> *const c_char;
        export_array = FletchingProducerExportArray(*const c_char, *const c_char, *mut ArrowSchema, *mut ArrowDeviceArray, *mut Message) -> c_int;
        export_stream = FletchingProducerExportStream(*const c_char, *const c_char, i64, i64, *mut ArrowDeviceArrayStream, *mut Message) -> c_int;
        verify_array = FletchingProducerVerifyArray(*const c_char, *const c_char, *const ArrowSchema, *const ArrowDeviceArray, *mut Message) -> c_int;
        verify_stream = FletchingProducerVerifyStream(*const c_char, *const c_char, i64, i64, *mut ArrowDeviceArrayStream, *mut Message) -> c_int;
        read_counters = FletchingProducerReadCounters(*mut Counters);
        reset_counters = FletchingProducerResetCounters();
    }
}

/// The loaded producer.
pub struct Producer(Functions);

impl Producer {
    /// The error names the path and what to do.
    pub fn load() -> Result<Self, String> {
        Functions::load().map(Self)
    }

    pub fn cases(&self) -> Vec<String> {
        // SAFETY: an index in range gives a name, which lives as long as the library.
        let name = |index| unsafe { CStr::from_ptr((self.0.case_name)(index)) };
        // SAFETY: takes nothing.
        let count = unsafe { (self.0.case_count)() };
        (0..count)
            .map(|index| name(index).to_string_lossy().into_owned())
            .collect()
    }

    pub fn describe(&self, case: &str) -> Result<String, Error> {
        let name = c_text(case);
        // SAFETY: the name ends with NUL; a text that is not NULL lives as long as the library.
        let text = unsafe {
            let text = (self.0.describe)(name.as_ptr());
            (!text.is_null()).then(|| CStr::from_ptr(text))
        };
        let text = text.ok_or_else(|| Error::invalid(format!("no case '{case}'")))?;
        Ok(text.to_string_lossy().into_owned())
    }

    pub fn export_array(
        &self,
        backend: &str,
        case: &str,
        schema: &mut ArrowSchema,
        array: &mut ArrowDeviceArray,
    ) -> Result<(), Error> {
        let (backend, case) = (c_text(backend), c_text(case));
        // SAFETY: names end with NUL; both structs are the caller's to overwrite.
        checked(|message| unsafe {
            (self.0.export_array)(backend.as_ptr(), case.as_ptr(), schema, array, message)
        })
    }

    pub fn export_stream(
        &self,
        backend: &str,
        case: &str,
        batches: i64,
        fail_at: i64,
        stream: &mut ArrowDeviceArrayStream,
    ) -> Result<(), Error> {
        let (backend, case) = (c_text(backend), c_text(case));
        let export_stream = self.0.export_stream;
        // SAFETY: names end with NUL; the stream is the caller's to overwrite.
        checked(|message| unsafe {
            export_stream(
                backend.as_ptr(),
                case.as_ptr(),
                batches,
                fail_at,
                stream,
                message,
            )
        })
    }

    pub fn verify_array(
        &self,
        backend: &str,
        case: &str,
        schema: &ArrowSchema,
        array: &ArrowDeviceArray,
    ) -> Result<(), Error> {
        let (backend, case) = (c_text(backend), c_text(case));
        // SAFETY: names end with NUL; nothing is released.
        checked(|message| unsafe {
            (self.0.verify_array)(backend.as_ptr(), case.as_ptr(), schema, array, message)
        })
    }

    /// Takes the stream; it is released whatever comes out.
    pub fn verify_stream(
        &self,
        backend: &str,
        case: &str,
        batches: i64,
        fail_at: i64,
        stream: Owned<ArrowDeviceArrayStream>,
    ) -> Result<(), Error> {
        let (backend, case) = (c_text(backend), c_text(case));
        let verify_stream = self.0.verify_stream;
        let mut stream = stream.into_raw();
        // SAFETY: names end with NUL; the stream is moved in.
        checked(|message| unsafe {
            verify_stream(
                backend.as_ptr(),
                case.as_ptr(),
                batches,
                fail_at,
                &mut stream,
                message,
            )
        })
    }

    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        // SAFETY: the struct is that of the header.
        unsafe { (self.0.read_counters)(&mut counters) };
        counters
    }

    pub fn reset_counters(&self) {
        // SAFETY: takes nothing.
        unsafe { (self.0.reset_counters)() };
    }
}

fn c_text(text: &str) -> CString {
    CString::new(text).expect("a name holds no NUL")
}

fn checked(call: impl FnOnce(*mut Message) -> c_int) -> Result<(), Error> {
    let mut message = Message { text: [0; 1024] };
    match call(&mut message) {
        0 => Ok(()),
        code => Err(Error {
            code,
            text: CStr::from_bytes_until_nul(&message.text)
                .ok()
                .map(CStr::to_owned),
        }),
    }
}

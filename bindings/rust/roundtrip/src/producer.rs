// SPDX-License-Identifier: Apache-2.0

//! The reference producer of `cpp/producer/producer.h`.

use std::ffi::{c_char, c_int, CStr, CString};

use fletching::abi::{ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema};
use fletching::{DeviceArray, DeviceArrayStream, Error, Schema};

/// Where the producer writes what is wrong.
#[repr(C)]
pub struct Message {
    text: [u8; 1024],
}

impl Message {
    /// Without a text.
    pub const fn empty() -> Self {
        Self { text: [0; 1024] }
    }

    /// The text, as far as it is UTF-8.
    pub fn text(&self) -> String {
        let text = CStr::from_bytes_until_nul(&self.text).unwrap_or_default();
        text.to_string_lossy().into_owned()
    }
}

/// What is alive, and what happened since the last reset.
#[repr(C)]
#[derive(Default)]
#[allow(missing_docs, reason = "as in producer.h")]
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
        backend_count = FletchingProducerBackendCount() -> i32;
        backend_name = FletchingProducerBackendName(i32) -> *const c_char;
        case_count = FletchingProducerCaseCount() -> i32;
        case_name = FletchingProducerCaseName(i32) -> *const c_char;
        verify_dump = FletchingProducerVerifyDump(*const c_char, *mut i64, *mut Message) -> c_int;
        export_array = FletchingProducerExportArray(*const c_char, *const c_char, *mut ArrowSchema, *mut ArrowDeviceArray, *mut Message) -> c_int;
        export_stream = FletchingProducerExportStream(*const c_char, *const c_char, i64, i64, *mut ArrowDeviceArrayStream, *mut Message) -> c_int;
        verify_array = FletchingProducerVerifyArray(*const c_char, *const c_char, *const ArrowSchema, *const ArrowDeviceArray, *mut Message) -> c_int;
        verify_stream = FletchingProducerVerifyStream(*const c_char, *const c_char, i64, i64, *mut ArrowDeviceArrayStream, *mut Message) -> c_int;
        read_counters = FletchingProducerReadCounters(*mut Counters);
        reset_counters = FletchingProducerResetCounters();
    }
}

/// The loaded producer.
#[derive(Clone, Copy)]
pub struct Producer(&'static Functions);

impl Producer {
    /// The error names the path and what to do.
    pub fn load() -> Result<Self, String> {
        Functions::load().map(|functions| Self(Box::leak(Box::new(functions))))
    }

    /// The names of the backends.
    pub fn backends(&self) -> Vec<String> {
        // SAFETY: takes nothing.
        let count = unsafe { (self.0.backend_count)() };
        (0..count)
            .map(|index| text_of(self.0.backend_name, index))
            .collect()
    }

    /// The names of the cases.
    pub fn cases(&self) -> Vec<String> {
        // SAFETY: takes nothing.
        let count = unsafe { (self.0.case_count)() };
        (0..count)
            .map(|index| text_of(self.0.case_name, index))
            .collect()
    }

    /// How many lines of the dump are as the producer exported them: all.
    pub fn verify_dump(&self, dump: &str) -> Result<i64, Error> {
        let dump = c_text(dump);
        let mut lines = 0;
        // SAFETY: the text ends with NUL.
        checked(|message| unsafe { (self.0.verify_dump)(dump.as_ptr(), &mut lines, message) })?;
        Ok(lines)
    }

    /// Exports a case.
    pub fn export_array(&self, backend: &str, case: &str) -> Result<(Schema, DeviceArray), Error> {
        let (backend, case) = (c_text(backend), c_text(case));
        let (mut schema, mut array) = (Schema::default(), DeviceArray::default());
        // SAFETY: names end with NUL; both structs are ours to be filled.
        checked(|message| unsafe {
            let (schema, array) = (schema.out(), array.out());
            (self.0.export_array)(backend.as_ptr(), case.as_ptr(), schema, array, message)
        })?;
        Ok((schema, array))
    }

    /// Exports a stream of a case, which fails before batch `fail_at`, if that is not negative.
    pub fn export_stream(
        &self,
        backend: &str,
        case: &str,
        batches: i64,
        fail_at: i64,
    ) -> Result<DeviceArrayStream, Error> {
        let (backend, case) = (c_text(backend), c_text(case));
        let export = self.0.export_stream;
        let mut stream = DeviceArrayStream::default();
        // SAFETY: names end with NUL; the stream is ours to be filled.
        checked(|message| unsafe {
            export(
                backend.as_ptr(),
                case.as_ptr(),
                batches,
                fail_at,
                stream.out(),
                message,
            )
        })?;
        Ok(stream)
    }

    /// Whether these are the structs and the buffers that were exported.
    pub fn verify_array(
        &self,
        backend: &str,
        case: &str,
        schema: &Schema,
        array: &DeviceArray,
    ) -> Result<(), Error> {
        let (backend, case) = (c_text(backend), c_text(case));
        // SAFETY: names end with NUL; nothing is released.
        checked(|message| unsafe {
            let (schema, array) = (schema.as_raw(), array.as_raw());
            (self.0.verify_array)(backend.as_ptr(), case.as_ptr(), schema, array, message)
        })
    }

    /// Consumes the stream; it is released whatever the result is.
    pub fn verify_stream(
        &self,
        backend: &str,
        case: &str,
        batches: i64,
        fail_at: i64,
        stream: DeviceArrayStream,
    ) -> Result<(), Error> {
        let (backend, case) = (c_text(backend), c_text(case));
        let verify = self.0.verify_stream;
        let mut stream = stream.into_raw();
        // SAFETY: names end with NUL; the stream is moved in.
        checked(|message| unsafe {
            verify(
                backend.as_ptr(),
                case.as_ptr(),
                batches,
                fail_at,
                &mut stream,
                message,
            )
        })
    }

    /// What is alive, and what happened since the last reset.
    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        // SAFETY: the struct is that of the header.
        unsafe { (self.0.read_counters)(&mut counters) };
        counters
    }

    /// Sets what happened to zero.
    pub fn reset_counters(&self) {
        // SAFETY: takes nothing.
        unsafe { (self.0.reset_counters)() };
    }
}

fn text_of(name: unsafe extern "C" fn(i32) -> *const c_char, index: i32) -> String {
    // SAFETY: an index in range has a name, which lives as long as the library.
    let name = unsafe { CStr::from_ptr(name(index)) };
    name.to_string_lossy().into_owned()
}

/// A name for C.
pub fn c_text(text: &str) -> CString {
    CString::new(text).expect("a name holds no NUL")
}

/// The error that a call of the producer returned, with its message.
pub fn checked(call: impl FnOnce(*mut Message) -> c_int) -> Result<(), Error> {
    let mut message = Message::empty();
    match call(&mut message) {
        0 => Ok(()),
        code => Err(Error::new(code, message.text())),
    }
}

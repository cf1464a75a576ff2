// SPDX-License-Identifier: Apache-2.0

//! A fake producer whose calls a test makes one by one.

use std::ffi::{c_char, c_int};
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex};

use crate::support::batch;
use fletching::abi::{
    ArrowArray, ArrowAsyncDeviceStreamHandler as Handler, ArrowAsyncProducer as Producer,
    ArrowAsyncTask as Task, ArrowDeviceArray,
};
use fletching::{ArrowDeviceType, AsyncHandler, DeviceArray, Schema};

type Once = Box<dyn FnOnce(&str) + Send>;

/// A fake producer whose calls a test makes one by one.
pub struct ProducerPeer {
    pub handler: *mut Handler,
    pub object: *mut Producer,
    pub log: Arc<PeerLog>,
}

// SAFETY: handler calls may be made on any thread.
unsafe impl Send for ProducerPeer {}
// SAFETY: as above; a test makes one call at a time, or overlaps calls on purpose.
unsafe impl Sync for ProducerPeer {}

#[derive(Default)]
pub struct PeerLog {
    pub calls: Mutex<Vec<String>>,
    /// Called inside request, cancel and extract_data.
    pub inside: Mutex<Option<Once>>,
}

impl PeerLog {
    fn called(&self, what: String) {
        let inside = self.inside.lock().unwrap().take();
        let _ = inside.map(|inside| inside(&what));
        self.calls.lock().unwrap().push(what);
    }
}

/// The private_data of a task, which extract_data frees.
struct Given {
    number: i32,
    code: c_int,
    batch: DeviceArray,
    log: Arc<PeerLog>,
}

impl ProducerPeer {
    pub fn new(handler: AsyncHandler) -> Self {
        let log = Arc::new(PeerLog::default());
        let object = Box::into_raw(Box::new(Producer {
            device_type: ArrowDeviceType::CPU,
            request: Some(request),
            cancel: Some(cancel),
            additional_metadata: null(),
            private_data: Arc::as_ptr(&log).cast_mut().cast(),
        }));
        let handler = handler.into_raw();
        // SAFETY: the handler lives until its release.
        unsafe { (*handler).producer = object }
        Self {
            handler,
            object,
            log,
        }
    }

    pub fn schema(&mut self, schema: Schema) -> c_int {
        let mut raw = schema.into_raw();
        // SAFETY: the handler is not released; it takes the schema or leaves it.
        unsafe {
            let code = Handler::call_on_schema(self.handler, &raw mut raw).unwrap();
            drop(Schema::from_raw(raw));
            code
        }
    }

    pub fn task(&self, number: i32) -> c_int {
        self.give(number, batch(number), 0, &[])
    }

    pub fn give(&self, number: i32, batch: DeviceArray, code: c_int, metadata: &[u8]) -> c_int {
        let given = Box::new(Given {
            number,
            code,
            batch,
            log: Arc::clone(&self.log),
        });
        let given = Box::into_raw(given);
        let mut task = Task {
            extract_data: Some(extract),
            private_data: given.cast(),
        };
        let metadata = if metadata.is_empty() {
            null()
        } else {
            metadata.as_ptr().cast()
        };
        // SAFETY: the handler is not released. A task that it rejects is not extracted.
        unsafe {
            let code = Handler::call_on_next_task(self.handler, &raw mut task, metadata).unwrap();
            // The task is invalid after the call.
            task = Task::zeroed();
            assert!(task.extract_data.is_none());
            if code != 0 {
                drop(Box::from_raw(given));
            }
            code
        }
    }

    pub fn end(&self) -> c_int {
        // SAFETY: the handler is not released.
        unsafe { Handler::call_on_next_task(self.handler, null_mut(), null()).unwrap() }
    }

    pub fn error(&self, code: c_int, text: *const c_char, metadata: *const c_char) {
        // SAFETY: the handler is not released.
        unsafe { Handler::call_on_error(self.handler, code, text, metadata).unwrap() }
    }

    pub fn release(&self) {
        // SAFETY: the handler is not released.
        unsafe { Handler::release_once(self.handler) }
    }

    pub fn calls(&self) -> String {
        std::mem::take(&mut *self.log.calls.lock().unwrap()).join(", ")
    }
}

impl Drop for ProducerPeer {
    fn drop(&mut self) {
        // SAFETY: the test no longer uses the stream.
        drop(unsafe { Box::from_raw(self.object) });
    }
}

unsafe fn log<'a>(this: *mut Producer) -> &'a PeerLog {
    // SAFETY: the object belongs to a peer.
    unsafe { &*(*this).private_data.cast() }
}

unsafe extern "C" fn request(this: *mut Producer, n: i64) {
    // SAFETY: the consumer passes the object.
    unsafe { log(this) }.called(format!("request {n}"));
}

unsafe extern "C" fn cancel(this: *mut Producer) {
    // SAFETY: the consumer passes the object.
    unsafe { log(this) }.called("cancel".into());
}

unsafe extern "C" fn extract(this: *mut Task, out: *mut ArrowDeviceArray) -> c_int {
    // SAFETY: the consumer passes a copy of the task, once.
    unsafe {
        let given = Box::from_raw((*this).private_data.cast::<Given>());
        let what = if out.is_null() { "drop" } else { "extract" };
        given.log.called(format!("{what} {}", given.number));
        if given.code != 0 {
            // Writes part of the result, which the consumer must not read.
            if let Some(out) = out.as_mut() {
                out.array.release = Some(never);
            }
        } else if !out.is_null() {
            given.batch.move_to(out);
        }
        given.code
    }
}

unsafe extern "C" fn never(_: *mut ArrowArray) {
    std::process::abort();
}

// SPDX-License-Identifier: Apache-2.0

//! A fake consumer that records calls.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, CStr};
use std::ptr::{null_mut, NonNull};
use std::sync::{Arc, Mutex};

use fletching::abi::{
    ArrowAsyncDeviceStreamHandler as Handler, ArrowAsyncProducer as Producer,
    ArrowAsyncTask as Task, ArrowSchema,
};
use fletching::{AsyncHandler, DeviceArray, Schema};

/// A fake consumer that records calls and keeps the tasks.
#[derive(Default)]
pub struct ConsumerPeer {
    pub handler: UnsafeCell<Handler>,
    pub calls: Mutex<Vec<String>>,
    pub tasks: Mutex<VecDeque<Task>>,
    pub released_on: Mutex<Option<std::thread::ThreadId>>,
}

// SAFETY: the pointers belong to the producer, whose calls are thread-safe.
unsafe impl Send for ConsumerPeer {}
// SAFETY: as above.
unsafe impl Sync for ConsumerPeer {}

impl ConsumerPeer {
    pub fn new() -> Arc<Self> {
        let peer = Arc::new(Self::default());
        peer.set(|handler| {
            *handler = Handler {
                on_schema: Some(on_schema),
                on_next_task: Some(on_next_task),
                on_error: Some(on_error),
                release: Some(release),
                producer: null_mut(),
                private_data: Arc::as_ptr(&peer).cast_mut().cast(),
            }
        });
        peer
    }

    /// Changes the handler before a producer has it.
    pub fn set(&self, change: impl FnOnce(&mut Handler)) {
        // SAFETY: a test calls this before it passes the handler on.
        change(unsafe { &mut *self.handler.get() });
    }

    /// Returns a handler that keeps the peer alive until its release.
    pub fn owner(self: &Arc<Self>) -> AsyncHandler {
        let _share = Arc::into_raw(Arc::clone(self));
        let handler = NonNull::new(self.handler.get()).unwrap();
        // SAFETY: the peer outlives the handler.
        unsafe { AsyncHandler::from_raw(handler) }
    }

    /// Returns the handler for another stream.
    pub fn owner_again(self: &Arc<Self>) -> AsyncHandler {
        self.set(|handler| handler.release = Some(release));
        self.owner()
    }

    pub fn producer(&self) -> *mut Producer {
        // SAFETY: the producer has set it.
        unsafe { (*self.handler.get()).producer }
    }

    pub fn request(&self, n: i64) {
        // SAFETY: the producer lives until its future is dropped.
        unsafe { Producer::call_request(self.producer(), n).unwrap() }
    }

    pub fn cancel(&self) {
        // SAFETY: as above.
        unsafe { Producer::call_cancel(self.producer()).unwrap() }
    }

    /// Extracts the oldest task. Returns the number of rows, or the negative code.
    pub fn extract(&self) -> i64 {
        let mut task = self.tasks.lock().unwrap().pop_front().expect("a task");
        let mut array = DeviceArray::default();
        // SAFETY: each task is extracted once.
        let code = unsafe { Task::call_extract_data(&raw mut task, array.out()).unwrap() };
        assert_eq!(code != 0, array.is_released());
        if code == 0 {
            array.length()
        } else {
            -i64::from(code)
        }
    }

    pub fn drop_task(&self) -> c_int {
        let mut task = self.tasks.lock().unwrap().pop_front().expect("a task");
        // SAFETY: each task is extracted once.
        unsafe { Task::call_extract_data(&raw mut task, null_mut()).unwrap() }
    }

    /// Returns the calls since the last time.
    pub fn calls(&self) -> String {
        std::mem::take(&mut *self.calls.lock().unwrap()).join(", ")
    }

    fn called(&self, text: impl Into<String>) {
        self.calls.lock().unwrap().push(text.into());
    }
}

unsafe fn peer<'a>(this: *mut Handler) -> &'a ConsumerPeer {
    // SAFETY: the handler belongs to a peer.
    unsafe { &*(*this).private_data.cast() }
}

unsafe extern "C" fn on_schema(this: *mut Handler, schema: *mut ArrowSchema) -> c_int {
    // SAFETY: the producer passes the handler and a schema.
    unsafe {
        peer(this).called("schema");
        drop(Schema::move_from(schema));
    }
    0
}

unsafe extern "C" fn on_next_task(this: *mut Handler, task: *mut Task, _: *const c_char) -> c_int {
    // SAFETY: the producer passes the handler, and a task or NULL.
    let (peer, task) = unsafe { (peer(this), task.as_ref()) };
    if let Some(task) = task {
        peer.tasks.lock().unwrap().push_back(Task { ..*task });
    }
    peer.called(if task.is_some() { "task" } else { "end" });
    0
}

unsafe extern "C" fn on_error(
    this: *mut Handler,
    code: c_int,
    message: *const c_char,
    metadata: *const c_char,
) {
    // SAFETY: the producer passes the handler and a string.
    let (peer, text) = unsafe { (peer(this), CStr::from_ptr(message)) };
    assert!(metadata.is_null());
    peer.called(format!("error {code} {}", text.to_str().unwrap()));
}

unsafe extern "C" fn release(this: *mut Handler) {
    // SAFETY: the producer passes the handler.
    unsafe {
        let peer: *const ConsumerPeer = (*this).private_data.cast();
        (*this).release = None;
        *(*peer).released_on.lock().unwrap() = Some(std::thread::current().id());
        (*peer).called("release");
        drop(Arc::from_raw(peer));
    }
}

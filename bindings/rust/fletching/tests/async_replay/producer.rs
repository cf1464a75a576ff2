// SPDX-License-Identifier: Apache-2.0

//! Replays traces against the producer. The replay is the source, the executor and the consumer.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_char, c_int, CStr};
use std::future::{poll_fn, Future};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use fletching_abi::{
    ArrowArray, ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask,
    ArrowDeviceArray, ArrowDeviceType, ArrowSchema,
};
use serde_json::{json, Value};

use super::source::{Reader, Source, WakeFlag};
use super::{number, play_all, Replay, TrackedObject};
use crate::{
    AsyncAbort, AsyncBatch, AsyncHandler, AsyncProducer, DeviceArray, Error, Owner, Schema,
};

type Driver = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

struct Player {
    replay: Replay,
    handler: Mutex<Box<ArrowAsyncDeviceStreamHandler>>,
    raw: Mutex<*mut ArrowAsyncProducer>,
    driver: Mutex<Option<Driver>>,
    /// Kept, because calls after the release must be harmless.
    done: Mutex<Option<(Driver, Result<(), Error>)>>,
    woken: Arc<WakeFlag>,
    abort: Mutex<Option<AsyncAbort>>,
    source: Source,
    /// The batches that are made on extraction.
    made: BTreeSet<usize>,
    errno: Arc<AtomicI32>,
    schema: Mutex<Option<Arc<TrackedObject>>>,
    batches: Mutex<Vec<Arc<TrackedObject>>>,
    tasks: Mutex<BTreeMap<i64, ArrowAsyncTask>>,
    dropped: Mutex<BTreeSet<usize>>,
    codes: Mutex<Vec<c_int>>,
}

// SAFETY: steps run one after the other; locks protect against mistakes.
unsafe impl Send for Player {}
// SAFETY: as above.
unsafe impl Sync for Player {}

fn play(trace: &Value) -> Option<String> {
    let steps = trace["steps"].as_array().unwrap();
    let failing = steps.iter().filter(|step| step["event"] == "extract_fails");
    let player = Arc::new(Player {
        replay: Replay::new(trace),
        handler: Mutex::default(),
        raw: Mutex::new(std::ptr::null_mut()),
        driver: Mutex::default(),
        done: Mutex::default(),
        woken: Arc::new(WakeFlag(AtomicBool::new(true))),
        abort: Mutex::default(),
        source: Source::default(),
        made: failing.map(|step| number(step, "task") as usize).collect(),
        errno: Arc::default(),
        schema: Mutex::default(),
        batches: Mutex::default(),
        tasks: Mutex::default(),
        dropped: Mutex::default(),
        codes: Mutex::default(),
    });
    player.start();
    while let Some(step) = player.replay.next() {
        player.one(&step);
    }
    player.compare()
}

impl Player {
    fn start(self: &Arc<Self>) {
        let handler: *mut ArrowAsyncDeviceStreamHandler = {
            let mut handler = self.handler.lock().unwrap();
            **handler = ArrowAsyncDeviceStreamHandler {
                on_schema: Some(on_schema),
                on_next_task: Some(on_next_task),
                on_error: Some(on_error),
                release: Some(release),
                producer: std::ptr::null_mut(),
                private_data: Arc::as_ptr(self).cast_mut().cast(),
            };
            &raw mut **handler
        };
        let mut reader = Some(Reader(self.source.clone()));
        let open = poll_fn(move |cx| {
            let source = reader
                .as_ref()
                .expect("it is polled until it is ready")
                .0
                .clone();
            let schema = source.poll(cx, |offers| offers.schema.take());
            schema.map(|schema| Ok((schema, reader.take().unwrap())))
        });
        // SAFETY: the handler lives as long as the player.
        let handler = unsafe { AsyncHandler::from_raw(NonNull::new(handler).unwrap()) };
        let raw = handler.as_ptr();
        let producer = AsyncProducer::open(ArrowDeviceType::CPU, open);
        let sending = producer.calls_per_poll(1).send(handler);
        // SAFETY: the handler is alive, and the producer has set its object.
        *self.raw.lock().unwrap() = unsafe { (*raw).producer };
        *self.abort.lock().unwrap() = Some(sending.abort_handle());
        *self.driver.lock().unwrap() = Some(Box::pin(sending));
    }

    fn compare(&self) -> Option<String> {
        let is_ready = self.driver.lock().unwrap().take().is_none();
        if !is_ready {
            self.replay.fail("the future is not ready");
        }
        let done = self.done.lock().unwrap();
        let result = done.as_ref().map(|done| &done.1);
        let codes = self.codes.lock().unwrap();
        let code = result
            .and_then(|result| result.as_ref().err())
            .map(Error::code);
        if codes
            .first()
            .is_some_and(|reported| code != Some(*reported))
        {
            self.replay
                .fail(&format!("the future resolves to {code:?}"));
        }
        let dropped = self.dropped.lock().unwrap();
        let freed = |object: &Arc<TrackedObject>| match dropped.contains(&object.number) {
            true => object.outcome("dropped"),
            false => object.outcome("discarded"),
        };
        let tasks: Vec<_> = self.batches.lock().unwrap().iter().map(freed).collect();
        let schema = self.schema.lock().unwrap();
        let schema = schema
            .as_ref()
            .map_or("none".into(), |object| object.outcome("discarded"));
        self.replay.compare_final(&schema, &tasks, &codes)
    }

    fn one(&self, step: &Value) {
        self.replay
            .perform(step, || match step["beside"].is_null() {
                true => self.act(step),
                false => std::thread::scope(|scope| scope.spawn(|| self.act(step)).join().unwrap()),
            });
    }

    fn act(&self, step: &Value) -> c_int {
        let raw = *self.raw.lock().unwrap();
        let event = step["event"].as_str().unwrap();
        match event {
            "schema_ready" => {
                let object = TrackedObject::new(0);
                *self.schema.lock().unwrap() = Some(Arc::clone(&object));
                let schema = schema_of(&object);
                self.source.offer(|offers| offers.schema = Some(schema));
            }
            "batch_ready" => {
                let batch = self.batch();
                self.source.offer(|offers| offers.batches.push_back(batch));
            }
            "end_reached" => self.source.offer(|offers| offers.ended = true),
            "failure" => {
                let error = Error::new(number(step, "errno") as c_int, "the source has failed");
                self.abort.lock().unwrap().clone().unwrap().fail(error);
            }
            // SAFETY: the producer's object lives as long as the future.
            "request" | "request_invalid" => unsafe {
                ArrowAsyncProducer::call_request(raw, number(step, "n")).unwrap();
            },
            // SAFETY: as above.
            "cancel" => unsafe { ArrowAsyncProducer::call_cancel(raw).unwrap() },
            "step" => self.step(),
            _ => return self.extract(step, event),
        }
        0
    }

    /// Polls until a call is made, or until the future is not woken.
    fn step(&self) {
        let before = self.replay.expects();
        while !self.replay.failed() && self.replay.expects() == before {
            // The future is currently being polled.
            let Some(mut driver) = self.driver.lock().unwrap().take() else {
                return;
            };
            if !self.woken.0.swap(false, Ordering::SeqCst) {
                *self.driver.lock().unwrap() = Some(driver);
                return;
            }
            let waker = Waker::from(Arc::clone(&self.woken));
            match driver.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => *self.driver.lock().unwrap() = Some(driver),
                Poll::Ready(result) => {
                    *self.done.lock().unwrap() = Some((driver, result));
                }
            }
        }
    }

    fn batch(&self) -> AsyncBatch {
        let mut batches = self.batches.lock().unwrap();
        let object = TrackedObject::new(batches.len());
        batches.push(Arc::clone(&object));
        let array = array_of(&object);
        if !self.made.contains(&object.number) {
            return array.into();
        }
        let errno = Arc::clone(&self.errno);
        AsyncBatch::made(move || match errno.load(Ordering::SeqCst) {
            0 => Ok(array),
            errno => {
                object.record("failed");
                std::mem::forget(array);
                Err(Error::new(errno, "the data cannot be had"))
            }
        })
    }

    fn extract(&self, step: &Value, event: &str) -> c_int {
        let task = number(step, "task");
        self.errno
            .store(number(step, "errno") as c_int, Ordering::SeqCst);
        let mut tasks = self.tasks.lock().unwrap();
        let mut copy = tasks.remove(&task).expect("the task was delivered");
        drop(tasks);
        let mut array = DeviceArray::default();
        let out = match event {
            "extract_drop" => {
                self.dropped.lock().unwrap().insert(task as usize);
                std::ptr::null_mut()
            }
            _ => array.out(),
        };
        // SAFETY: a task is extracted once, or again through the same struct.
        let code = unsafe { ArrowAsyncTask::call_extract_data(&raw mut copy, out).unwrap() };
        self.tasks.lock().unwrap().insert(task, copy);
        if (event == "extract") == array.is_released() {
            self.replay
                .fail("extract_data: an array and no error, or no array and an error");
        }
        if !array.is_released() {
            let raw = array.into_raw();
            // SAFETY: the array belongs to a tracked object.
            let object = unsafe { Arc::from_raw(raw.array.private_data.cast::<TrackedObject>()) };
            if object.number != task as usize {
                self.replay.fail("extract_data: another batch");
            }
            object.record("extracted");
        }
        code
    }

    /// Plays the steps that happen before this call returns.
    fn called(&self, call: &Value) -> c_int {
        self.replay.happened(call);
        while let Some(step) = self.replay.next() {
            if !step["event"].as_str().unwrap().starts_with("returns") {
                self.one(&step);
                continue;
            }
            if step["call"] != call["call"] {
                self.replay.fail(&format!("another call runs: {call}"));
            }
            self.replay.perform(&step, || 0);
            return number(&step, "errno") as c_int;
        }
        self.replay.fail(&format!("the call never returns: {call}"));
        libc::EIO
    }
}

fn schema_of(object: &Arc<TrackedObject>) -> Schema {
    unsafe extern "C" fn release(this: *mut ArrowSchema) {
        // SAFETY: the schema belongs to a tracked object and is released once.
        unsafe { Arc::from_raw((*this).private_data.cast::<TrackedObject>()).record("freed") }
    }
    let mut raw = ArrowSchema::zeroed();
    raw.private_data = Arc::into_raw(Arc::clone(object)).cast_mut().cast();
    raw.release = Some(release);
    // SAFETY: no code reads the schema.
    unsafe { Owner::from_raw(raw) }
}

fn array_of(object: &Arc<TrackedObject>) -> DeviceArray {
    unsafe extern "C" fn release(this: *mut ArrowArray) {
        // SAFETY: the array belongs to a tracked object and is released once.
        unsafe { Arc::from_raw((*this).private_data.cast::<TrackedObject>()).record("freed") }
    }
    let mut raw = ArrowDeviceArray::zeroed();
    raw.device_type = ArrowDeviceType::CPU;
    raw.array.private_data = Arc::into_raw(Arc::clone(object)).cast_mut().cast();
    raw.array.release = Some(release);
    // SAFETY: no code reads the array.
    unsafe { Owner::from_raw(raw) }
}

unsafe fn player<'a>(this: *mut ArrowAsyncDeviceStreamHandler) -> &'a Player {
    // SAFETY: the handler belongs to a player.
    unsafe { &*(*this).private_data.cast::<Player>() }
}

unsafe extern "C" fn on_schema(
    this: *mut ArrowAsyncDeviceStreamHandler,
    schema: *mut ArrowSchema,
) -> c_int {
    // SAFETY: the producer passes the handler and the schema of a tracked object.
    unsafe {
        let code = player(this).called(&json!({"call": "on_schema"}));
        if code == 0 {
            Arc::from_raw((*schema).private_data.cast::<TrackedObject>()).record("taken");
            (*schema).release = None;
        }
        code
    }
}

unsafe extern "C" fn on_next_task(
    this: *mut ArrowAsyncDeviceStreamHandler,
    task: *mut ArrowAsyncTask,
    _metadata: *const c_char,
) -> c_int {
    // SAFETY: the producer passes the handler and a task, or NULL.
    let (player, task) = unsafe { (player(this), task.as_ref()) };
    let number = task.map(|task| {
        let mut tasks = player.tasks.lock().unwrap();
        let number = tasks.len() as i64;
        tasks.insert(number, ArrowAsyncTask { ..*task });
        number
    });
    player.called(&json!({"call": "on_next_task", "task": number}))
}

unsafe extern "C" fn on_error(
    this: *mut ArrowAsyncDeviceStreamHandler,
    code: c_int,
    message: *const c_char,
    _metadata: *const c_char,
) {
    // SAFETY: the producer passes the handler and a string.
    let (player, text) = unsafe { (player(this), CStr::from_ptr(message)) };
    if text.is_empty() {
        player.replay.fail("on_error without a text");
    }
    player.codes.lock().unwrap().push(code);
    player.called(&json!({"call": "on_error", "code": code}));
}

unsafe extern "C" fn release(this: *mut ArrowAsyncDeviceStreamHandler) {
    // SAFETY: the producer passes the handler.
    unsafe {
        player(this).called(&json!({"call": "release"}));
        (*this).release = None;
    }
}

#[test]
fn producer_matches_every_trace() {
    play_all("producer", 246, play);
}

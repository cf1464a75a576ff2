// SPDX-License-Identifier: Apache-2.0

//! Replays traces against the consumer. The replay is the producer and the application, which its
//! waker notifies.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use fletching_abi::{
    ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask, ArrowDeviceType, ArrowSchema,
};
use serde_json::Value;

use super::consumer_peer::{cancel, extract_data, release_schema, request};
use super::{hang, number, play_all, Replay, TrackedObject};
use crate::async_stream::consumer_core::Core;
use crate::{AsyncOptions, AsyncStream, Error};

/// The time after which a thread counts as hung.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) type Order = Box<dyn FnOnce() -> Option<c_int> + Send>;

/// An extraction by the application on a separate thread, suspended inside extract_data.
pub(super) struct Extraction {
    task: i64,
    answers: Receiver<c_int>,
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

/// The task of an extraction, and the other ends of its channels.
pub(super) type Current = (i64, Sender<c_int>, Receiver<Order>);

thread_local! {
    /// Set on the thread of an extraction.
    pub(super) static CURRENT: RefCell<Option<Current>> =
        const { RefCell::new(None) };
}

pub(super) struct PeerTask {
    pub(super) player: Weak<Player>,
    pub(super) object: Arc<TrackedObject>,
    /// Whether its array is on another device than the stream.
    pub(super) is_wrong: AtomicBool,
}

/// The notifications that the application received.
#[derive(Default)]
pub(super) struct Notified {
    pub(super) schema: bool,
    pub(super) end: bool,
    pub(super) error: bool,
    pub(super) arriving: Option<i64>,
}

pub(super) struct Player {
    pub(super) replay: Replay,
    pub(super) handler: *mut ArrowAsyncDeviceStreamHandler,
    pub(super) producer: Box<ArrowAsyncProducer>,
    pub(super) core: Arc<Core>,
    pub(super) notified: Mutex<Notified>,
    pub(super) is_cancelled: AtomicBool,
    pub(super) schema: Mutex<Option<Arc<TrackedObject>>>,
    pub(super) schema_refused: AtomicBool,
    pub(super) refusal: Arc<Mutex<Option<c_int>>>,
    pub(super) tasks: Mutex<Vec<Arc<PeerTask>>>,
    pub(super) extractions: Mutex<Vec<Extraction>>,
    pub(super) releases: Mutex<Vec<JoinHandle<()>>>,
    /// The number of consumer calls that are playing steps.
    pub(super) inside: AtomicUsize,
    pub(super) codes: Mutex<Vec<c_int>>,
}

// SAFETY: steps run one after the other; locks protect against mistakes.
unsafe impl Send for Player {}
// SAFETY: as above.
unsafe impl Sync for Player {}

fn play(trace: &Value) -> Option<String> {
    let refusal = Arc::new(Mutex::new(None));
    let asked = Arc::clone(&refusal);
    let options = AsyncOptions::default().window(0).accept(move |_| {
        let code = asked.lock().unwrap().take();
        code.map_or(Ok(()), |code| {
            Err(Error::new(code, "refused by the application"))
        })
    });
    let (handler, mut stream) = AsyncStream::new(options);
    let handler = handler.into_raw();
    let player = Arc::new_cyclic(|player: &Weak<Player>| {
        let mut producer = Box::new(ArrowAsyncProducer::zeroed());
        producer.device_type = ArrowDeviceType::CPU;
        producer.request = Some(request);
        producer.cancel = Some(cancel);
        producer.private_data = player.as_ptr().cast_mut().cast();
        // SAFETY: the handler lives until its release.
        unsafe { (*handler).producer = &raw mut *producer }
        Player {
            replay: Replay::new(trace),
            handler,
            producer,
            core: Arc::clone(stream.core()),
            notified: Mutex::default(),
            is_cancelled: AtomicBool::new(false),
            schema: Mutex::default(),
            schema_refused: AtomicBool::new(false),
            refusal,
            tasks: Mutex::default(),
            extractions: Mutex::default(),
            releases: Mutex::default(),
            inside: AtomicUsize::new(0),
            codes: Mutex::default(),
        }
    });
    // SAFETY: the handler lives until its release. The address of the object did not change.
    unsafe { (*handler).producer = std::ptr::from_ref(&*player.producer).cast_mut() }
    player.listen();
    while let Some(step) = player.replay.next() {
        player.one(&step);
        player.compare_state();
    }
    player.finish(&mut stream)
}

impl Player {
    pub(super) fn one(self: &Arc<Self>, step: &Value) {
        let inside =
            step["within"] == "extract_data" && !self.extractions.lock().unwrap().is_empty();
        self.replay.perform(step, || match inside {
            true => self.on_extracting_thread(step),
            false => self.act(step),
        });
    }

    fn compare_state(&self) {
        let state = self.core.lock().state;
        let name = format!("{state:?}").to_lowercase();
        if let Some(expected) = self.replay.state() {
            if expected.replace('_', "") != name {
                self.replay.fail(&format!("is {name}, not {expected}"));
            }
        }
    }

    fn on_extracting_thread(self: &Arc<Self>, step: &Value) -> c_int {
        let (player, step, (answer, answered)) = (Arc::clone(self), step.clone(), channel());
        let extractions = self.extractions.lock().unwrap();
        let order: Order = Box::new(move || {
            answer.send(player.act(&step)).unwrap();
            None
        });
        extractions[0].orders.send(order).unwrap();
        drop(extractions);
        answered
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| hang("the extracting thread"))
    }

    fn act(self: &Arc<Self>, step: &Value) -> c_int {
        let errno = number(step, "errno") as c_int;
        let task = number(step, "task");
        // SAFETY: the handler lives as long as the player, which holds a reference to the stream.
        unsafe {
            match step["event"].as_str().unwrap() {
                "on_schema" | "on_schema_refused" => return self.give_schema(errno),
                "on_task" | "on_task_refused" | "overlap" => return self.give_task(task, errno),
                "on_end" => {
                    let end = (*self.handler).on_next_task.unwrap();
                    return end(self.handler, std::ptr::null_mut(), std::ptr::null());
                }
                "take" => return self.take(task),
                "extract_invalid" => return self.finish_extraction(step, libc::EINVAL, 0),
                "extract_ok" | "extract_fails" => {
                    return self.finish_extraction(step, errno, errno)
                }
                "release" if step["returns"] == false => self.release_that_waits(),
                "release" | "release_inside" => {
                    ArrowAsyncDeviceStreamHandler::release_once(self.handler);
                }
                "on_error" | "on_error_foreign_code" => {
                    let (text, metadata) = (c"the peer has failed".as_ptr(), std::ptr::null());
                    ArrowAsyncDeviceStreamHandler::call_on_error(
                        self.handler,
                        errno,
                        text,
                        metadata,
                    )
                    .unwrap();
                }
                "request" => self.core.request(number(step, "n")).unwrap(),
                "cancel" => {
                    self.is_cancelled.store(true, Ordering::SeqCst);
                    self.core.cancel();
                }
                "drop" if self.core.skip() => {}
                event => self.replay.fail(&format!("{event}: nothing to do")),
            }
        }
        0
    }

    unsafe fn give_schema(&self, refusal: c_int) -> c_int {
        let object = TrackedObject::new(0);
        let mut known = self.schema.lock().unwrap();
        let is_first = known.is_none();
        let schema = Arc::clone(known.get_or_insert_with(|| Arc::clone(&object)));
        drop(known);
        let mut raw = ArrowSchema::zeroed();
        let given = if is_first { schema } else { object };
        raw.private_data = Arc::into_raw(given).cast_mut().cast();
        raw.release = Some(release_schema);
        *self.refusal.lock().unwrap() = (refusal != 0).then_some(refusal);
        // SAFETY: the handler is alive, and the schema belongs to the tracked object.
        let code = unsafe {
            ArrowAsyncDeviceStreamHandler::call_on_schema(self.handler, &raw mut raw).unwrap()
        };
        if (code == 0) != raw.is_released() {
            self.replay.fail("the schema was neither taken nor refused");
        }
        if !raw.is_released() {
            // SAFETY: the schema still holds its reference.
            drop(unsafe { Arc::from_raw(raw.private_data.cast::<TrackedObject>()) });
            self.schema_refused.fetch_or(is_first, Ordering::SeqCst);
        }
        code
    }

    unsafe fn give_task(self: &Arc<Self>, task: i64, refusal: c_int) -> c_int {
        let peer = Arc::new(PeerTask {
            player: Arc::downgrade(self),
            object: TrackedObject::new(task as usize),
            is_wrong: AtomicBool::new(false),
        });
        let mut raw = ArrowAsyncTask {
            extract_data: Some(extract_data),
            private_data: Arc::as_ptr(&peer).cast_mut().cast(),
        };
        self.tasks.lock().unwrap().push(Arc::clone(&peer));
        self.notified.lock().unwrap().arriving = Some(task);
        *self.refusal.lock().unwrap() = (refusal != 0).then_some(refusal);
        // SAFETY: the handler is alive. The task is valid during the call.
        let code = unsafe {
            ArrowAsyncDeviceStreamHandler::call_on_next_task(
                self.handler,
                &raw mut raw,
                std::ptr::null(),
            )
            .unwrap()
        };
        std::hint::black_box(std::mem::take(&mut raw));
        self.notified.lock().unwrap().arriving = None;
        if code != 0 {
            peer.object.record("refused");
        }
        code
    }

    fn take(self: &Arc<Self>, task: i64) -> c_int {
        let (answer, answers) = channel();
        let (orders, ordered) = channel();
        let core = Arc::clone(&self.core);
        let thread = std::thread::spawn(move || {
            CURRENT.set(Some((task, answer.clone(), ordered)));
            let taken = core.poll_batch(&mut Context::from_waker(Waker::noop()));
            let code = match taken {
                Poll::Ready(Some(Err(error))) => error.code(),
                Poll::Ready(Some(Ok(_))) => 0,
                Poll::Ready(None) => -1,
                Poll::Pending => -2,
            };
            answer.send(code).unwrap();
        });
        let extraction = Extraction {
            task,
            answers,
            orders,
            thread,
        };
        let code = extraction.answers.recv_timeout(PATIENCE);
        self.extractions.lock().unwrap().push(extraction);
        code.unwrap_or_else(|_| hang("take"))
    }

    /// `code` is the result of take, `returned` the result of extract_data.
    fn finish_extraction(&self, step: &Value, code: c_int, returned: c_int) -> c_int {
        let task = number(step, "task");
        let extraction = {
            let mut extractions = self.extractions.lock().unwrap();
            let at = extractions.iter().position(|one| one.task == task).unwrap();
            extractions.remove(at)
        };
        let peer = Arc::clone(&self.tasks.lock().unwrap()[task as usize]);
        peer.object
            .record(if code == 0 { "extracted" } else { "failed" });
        peer.is_wrong.store(code != returned, Ordering::SeqCst);
        extraction
            .orders
            .send(Box::new(move || Some(returned)))
            .unwrap();
        let Ok(answer) = extraction.answers.recv_timeout(PATIENCE) else {
            hang("take")
        };
        if answer != code {
            self.replay
                .fail(&format!("take returned {answer} instead of {code}"));
        }
        extraction.thread.join().unwrap();
        if !step["then_returns"].is_null() {
            let threads = std::mem::take(&mut *self.releases.lock().unwrap());
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        }
        0
    }

    fn finish(self: Arc<Self>, stream: &mut AsyncStream) -> Option<String> {
        for extraction in self.extractions.lock().unwrap().drain(..) {
            self.replay.fail("a task is still being extracted");
            let _ = extraction.orders.send(Box::new(|| Some(libc::EIO)));
            extraction.thread.join().unwrap();
        }
        for thread in self.releases.lock().unwrap().drain(..) {
            thread.join().unwrap();
        }
        // The stream ends for the application as notified, and no batches are left.
        let mut errors = Vec::new();
        while let Poll::Ready(Some(item)) = stream
            .core()
            .poll_batch(&mut Context::from_waker(Waker::noop()))
        {
            errors.extend(item.err().map(|error| error.code()));
        }
        let codes = self.codes.lock().unwrap();
        if !self.is_cancelled.load(Ordering::SeqCst) && errors != *codes {
            self.replay
                .fail(&format!("items {errors:?} instead of {codes:?}"));
        }
        let tasks = self.tasks.lock().unwrap();
        for task in tasks.iter() {
            let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
            if count(&task.object.arrays) != count(&task.object.released) {
                self.replay.fail("an array was not released, or twice");
            }
        }
        let tasks: Vec<_> = tasks
            .iter()
            .map(|task| task.object.outcome("freed"))
            .collect();
        let schema = match self.schema.lock().unwrap().as_ref() {
            None => "none".into(),
            Some(_) if self.schema_refused.load(Ordering::SeqCst) => "refused".into(),
            // The stream still has it.
            Some(object) if object.outcomes.lock().unwrap().is_empty() => "taken".into(),
            Some(object) => object.outcome("discarded"),
        };
        self.replay.compare_final(&schema, &tasks, &codes)
    }
}

/// An event between the first check and the registration of the waker wakes nobody.
#[test]
fn poll_checks_again_after_waker_registration() {
    let (_handler, stream) = AsyncStream::new(AsyncOptions::default());
    let looks = std::cell::Cell::new(0);
    let look = |inner| match looks.replace(looks.get() + 1) {
        0 => Err(inner),
        _ => Ok(()),
    };
    let polled = stream
        .core()
        .poll(&mut Context::from_waker(Waker::noop()), look);
    assert!(polled.is_ready());
}

#[test]
fn consumer_matches_every_trace() {
    play_all("consumer", 195, play);
}

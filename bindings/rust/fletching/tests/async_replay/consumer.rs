// SPDX-License-Identifier: Apache-2.0

//! The consumer: the replay is the producer and the application, which is notified by its waker.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fletching_abi::{
    ArrowArray, ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask,
    ArrowDeviceArray, ArrowDeviceType, ArrowSchema,
};
use serde_json::{json, Value};

use super::{hang, number, play_all, Replay, Thing};
use crate::async_stream::consumer_core::{Core, State};
use crate::{AsyncOptions, AsyncStream, Error};

/// Afterwards a thread counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);

type Order = Box<dyn FnOnce() -> Option<c_int> + Send>;

/// A take of the application, on its own thread, held open inside extract_data.
struct Extraction {
    task: i64,
    answers: Receiver<c_int>,
    orders: Sender<Order>,
    thread: JoinHandle<()>,
}

/// The task of an extraction, and the other ends.
type Current = (i64, Sender<c_int>, Receiver<Order>);

thread_local! {
    /// Of the thread of an extraction.
    static CURRENT: RefCell<Option<Current>> =
        const { RefCell::new(None) };
}

/// A task of the producer.
struct PeerTask {
    player: Weak<Player>,
    thing: Arc<Thing>,
    /// Its array is on another device than the stream.
    is_wrong: AtomicBool,
}

/// What the application was notified of.
#[derive(Default)]
struct Notified {
    schema: bool,
    end: bool,
    error: bool,
    arriving: Option<i64>,
}

struct Player {
    replay: Replay,
    handler: *mut ArrowAsyncDeviceStreamHandler,
    producer: Box<ArrowAsyncProducer>,
    core: Arc<Core>,
    notified: Mutex<Notified>,
    is_cancelled: AtomicBool,
    schema: Mutex<Option<Arc<Thing>>>,
    schema_refused: AtomicBool,
    refusal: Arc<Mutex<Option<c_int>>>,
    tasks: Mutex<Vec<Arc<PeerTask>>>,
    extractions: Mutex<Vec<Extraction>>,
    releases: Mutex<Vec<JoinHandle<()>>>,
    codes: Mutex<Vec<c_int>>,
}

// SAFETY: steps happen one after the other; a lock is in the way of a mistake.
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
    fn one(self: &Arc<Self>, step: &Value) {
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
        // SAFETY: the handler lives as long as the player, which has a share of the stream.
        unsafe {
            match step["event"].as_str().unwrap() {
                "on_schema" | "on_schema_refused" => return self.give_schema(errno),
                "on_task" | "on_task_refused" | "overlap" => return self.give_task(task, errno),
                "on_end" => {
                    let (task, metadata) = (std::ptr::null_mut(), std::ptr::null());
                    return ArrowAsyncDeviceStreamHandler::call_on_next_task(
                        self.handler,
                        task,
                        metadata,
                    )
                    .unwrap();
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
        let thing = Thing::new(0);
        let mut known = self.schema.lock().unwrap();
        let is_first = known.is_none();
        let schema = Arc::clone(known.get_or_insert_with(|| Arc::clone(&thing)));
        drop(known);
        let mut raw = ArrowSchema::zeroed();
        let given = if is_first { schema } else { thing };
        raw.private_data = Arc::into_raw(given).cast_mut().cast();
        raw.release = Some(release_schema);
        *self.refusal.lock().unwrap() = (refusal != 0).then_some(refusal);
        // SAFETY: the handler lives, and the schema is the thing's.
        let code = unsafe {
            ArrowAsyncDeviceStreamHandler::call_on_schema(self.handler, &raw mut raw).unwrap()
        };
        if (code == 0) != raw.is_released() {
            self.replay.fail("the schema was neither taken nor refused");
        }
        if !raw.is_released() {
            // SAFETY: the share that the schema still has.
            drop(unsafe { Arc::from_raw(raw.private_data.cast::<Thing>()) });
            self.schema_refused.fetch_or(is_first, Ordering::SeqCst);
        }
        code
    }

    unsafe fn give_task(self: &Arc<Self>, task: i64, refusal: c_int) -> c_int {
        let peer = Arc::new(PeerTask {
            player: Arc::downgrade(self),
            thing: Thing::new(task as usize),
            is_wrong: AtomicBool::new(false),
        });
        let mut raw = ArrowAsyncTask {
            extract_data: Some(extract_data),
            private_data: Arc::as_ptr(&peer).cast_mut().cast(),
        };
        self.tasks.lock().unwrap().push(Arc::clone(&peer));
        self.notified.lock().unwrap().arriving = Some(task);
        *self.refusal.lock().unwrap() = (refusal != 0).then_some(refusal);
        // SAFETY: the handler lives. The task is valid during the call.
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
            peer.thing.meets("refused");
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

    /// `code` is what take returns, `returned` what extract_data returns.
    fn finish_extraction(&self, step: &Value, code: c_int, returned: c_int) -> c_int {
        let task = number(step, "task");
        let extraction = {
            let mut extractions = self.extractions.lock().unwrap();
            let at = extractions.iter().position(|one| one.task == task).unwrap();
            extractions.remove(at)
        };
        let peer = Arc::clone(&self.tasks.lock().unwrap()[task as usize]);
        peer.thing
            .meets(if code == 0 { "extracted" } else { "failed" });
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

    /// Returns when the release has done all but wait.
    fn release_that_waits(self: &Arc<Self>) {
        let player = Arc::clone(self);
        // SAFETY: the handler lives.
        let release = move || unsafe {
            ArrowAsyncDeviceStreamHandler::release_once(player.handler);
        };
        let thread = std::thread::spawn(release);
        let begun = Instant::now();
        while self.core.lock().state != State::Releasing || self.replay.expects() > 0 {
            if thread.is_finished() || self.replay.failed() || begun.elapsed() > PATIENCE {
                self.replay.fail("release does not wait");
                break;
            }
            std::thread::yield_now();
        }
        self.releases.lock().unwrap().push(thread);
    }

    // --- The notifications ----------------------------------------------------------------------

    fn listen(self: &Arc<Self>) {
        self.core.waker.register(&Waker::from(Arc::clone(self)));
    }

    /// What is new, when the waker is called.
    fn news(&self) -> Option<Value> {
        let inner = self.core.lock();
        let mut notified = self.notified.lock().unwrap();
        let arriving = notified.arriving.take();
        if let Some(error) = inner.failure.as_ref().filter(|_| !notified.error) {
            notified.error = true;
            self.codes.lock().unwrap().push(error.code());
            return Some(json!({"notify": "error", "code": error.code()}));
        }
        if inner.state == State::Ended && !notified.end {
            notified.end = true;
            return Some(json!({"notify": "end"}));
        }
        if self.core.info.get().is_some() && !notified.schema {
            notified.schema = true;
            return Some(json!({"notify": "schema"}));
        }
        arriving.map(|task| json!({"notify": "task", "task": task}))
    }

    /// Plays the steps within this call, when it is the last of its name.
    fn reached(self: &Arc<Self>, what: &Value, name: &str) {
        self.replay.happened(what);
        let more = self.replay.expects_another(name);
        while let Some(step) = self
            .replay
            .next()
            .filter(|step| !more && step["within"] == name)
        {
            self.one(&step);
        }
    }

    fn extract(self: &Arc<Self>, peer: &PeerTask, out: *mut ArrowDeviceArray) -> c_int {
        let number = peer.thing.number as i64;
        let call = json!({"call": "extract_data", "task": number, "out": !out.is_null()});
        let current = CURRENT.take().filter(|current| current.0 == number);
        let code = match current {
            Some((_, answer, orders)) => {
                self.replay.happened(&call);
                answer.send(0).unwrap();
                orders.iter().find_map(|order| order()).unwrap_or(libc::EIO)
            }
            None => {
                peer.thing.meets(if out.is_null() {
                    "dropped"
                } else {
                    "extracted"
                });
                self.reached(&call, "extract_data");
                0
            }
        };
        // SAFETY: the consumer passes a struct to fill, or NULL. It is written also when the
        // extraction fails: the consumer must not look at it then.
        if let Some(out) = unsafe { out.as_mut() } {
            peer.thing
                .arrays
                .fetch_add(usize::from(code == 0), Ordering::SeqCst);
            out.device_type = match peer.is_wrong.load(Ordering::SeqCst) {
                true => ArrowDeviceType::CUDA,
                false => ArrowDeviceType::CPU,
            };
            out.array.private_data = Arc::as_ptr(&peer.thing).cast_mut().cast();
            out.array.release = Some(release_array);
        }
        code
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
        // The stream ends for the application as it was notified, and with nothing left.
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
            let count = |count: &std::sync::atomic::AtomicUsize| count.load(Ordering::SeqCst);
            if count(&task.thing.arrays) != count(&task.thing.released) {
                self.replay.fail("an array was not released, or twice");
            }
        }
        let tasks: Vec<_> = tasks.iter().map(|task| task.thing.fate("freed")).collect();
        let schema = match self.schema.lock().unwrap().as_ref() {
            None => "none".into(),
            Some(_) if self.schema_refused.load(Ordering::SeqCst) => "refused".into(),
            // The stream still has it.
            Some(thing) if thing.fates.lock().unwrap().is_empty() => "taken".into(),
            Some(thing) => thing.fate("discarded"),
        };
        self.replay.compare_final(&schema, &tasks, &codes)
    }
}

impl Wake for Player {
    fn wake(self: Arc<Self>) {
        let news = self.news();
        self.listen();
        if let Some(news) = news {
            self.reached(&news, "notify");
        }
    }
}

unsafe extern "C" fn release_schema(this: *mut ArrowSchema) {
    // SAFETY: it is the schema of a thing, and released once.
    unsafe {
        Arc::from_raw((*this).private_data.cast::<Thing>()).meets("freed");
        (*this).release = None;
    }
}

unsafe extern "C" fn release_array(this: *mut ArrowArray) {
    // SAFETY: it is the array of a thing, which the player keeps.
    unsafe {
        let thing = &*(*this).private_data.cast::<Thing>();
        thing.released.fetch_add(1, Ordering::SeqCst);
        (*this).release = None;
    }
}

unsafe fn player(this: *mut ArrowAsyncProducer) -> Arc<Player> {
    // SAFETY: the object is a player's, which outlives the trace.
    unsafe {
        let player: *const Player = (*this).private_data.cast();
        Arc::increment_strong_count(player);
        Arc::from_raw(player)
    }
}

unsafe extern "C" fn request(this: *mut ArrowAsyncProducer, n: i64) {
    // SAFETY: the consumer passes the producer's object.
    unsafe { player(this) }.reached(&json!({"call": "request", "n": n}), "request");
}

unsafe extern "C" fn cancel(this: *mut ArrowAsyncProducer) {
    // SAFETY: the consumer passes the producer's object.
    unsafe { player(this) }.reached(&json!({"call": "cancel"}), "cancel");
}

unsafe extern "C" fn extract_data(this: *mut ArrowAsyncTask, out: *mut ArrowDeviceArray) -> c_int {
    // SAFETY: the task is a player's, which keeps it.
    let peer = unsafe { &*(*this).private_data.cast::<PeerTask>() };
    peer.player.upgrade().unwrap().extract(peer, out)
}

#[test]
fn the_consumer_does_what_every_trace_says() {
    play_all("consumer", 195, play);
}

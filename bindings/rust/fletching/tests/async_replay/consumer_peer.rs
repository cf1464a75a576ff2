// SPDX-License-Identifier: Apache-2.0

//! The consumer's replay: callbacks of the fake producer, and notifications of the application.

use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Instant;

use fletching_abi::{
    ArrowArray, ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask,
    ArrowDeviceArray, ArrowDeviceType, ArrowSchema,
};
use serde_json::{json, Value};

use super::TrackedObject;
use crate::async_stream::consumer_core::State;

use super::consumer::{PeerTask, Player, CURRENT, PATIENCE};

impl Player {
    pub(super) fn listen(self: &Arc<Self>) {
        self.core.waker.register(&Waker::from(Arc::clone(self)));
    }

    /// Returns the new notification, when the waker is called.
    pub(super) fn news(&self) -> Option<Value> {
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

    /// Plays the steps within this call, if it is the last call of its name.
    pub(super) fn reached(self: &Arc<Self>, what: &Value, name: &str) {
        self.inside.fetch_add(1, Ordering::SeqCst);
        self.replay.happened(what);
        let more = self.replay.expects_another(name);
        while let Some(step) = self
            .replay
            .next()
            .filter(|step| !more && step["within"] == name)
        {
            self.one(&step);
        }
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Starts a release. Returns when only its wait remains.
    pub(super) fn release_that_waits(self: &Arc<Self>) {
        let before = self.inside.load(Ordering::SeqCst);
        let player = Arc::clone(self);
        // SAFETY: the handler is alive.
        let release = move || unsafe {
            ArrowAsyncDeviceStreamHandler::release_once(player.handler);
        };
        let thread = std::thread::spawn(release);
        let begun = Instant::now();
        // The steps within its notification are played first.
        while self.core.lock().state != State::Releasing
            || self.replay.expects() > 0
            || self.inside.load(Ordering::SeqCst) > before
        {
            if thread.is_finished() || self.replay.failed() || begun.elapsed() > PATIENCE {
                self.replay.fail("release does not wait");
                break;
            }
            std::thread::yield_now();
        }
        self.releases.lock().unwrap().push(thread);
    }

    pub(super) fn extract(self: &Arc<Self>, peer: &PeerTask, out: *mut ArrowDeviceArray) -> c_int {
        let number = peer.object.number as i64;
        let call = json!({"call": "extract_data", "task": number, "out": !out.is_null()});
        let current = CURRENT.take().filter(|current| current.0 == number);
        let code = match current {
            Some((_, answer, orders)) => {
                self.replay.happened(&call);
                answer.send(0).unwrap();
                orders.iter().find_map(|order| order()).unwrap_or(libc::EIO)
            }
            None => {
                peer.object.record(if out.is_null() {
                    "dropped"
                } else {
                    "extracted"
                });
                self.reached(&call, "extract_data");
                0
            }
        };
        // SAFETY: the consumer passes a struct to fill, or NULL. It is also written if the
        // extraction fails: the consumer must not read it then.
        if let Some(out) = unsafe { out.as_mut() } {
            peer.object
                .arrays
                .fetch_add(usize::from(code == 0), Ordering::SeqCst);
            out.device_type = match peer.is_wrong.load(Ordering::SeqCst) {
                true => ArrowDeviceType::CUDA,
                false => ArrowDeviceType::CPU,
            };
            out.array.private_data = Arc::as_ptr(&peer.object).cast_mut().cast();
            out.array.release = Some(release_array);
        }
        code
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

pub(super) unsafe extern "C" fn release_schema(this: *mut ArrowSchema) {
    // SAFETY: the schema belongs to a tracked object and is released once.
    unsafe {
        Arc::from_raw((*this).private_data.cast::<TrackedObject>()).record("freed");
        (*this).release = None;
    }
}

pub(super) unsafe extern "C" fn release_array(this: *mut ArrowArray) {
    // SAFETY: the array belongs to a tracked object, which the player keeps.
    unsafe {
        let object = &*(*this).private_data.cast::<TrackedObject>();
        object.released.fetch_add(1, Ordering::SeqCst);
        (*this).release = None;
    }
}

unsafe fn player(this: *mut ArrowAsyncProducer) -> Arc<Player> {
    // SAFETY: the object belongs to a player, which outlives the trace.
    unsafe {
        let player: *const Player = (*this).private_data.cast();
        Arc::increment_strong_count(player);
        Arc::from_raw(player)
    }
}

pub(super) unsafe extern "C" fn request(this: *mut ArrowAsyncProducer, n: i64) {
    // SAFETY: the consumer passes the producer's object.
    unsafe { player(this) }.reached(&json!({"call": "request", "n": n}), "request");
}

pub(super) unsafe extern "C" fn cancel(this: *mut ArrowAsyncProducer) {
    // SAFETY: the consumer passes the producer's object.
    unsafe { player(this) }.reached(&json!({"call": "cancel"}), "cancel");
}

pub(super) unsafe extern "C" fn extract_data(
    this: *mut ArrowAsyncTask,
    out: *mut ArrowDeviceArray,
) -> c_int {
    // SAFETY: the task belongs to a player, which keeps it.
    let peer = unsafe { &*(*this).private_data.cast::<PeerTask>() };
    peer.player.upgrade().unwrap().extract(peer, out)
}

// SPDX-License-Identifier: Apache-2.0

//! The state of a consumer: the table of docs/reference/async.md.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use fletching_abi::{
    ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer, ArrowAsyncTask, ArrowDeviceArray,
};
use libc::EIO;

use super::calls::{self, Counts, MARK, PRODUCER, TASK};
use super::consumer::{Accept, AsyncOptions};
use super::{not_positive, AsyncHandler, Promise};
use crate::error::{guarded, Error};
use crate::owner::{DeviceArray, Schema};

/// The states of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Created,
    CancelledEarly,
    Streaming,
    Cancelled,
    Ended,
    Broken,
    Failed,
    Refused,
    Releasing,
    Released,
}

impl State {
    /// The application does not know yet how the stream ends.
    pub(super) fn is_live(self) -> bool {
        matches!(self, Self::Created | Self::Streaming)
    }

    /// The application is not notified any more, though the producer may still call.
    pub(super) fn is_silent(self) -> bool {
        matches!(self, Self::CancelledEarly | Self::Cancelled | Self::Broken)
    }
}

/// What is known from `on_schema` on.
pub(super) struct Info {
    pub schema: Schema,
    pub metadata: Vec<u8>,
    pub promise: Promise,
    pub producer: *mut ArrowAsyncProducer,
}

/// A batch and its metadata, or why there is none.
pub(super) type Extracted = Result<(DeviceArray, Vec<u8>), Error>;

/// Copies of what `on_next_task` was called with, to be extracted once.
pub(super) struct Queued {
    pub task: ArrowAsyncTask,
    pub metadata: Vec<u8>,
}

impl Queued {
    pub(super) fn drop_data(mut self) {
        // SAFETY: the task is extracted once, and it was queued with a callback.
        let _ = unsafe { ArrowAsyncTask::call_extract_data(&raw mut self.task, ptr::null_mut()) };
    }

    /// The batch, and whether the producer knows of the error.
    fn extract(mut self, promise: &Promise) -> (Extracted, bool) {
        let mut raw = ArrowDeviceArray::zeroed();
        // SAFETY: the task is extracted once. Of a failed extraction nothing is ours to release;
        // what the producer fills otherwise is as its text asks.
        unsafe {
            match ArrowAsyncTask::call_extract_data(&raw mut self.task, &raw mut raw) {
                Some(0) => {
                    let batch = DeviceArray::from_raw(raw);
                    let checked = promise.check(batch.as_raw());
                    (checked.map(|()| (batch, self.metadata)), false)
                }
                code => {
                    let text = c"extract_data: failed without a message";
                    (
                        Err(Error::foreign(code.unwrap_or(EIO), text.as_ptr())),
                        true,
                    )
                }
            }
        }
    }
}

/// A task that the application is taking: a release from inside the request for more extracts it.
pub(super) struct Taken {
    queued: Option<Queued>,
    result: Option<(Extracted, bool)>,
}

impl Taken {
    /// # Safety
    ///
    /// `this` is valid, and used by this thread alone.
    pub(super) unsafe fn extract_once(this: *mut Self, promise: &Promise) {
        // SAFETY: the caller vouches for it. No reference is kept over the call.
        unsafe {
            if let Some(queued) = (*this).queued.take() {
                let result = queued.extract(promise);
                (*this).result = Some(result);
            }
        }
    }
}

pub(super) struct Inner {
    pub state: State,
    unsent: i64,
    pub demand: i64,
    /// Batches that were taken and not requested again.
    owed: u32,
    pub queue: VecDeque<Queued>,
    /// No task is taken from the queue any more.
    closed: bool,
    /// After the release of a stream that has ended.
    kept: VecDeque<Extracted>,
    pub extracting: bool,
    pub failure: Option<Error>,
    reported: bool,
    pub waker: Option<Waker>,
    pub counts: Counts,
}

impl Inner {
    /// Ends the taking of tasks. False when another caller has done it.
    pub(super) fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.closed, true)
    }

    pub(super) fn keep(&mut self, kept: VecDeque<Extracted>) {
        self.kept = kept;
        self.extracting = false;
    }
}

pub(super) type Guard<'a> = MutexGuard<'a, Inner>;

pub(super) struct Core {
    pub handler: UnsafeCell<ArrowAsyncDeviceStreamHandler>,
    /// Whether a handler call is running: see `consumer_handler.rs`.
    pub calling: AtomicU8,
    pub accept: Option<Mutex<Accept>>,
    pub info: OnceLock<Info>,
    window: u32,
    inner: Mutex<Inner>,
    pub ended: AtomicU64,
    changed: Condvar,
}

// SAFETY: the handler is called by the producer, one call at a time, and written before it is handed
// out. The producer and the tasks may be called from any thread.
unsafe impl Send for Core {}
// SAFETY: as above; all else is atomic or has the lock.
unsafe impl Sync for Core {}

impl Core {
    /// With a share for the handler, which its release returns.
    pub(super) fn new(options: AsyncOptions) -> (AsyncHandler, Arc<Self>) {
        let core = Arc::new(Self {
            handler: UnsafeCell::default(),
            calling: AtomicU8::new(0),
            accept: options.accept.map(Mutex::new),
            info: OnceLock::new(),
            window: options.window,
            inner: Mutex::new(Inner {
                state: State::Created,
                unsent: options.window.into(),
                demand: 0,
                owed: 0,
                queue: VecDeque::new(),
                closed: false,
                kept: VecDeque::new(),
                extracting: false,
                failure: None,
                reported: false,
                waker: None,
                counts: Counts::default(),
            }),
            ended: AtomicU64::new(0),
            changed: Condvar::new(),
        });
        let private_data = Arc::into_raw(Arc::clone(&core)).cast_mut().cast();
        // SAFETY: nobody else has the handler yet, and it is not NULL.
        let handler = unsafe {
            core.handler
                .get()
                .write(super::consumer_handler::handler(private_data));
            AsyncHandler::from_raw(ptr::NonNull::new_unchecked(core.handler.get()))
        };
        (handler, core)
    }

    pub(super) fn lock(&self) -> Guard<'_> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the end of a call that is marked.
    pub(super) fn wait<'a>(&'a self, inner: Guard<'a>) -> Guard<'a> {
        let woken = self.changed.wait(inner);
        woken.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn id(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    /// Makes a call, or several of one kind. `body` gets the lock and releases it before each.
    pub(super) fn out<T>(
        &self,
        mut inner: Guard<'_>,
        weight: u64,
        taken: *mut Taken,
        body: impl FnOnce(Guard<'_>) -> T,
    ) -> T {
        inner.counts.begin(weight);
        let result = calls::within(self.id(), weight, taken, || body(inner));
        if self.ended.fetch_add(weight, Ordering::AcqRel) & MARK != 0 {
            self.lock().counts.end_after_mark(weight);
            self.changed.notify_all();
        }
        result
    }

    pub(super) fn running(&self, inner: &Inner) -> u64 {
        inner.counts.running(self.ended.load(Ordering::Acquire))
    }

    // --- The application's side -----------------------------------------------------------------

    pub(super) fn request(&self, n: i64) -> Result<(), Error> {
        if n <= 0 {
            return Err(not_positive(n));
        }
        let mut inner = self.lock();
        match inner.state {
            State::Created => inner.unsent = inner.unsent.saturating_add(n),
            _ => self.send_request(inner, n),
        }
        Ok(())
    }

    /// While streaming; else nothing.
    fn send_request(&self, mut inner: Guard<'_>, n: i64) {
        if n == 0 || inner.state != State::Streaming {
            return;
        }
        inner.demand = inner.demand.saturating_add(n);
        self.out(inner, PRODUCER, ptr::null_mut(), |inner| {
            drop(inner);
            // SAFETY: while streaming the producer exists, and release waits for this call.
            let _ = self.info.get().map(|info| unsafe {
                ArrowAsyncProducer::call_request(info.producer, n);
            });
        });
    }

    /// Sends what was requested before `on_schema`.
    pub(super) fn send_unsent(&self, mut inner: Guard<'_>) {
        let n = std::mem::take(&mut inner.unsent);
        self.send_request(inner, n);
    }

    pub(super) fn call_cancel(&self) {
        // SAFETY: as in send_request.
        let _ = self.info.get().map(|info| unsafe {
            ArrowAsyncProducer::call_cancel(info.producer);
        });
    }

    pub(super) fn poll_batch(&self, cx: &mut Context<'_>) -> Poll<Option<Extracted>> {
        self.poll(cx, |mut inner| {
            if let Some(batch) = inner.kept.pop_front() {
                return Ok(Some(batch));
            }
            if !inner.closed && !inner.queue.is_empty() {
                return Ok(Some(self.take_queued(inner)));
            }
            if inner.extracting {
                return Err(inner);
            }
            if let (false, Some(failure)) = (inner.reported, inner.failure.clone()) {
                inner.reported = true;
                return Ok(Some(Err(failure)));
            }
            match inner.state.is_live() {
                true => Err(inner),
                false => Ok(None),
            }
        })
    }

    /// Polls for something. The waker is cloned without the lock, and dropped so.
    pub(super) fn poll<'a, T>(
        &'a self,
        cx: &mut Context<'_>,
        ready: impl Fn(Guard<'a>) -> Result<T, Guard<'a>>,
    ) -> Poll<T> {
        let mut cloned = None;
        loop {
            let mut inner = match ready(self.lock()) {
                Ok(value) => return Poll::Ready(value),
                Err(inner) => inner,
            };
            let known = inner.waker.as_ref();
            if known.is_some_and(|waker| waker.will_wake(cx.waker())) {
                return Poll::Pending;
            }
            if cloned.is_some() {
                let replaced = std::mem::replace(&mut inner.waker, cloned);
                drop(inner);
                drop(replaced);
                return Poll::Pending;
            }
            drop(inner);
            cloned = Some(cx.waker().clone());
        }
    }

    /// The requests for more are sent by half windows, and before the extraction: the producer of
    /// libarrow goes with its last task.
    fn owe(&self, inner: &mut Inner) -> i64 {
        inner.owed += 1;
        if self.window == 0 || inner.owed < self.window.div_ceil(2) {
            return 0;
        }
        std::mem::take(&mut inner.owed).into()
    }

    fn take_queued(&self, mut inner: Guard<'_>) -> Extracted {
        let mut taken = Taken {
            queued: inner.queue.pop_front(),
            result: None,
        };
        let taken = &raw mut taken;
        let more = self.owe(&mut inner);
        self.out(inner, TASK, taken, |inner| {
            self.send_request(inner, more);
            // SAFETY: only this thread has the pointer; a task was queued after `on_schema`.
            let (result, producer_knows) = unsafe {
                let promise = &self.info.get().unwrap_unchecked().promise;
                Taken::extract_once(taken, promise);
                (*taken).result.take().unwrap_unchecked()
            };
            if result.is_err() {
                self.lose(producer_knows);
            }
            result
        })
    }

    /// Drops the oldest batch. False when none is queued.
    pub(super) fn skip(&self) -> bool {
        let mut inner = self.lock();
        if let Some(batch) = inner.kept.pop_front() {
            drop(inner);
            drop(batch);
            return true;
        }
        if inner.closed {
            return false;
        }
        let Some(queued) = inner.queue.pop_front() else {
            return false;
        };
        let more = self.owe(&mut inner);
        self.out(inner, TASK, ptr::null_mut(), |inner| {
            self.send_request(inner, more);
            queued.drop_data();
        });
        true
    }

    pub(super) fn cancel(&self) {
        let mut inner = self.lock();
        let streaming = inner.state == State::Streaming;
        match inner.state {
            State::Created => inner.state = State::CancelledEarly,
            State::Streaming => inner.state = State::Cancelled,
            _ => {}
        }
        let discarded = (std::mem::take(&mut inner.kept), inner.waker.take());
        if inner.close() {
            self.out(inner, PRODUCER, ptr::null_mut(), |inner| {
                drop(inner);
                if streaming {
                    self.call_cancel();
                }
                self.drop_queued(self.lock());
            });
        } else {
            drop(inner);
        }
        drop(discarded);
    }

    /// An extraction has failed: the stream is over for the application. A producer that does not
    /// know of it would wait for the next request.
    fn lose(&self, producer_knows: bool) {
        let mut inner = self.lock();
        if inner.state != State::Streaming {
            return;
        }
        inner.state = State::Broken;
        inner.close();
        self.out(inner, PRODUCER, ptr::null_mut(), |inner| {
            drop(inner);
            if !producer_knows {
                self.call_cancel();
            }
            self.drop_queued(self.lock());
        });
    }

    // --- Both sides -----------------------------------------------------------------------------

    pub(super) fn drop_queued(&self, inner: Guard<'_>) {
        self.each_queued(inner, |queued, _| queued.drop_data());
    }

    /// After the end, while the producer still exists.
    pub(super) fn keep_queued(&self) {
        let mut kept = VecDeque::new();
        self.each_queued(self.lock(), |queued, promise| {
            kept.push_back(queued.extract(promise).0);
        });
        self.lock().keep(kept);
    }

    fn each_queued(&self, inner: Guard<'_>, mut visit: impl FnMut(Queued, &Promise)) {
        let Some(info) = self.info.get() else { return };
        self.out(inner, TASK, ptr::null_mut(), |inner| {
            let mut inner = Some(inner);
            loop {
                let next = inner
                    .take()
                    .unwrap_or_else(|| self.lock())
                    .queue
                    .pop_front();
                let Some(queued) = next else { return };
                visit(queued, &info.promise);
            }
        });
    }

    pub(super) fn wake(&self) {
        let waker = self.lock().waker.take();
        wake(waker);
    }
}

/// A waker is the user's code: its panic goes no further.
pub(super) fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        let _ = guarded(|| {
            waker.wake();
            Ok(())
        });
    }
}

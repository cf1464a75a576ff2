// SPDX-License-Identifier: Apache-2.0

//! The state of a consumer, and the actions of the application, see docs/reference/async.md.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use fletching_abi::{ArrowAsyncDeviceStreamHandler, ArrowAsyncProducer};

use super::calls::{self, Frame, MARK, PRODUCER, TASK};
use super::options::{Accept, AsyncOptions};
use super::queued::{Extracted, Queued, Taken};
use super::waker::{wake, WakerSlot};
use super::{not_positive, AsyncHandler, Promise};
use crate::error::{discard, Error};
use crate::owner::Schema;

/// The states in the table of docs/reference/async.md.
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
    /// Whether the application has not yet learned how the stream ends.
    pub(super) fn is_live(self) -> bool {
        matches!(self, Self::Created | Self::Streaming)
    }
}

/// The data that arrives with `on_schema`.
pub(super) struct Info {
    pub schema: Schema,
    pub metadata: Vec<u8>,
    pub promise: Promise,
    pub producer: *mut ArrowAsyncProducer,
}

pub(super) struct Inner {
    pub state: State,
    /// Batches requested before `on_schema`, then batches that may still arrive.
    pub demand: i64,
    /// Batches that were taken but not requested again.
    pub owed: u32,
    pub queue: VecDeque<Queued>,
    /// No more tasks are taken from the queue.
    pub closed: bool,
    /// The batches extracted when a stream that has ended is released; None while they are being
    /// extracted.
    pub kept: Option<VecDeque<Extracted>>,
    pub failure: Option<Error>,
    reported: bool,
    /// The number of calls begun or, after the release has marked `ended`, of calls running. May
    /// wrap.
    pub calls: u64,
}

pub(super) type Guard<'a> = MutexGuard<'a, Inner>;

pub(super) struct Core {
    pub handler: UnsafeCell<ArrowAsyncDeviceStreamHandler>,
    /// The state of the handler calls, see `consumer_handler.rs`.
    pub calling: AtomicU8,
    pub accept: Option<Mutex<Accept>>,
    pub info: OnceLock<Info>,
    pub waker: WakerSlot,
    window: u32,
    inner: Mutex<Inner>,
    /// The sum of the weights of ended calls. A call is counted in `calls` when it begins, under
    /// the lock that its caller needs anyway, and here when it ends. The release reads and marks
    /// the sum in one step; a call that ends later sees the mark and takes the lock to be counted.
    pub ended: AtomicU64,
    changed: Condvar,
}

// SAFETY: the producer calls the handler, one call at a time, and the handler is written before it
// is passed on. The producer and the tasks may be called on any thread.
unsafe impl Send for Core {}
// SAFETY: as above; all other fields are atomic or locked.
unsafe impl Sync for Core {}

impl Core {
    /// Makes a core with a reference for the handler, which the handler's release drops. `handler`
    /// makes the handler's struct.
    pub(super) fn new(
        options: AsyncOptions,
        handler: impl FnOnce(*const Self) -> ArrowAsyncDeviceStreamHandler,
    ) -> (AsyncHandler, Arc<Self>) {
        let core = Arc::new(Self {
            handler: UnsafeCell::default(),
            calling: AtomicU8::new(0),
            accept: options.accept.map(Mutex::new),
            info: OnceLock::new(),
            waker: WakerSlot::default(),
            window: options.window,
            inner: Mutex::new(Inner {
                state: State::Created,
                demand: options.window.into(),
                owed: 0,
                queue: VecDeque::new(),
                closed: false,
                kept: Some(VecDeque::new()),
                failure: None,
                reported: false,
                calls: 0,
            }),
            ended: AtomicU64::new(0),
            changed: Condvar::new(),
        });
        let handler = handler(Arc::into_raw(Arc::clone(&core)));
        // SAFETY: no other code has the handler yet, and it is not NULL.
        let handler = unsafe {
            core.handler.get().write(handler);
            AsyncHandler(NonNull::new_unchecked(core.handler.get()))
        };
        (handler, core)
    }

    pub(super) fn lock(&self) -> Guard<'_> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the application. The caller must hold a reference to the stream.
    pub(super) fn wake(&self) {
        wake(self.waker.take());
    }

    pub(super) fn id(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    /// Makes one call, or several of one kind. `body` receives the lock and must release it before
    /// each call.
    pub(super) fn out<T>(
        &self,
        mut inner: Guard<'_>,
        (weight, taken): (u64, *mut Taken),
        body: impl FnOnce(Guard<'_>) -> T,
    ) -> T {
        inner.calls = inner.calls.wrapping_add(weight);
        let (stream, outer) = (self.id(), ptr::null());
        let frame = Frame {
            stream,
            weight,
            taken,
            outer,
        };
        let result = calls::within(frame, || body(inner));
        if self.ended.fetch_add(weight, Ordering::AcqRel) & MARK != 0 {
            self.lock().calls -= weight;
            self.changed.notify_all();
        }
        result
    }

    /// Waits until the running calls weigh less than `limit`. `ended` must be marked.
    pub(super) fn wait_below<'a>(&'a self, inner: Guard<'a>, limit: u64) -> Guard<'a> {
        let waited = self.changed.wait_while(inner, |inner| inner.calls >= limit);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn request(&self, n: i64) -> Result<(), Error> {
        if n <= 0 {
            return Err(not_positive(n));
        }
        let mut inner = self.lock();
        match inner.state {
            State::Created => inner.demand = inner.demand.saturating_add(n),
            _ => self.send_request(inner, n),
        }
        Ok(())
    }

    /// Sends the request while streaming, otherwise does nothing.
    fn send_request(&self, mut inner: Guard<'_>, n: i64) {
        if n > 0 && inner.state == State::Streaming {
            inner.demand = inner.demand.saturating_add(n);
            self.call_request(inner, n);
        }
    }

    pub(super) fn call_request(&self, inner: Guard<'_>, n: i64) {
        self.call_producer(inner, |producer| {
            // SAFETY: the producer exists while streaming, and release waits for this call.
            unsafe { ArrowAsyncProducer::call_request(producer, n) }
        });
    }

    pub(super) fn call_cancel(&self, inner: Guard<'_>) {
        // SAFETY: as in call_request.
        self.call_producer(inner, |producer| unsafe {
            ArrowAsyncProducer::call_cancel(producer)
        });
    }

    fn call_producer(
        &self,
        inner: Guard<'_>,
        call: impl FnOnce(*mut ArrowAsyncProducer) -> Option<()>,
    ) {
        self.out(inner, (PRODUCER, ptr::null_mut()), |inner| {
            drop(inner);
            self.info.get().and_then(|info| call(info.producer));
        });
    }

    pub(super) fn poll_batch(&self, cx: &mut Context<'_>) -> Poll<Option<Extracted>> {
        self.poll(cx, |inner| {
            let mut inner = match self.take(inner, true) {
                Err(inner) if inner.kept.is_some() => inner,
                taken => return taken.map(Some),
            };
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

    pub(super) fn poll<'a, T>(
        &'a self,
        cx: &mut Context<'_>,
        ready: impl Fn(Guard<'a>) -> Result<T, Guard<'a>>,
    ) -> Poll<T> {
        if let Ok(value) = ready(self.lock()) {
            return Poll::Ready(value);
        }
        self.waker.register(cx.waker());
        ready(self.lock()).map_or(Poll::Pending, Poll::Ready)
    }

    /// Takes the oldest batch. If `wanted` is false, drops its data.
    fn take<'a>(&'a self, mut inner: Guard<'a>, wanted: bool) -> Result<Extracted, Guard<'a>> {
        let front = inner.kept.as_ref().and_then(VecDeque::front);
        if !wanted && front.is_some_and(Result::is_err) {
            return Err(inner);
        }
        if let Some(batch) = inner.kept.as_mut().and_then(VecDeque::pop_front) {
            return Ok(batch);
        }
        let queued = match inner.closed {
            true => None,
            false => inner.queue.pop_front(),
        };
        let Some(queued) = queued else {
            return Err(inner);
        };
        // More batches are requested before the extraction, because libarrow's producer is
        // destroyed with its last task. They are requested half a window at a time, because a
        // request costs as much as a batch.
        inner.owed += u32::from(self.window != 0);
        let more = match inner.owed > 0 && inner.owed >= self.window.div_ceil(2) {
            true => std::mem::take(&mut inner.owed),
            false => 0,
        };
        let mut queued = Some(queued);
        let dropped = queued.take_if(|_| !wanted);
        let mut taken = Taken {
            queued,
            result: None,
        };
        let taken = &raw mut taken;
        Ok(self.out(inner, (TASK, taken), |inner| {
            self.send_request(inner, more.into());
            if let Some(dropped) = dropped {
                dropped.drop_data();
                return Ok(Default::default());
            }
            // SAFETY: only this thread has the pointer, and a task is only queued after
            // `on_schema`.
            let (result, producer_knows) = unsafe {
                Taken::extract_once(taken, &self.info.get().unwrap_unchecked().promise);
                (*taken).result.take().unwrap_unchecked()
            };
            if result.is_err() {
                self.lose(producer_knows);
            }
            result
        }))
    }

    /// Drops the oldest batch. Returns false if none is queued.
    pub(super) fn skip(&self) -> bool {
        self.take(self.lock(), false).is_ok()
    }

    pub(super) fn cancel(&self) {
        let mut inner = self.lock();
        let before = inner.state;
        match before {
            State::Created => inner.state = State::CancelledEarly,
            State::Streaming => inner.state = State::Cancelled,
            _ => {}
        }
        let kept = inner.kept.as_mut().map(std::mem::take);
        self.close(inner, before == State::Streaming);
        discard((kept, self.waker.take()));
    }

    /// Ends the stream for the application after a failed extraction. A producer that does not know
    /// about the error would wait for the next request.
    fn lose(&self, producer_knows: bool) {
        let mut inner = self.lock();
        if inner.state == State::Streaming {
            inner.state = State::Broken;
            self.close(inner, !producer_knows);
        }
    }

    /// Closes the queue: cancels the stream if `cancel`, and drops the queued tasks.
    pub(super) fn close(&self, mut inner: Guard<'_>, cancel: bool) {
        if std::mem::replace(&mut inner.closed, true) {
            return;
        }
        self.out(inner, (TASK, ptr::null_mut()), |inner| {
            match cancel {
                true => self.call_cancel(inner),
                false => drop(inner),
            }
            self.each_queued(|queued, _| queued.drop_data());
        });
    }

    /// Removes the tasks from the queue one by one, and passes each to `visit`.
    pub(super) fn each_queued(&self, mut visit: impl FnMut(Queued, &Promise)) {
        let Some(info) = self.info.get() else { return };
        self.out(self.lock(), (TASK, ptr::null_mut()), |inner| {
            drop(inner);
            loop {
                let next = self.lock().queue.pop_front();
                let Some(queued) = next else { return };
                visit(queued, &info.promise);
            }
        });
    }
}

// SPDX-License-Identifier: Apache-2.0

//! The callbacks of a consumer's handler: the cells of the table in docs/reference/async.md.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::errno::EIO;
use fletching_abi::{ArrowAsyncDeviceStreamHandler, ArrowAsyncTask, ArrowSchema};

use super::calls::{each_here, MARK, PRODUCER, TASK};
use super::consumer_core::{Core, Info, State};
use super::options::AsyncOffer;
use super::queued::{Queued, Taken};
use super::Promise;
use crate::error::{discard, guarded, Error};
use crate::metadata::Metadata;
use crate::owner::Schema;

/// Makes the handler of a stream. The handler holds a reference to the stream until its release.
pub(super) fn new(core: *const Core) -> ArrowAsyncDeviceStreamHandler {
    ArrowAsyncDeviceStreamHandler {
        on_schema: Some(on_schema),
        on_next_task: Some(on_next_task),
        on_error: Some(on_error),
        release: Some(release),
        private_data: core.cast_mut().cast(),
        ..ArrowAsyncDeviceStreamHandler::zeroed()
    }
}

const IDLE: u8 = 0;
const CALLING: u8 = 1;
/// Release was called during another handler call, which drops the handler's reference.
const RELEASED: u8 = 2;

fn change(core: &Core, from: u8, to: u8) -> bool {
    core.calling
        .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
        .is_ok()
}

/// Runs one handler call. `body` is told whether it is the only running one.
unsafe fn call<T>(
    this: *mut ArrowAsyncDeviceStreamHandler,
    body: impl FnOnce(&Core, bool) -> T,
) -> T {
    // SAFETY: the handler belongs to this crate, and holds a reference to the stream until its
    // release.
    unsafe {
        let core: *const Core = (*this).private_data.cast();
        let alone = change(&*core, IDLE, CALLING);
        let result = body(&*core, alone);
        if alone && (*core).calling.swap(IDLE, Ordering::AcqRel) == RELEASED {
            discard(Arc::from_raw(core));
        }
        result
    }
}

/// Runs a handler call that may reject its arguments.
unsafe fn receive(
    this: *mut ArrowAsyncDeviceStreamHandler,
    body: impl FnOnce(&Core) -> Result<(), Error>,
) -> c_int {
    let overlap = "handler call: overlaps another one: expected one call at a time";
    let checked = |core: &Core, alone| {
        let received = match alone {
            true => guarded(|| body(core)),
            false => Err(Error::invalid(overlap)),
        };
        let Err(error) = received else { return 0 };
        let code = error.code();
        core.end(State::Refused, error);
        code
    };
    // SAFETY: the caller guarantees that `this` is a handler of this crate.
    unsafe { call(this, checked) }
}

unsafe extern "C" fn on_schema(
    this: *mut ArrowAsyncDeviceStreamHandler,
    schema: *mut ArrowSchema,
) -> c_int {
    // SAFETY: the producer passes the handler and its schema.
    unsafe { receive(this, |core| core.receive_schema(schema)) }
}

unsafe extern "C" fn on_next_task(
    this: *mut ArrowAsyncDeviceStreamHandler,
    task: *mut ArrowAsyncTask,
    metadata: *const c_char,
) -> c_int {
    // SAFETY: the producer passes the handler, and a task with its metadata or NULL.
    unsafe {
        receive(this, |core| match task.as_ref() {
            Some(task) => core.receive_task(task, Metadata::read(metadata)?),
            None => core.receive_end(),
        })
    }
}

unsafe extern "C" fn on_error(
    this: *mut ArrowAsyncDeviceStreamHandler,
    code: c_int,
    message: *const c_char,
    _metadata: *const c_char,
) {
    // SAFETY: the producer passes the handler, and a string or NULL.
    unsafe {
        call(this, |core, _| {
            core.end(State::Failed, Error::foreign(code, message))
        })
    }
}

unsafe extern "C" fn release(this: *mut ArrowAsyncDeviceStreamHandler) {
    // SAFETY: the handler holds a reference to the stream until its release.
    unsafe {
        let core: *const Core = (*this).private_data.cast();
        if (*core).receive_release() && !change(&*core, CALLING, RELEASED) {
            discard(Arc::from_raw(core));
        }
    }
}

impl Core {
    fn receive_schema(&self, raw: *mut ArrowSchema) -> Result<(), Error> {
        let state = self.lock().state;
        if !matches!(state, State::Created | State::CancelledEarly) {
            return Err(Error::invalid("on_schema: called twice: expected one call"));
        }
        // SAFETY: the producer has set its object before this call, and passes its schema. An owner
        // has the layout of its struct.
        let (pointer, schema) = unsafe {
            let schema = raw.cast::<Schema>().as_ref();
            (
                (*self.handler.get()).producer,
                schema.filter(|schema| !schema.is_released()),
            )
        };
        let schema = schema.ok_or_else(|| {
            Error::invalid("on_schema: schema is NULL or released: expected a schema")
        })?;
        // SAFETY: as above.
        let producer = unsafe { pointer.as_ref() };
        let producer = producer.filter(|raw| raw.request.is_some() && raw.cancel.is_some());
        let producer = producer.ok_or_else(|| {
            Error::invalid("handler.producer: NULL, or request or cancel NULL: expected callbacks")
        })?;
        // SAFETY: the metadata belongs to the producer and conforms to the specification.
        let metadata = unsafe { Metadata::read(producer.additional_metadata) }?;
        if state == State::Created {
            self.ask(AsyncOffer::Schema(schema))?;
        }
        let mut info = Info {
            promise: Promise::of(schema, producer.device_type)?,
            metadata: metadata.block().to_vec(),
            // SAFETY: the producer transfers the schema.
            schema: unsafe { Schema::move_from(raw) },
            producer: pointer,
        };
        let mut inner = self.lock();
        let cancelled = inner.state == State::CancelledEarly;
        let dropped = cancelled.then(|| std::mem::take(&mut info.schema));
        let _ = self.info.set(info);
        if cancelled {
            (inner.state, inner.demand) = (State::Cancelled, 0);
            self.call_cancel(inner);
            drop(dropped);
            return Ok(());
        }
        inner.state = State::Streaming;
        match inner.demand {
            0 => drop(inner),
            n => self.call_request(inner, n),
        }
        self.wake();
        Ok(())
    }

    fn ask(&self, offer: AsyncOffer<'_>) -> Result<(), Error> {
        self.accept.as_ref().map_or(Ok(()), |accept| {
            (accept.lock().unwrap_or_else(PoisonError::into_inner))(offer)
        })
    }

    fn receive_task(&self, task: &ArrowAsyncTask, metadata: Metadata<'_>) -> Result<(), Error> {
        if task.extract_data.is_none() {
            return Err(Error::invalid(
                "task.extract_data: NULL: expected a callback",
            ));
        }
        if self.accept.is_some() && self.lock().state == State::Streaming {
            self.ask(AsyncOffer::Batch(metadata))?;
        }
        let (task, metadata) = (ArrowAsyncTask { ..*task }, metadata.block().to_vec());
        let queued = Queued { task, metadata };
        let mut inner = self.lock();
        let error = match inner.state {
            State::Streaming | State::Cancelled | State::Broken if inner.demand > 0 => None,
            State::Streaming | State::Cancelled | State::Broken => {
                Some("too many tasks: expected at most the sum of the requests")
            }
            _ => Some("out of order: expected a call after on_schema and before the end"),
        };
        if let Some(error) = error {
            return Err(Error::invalid(format!("on_next_task: {error}")));
        }
        inner.demand -= 1;
        if inner.state == State::Streaming {
            inner.queue.push_back(queued);
            drop(inner);
            self.wake();
        } else {
            self.out(inner, (TASK, ptr::null_mut()), |inner| {
                drop(inner);
                queued.drop_data();
            });
        }
        Ok(())
    }

    fn receive_end(&self) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.state = match inner.state {
            State::Streaming | State::Cancelled => State::Ended,
            State::Broken => State::Failed,
            _ => {
                let text = "on_next_task(NULL): out of order: expected one call after on_schema";
                return Err(Error::invalid(text));
            }
        };
        drop(inner);
        self.wake();
        Ok(())
    }

    /// Ends the stream with an error, unless the application already knows how it ended.
    fn end(&self, state: State, error: Error) {
        let mut inner = self.lock();
        let notify = inner.state.is_live();
        let silent = [State::CancelledEarly, State::Cancelled, State::Broken];
        if notify || silent.contains(&inner.state) {
            inner.state = state;
        }
        if notify {
            inner.failure = Some(error);
            self.close(inner, false);
            self.wake();
        } else {
            drop(inner);
            discard(error);
        }
    }

    /// Returns false if it is not the first call.
    fn receive_release(&self) -> bool {
        let mut inner = self.lock();
        let before = inner.state;
        if matches!(before, State::Releasing | State::Released) {
            return false;
        }
        let keep = !std::mem::replace(&mut inner.closed, true) && before == State::Ended;
        inner.kept = inner.kept.take().filter(|_| !keep);
        let here = each_here(self.id(), |_| ());
        let ended = self.ended.fetch_or(MARK, Ordering::AcqRel);
        inner.calls = inner.calls.wrapping_sub(ended);
        let wait = here == 0 && inner.calls != 0;
        inner.state = match wait {
            true => State::Releasing,
            false => State::Released,
        };
        if before.is_live() {
            let text = "release: called too early: expected on_next_task(NULL) or on_error before";
            inner.failure = Some(Error::new(EIO, text));
        }
        // A producer that is destroyed with its last task must outlive other threads' calls to it.
        inner = self.wait_below(inner, here + PRODUCER);
        drop(inner);
        // Extract the task that this thread is taking, if release was called from inside its
        // request.
        each_here(self.id(), |frame| {
            let info = self.info.get().filter(|_| !frame.taken.is_null());
            // SAFETY: the frame's call is suspended on this thread and has lent the pointer.
            let _ = info.map(|info| unsafe { Taken::extract_once(frame.taken, &info.promise) });
        });
        if keep {
            let mut kept = VecDeque::new();
            self.each_queued(|queued, promise| kept.push_back(queued.extract(promise).0));
            self.lock().kept = Some(kept);
        }
        if before.is_live() {
            self.each_queued(|queued, _| queued.drop_data());
        }
        if keep || before.is_live() {
            self.wake();
        }
        if wait {
            self.wait_below(self.lock(), 1).state = State::Released;
        }
        true
    }
}

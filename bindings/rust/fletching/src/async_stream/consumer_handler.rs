// SPDX-License-Identifier: Apache-2.0

//! The callbacks of a consumer's handler: what happens in the table's cells.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use fletching_abi::{ArrowAsyncDeviceStreamHandler, ArrowAsyncTask, ArrowSchema};
use libc::EIO;

use super::calls::{each_here, here, MARK, PRODUCER, TASK};
use super::consumer::AsyncOffer;
use super::consumer_core::{wake, Core, Info, Queued, State, Taken};
use super::Promise;
use crate::error::{guarded, Error};
use crate::metadata::Metadata;
use crate::owner::Schema;

pub(super) fn handler(private_data: *mut c_void) -> ArrowAsyncDeviceStreamHandler {
    ArrowAsyncDeviceStreamHandler {
        on_schema: Some(on_schema),
        on_next_task: Some(on_next_task),
        on_error: Some(on_error),
        release: Some(release),
        private_data,
        ..ArrowAsyncDeviceStreamHandler::zeroed()
    }
}

const IDLE: u8 = 0;
const CALLING: u8 = 1;
/// Release was called while another handler call was running, which returns the handler's share.
const RELEASED: u8 = 2;

/// One handler call. `body` gets whether it is the only one.
unsafe fn call<T>(
    this: *mut ArrowAsyncDeviceStreamHandler,
    body: impl FnOnce(&Core, bool) -> T,
) -> T {
    // SAFETY: the handler is ours, and has a share of the stream until its release.
    unsafe {
        let core: *const Core = (*this).private_data.cast();
        let state = &(*core).calling;
        let alone = state
            .compare_exchange(IDLE, CALLING, Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        let result = body(&*core, alone);
        if alone && (*core).calling.swap(IDLE, Ordering::AcqRel) == RELEASED {
            drop(Arc::from_raw(core));
        }
        result
    }
}

/// A handler call that may refuse what it gets.
unsafe fn receive(
    this: *mut ArrowAsyncDeviceStreamHandler,
    body: impl FnOnce(&Core) -> Result<(), Error>,
) -> c_int {
    let checked = |core: &Core, alone| {
        let received = match alone {
            true => guarded(|| body(core)),
            false => Err(Error::invalid(
                "handler call: overlaps another one: expected one call at a time",
            )),
        };
        received.map_or_else(|error| core.refuse(error), |()| 0)
    };
    // SAFETY: the caller vouches for the handler.
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
    // SAFETY: the producer passes the handler, a task and its metadata, or NULL.
    unsafe {
        receive(this, |core| match task.as_ref() {
            Some(task) => core.receive_task(task, metadata),
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
    // SAFETY: the producer passes the handler, and a text or NULL.
    unsafe {
        call(this, |core, _| {
            core.end(State::Failed, Error::foreign(code, message))
        })
    }
}

unsafe extern "C" fn release(this: *mut ArrowAsyncDeviceStreamHandler) {
    // SAFETY: the handler has a share of the stream until its release.
    unsafe {
        let core: *const Core = (*this).private_data.cast();
        if !(*core).receive_release() {
            return;
        }
        let calling = &(*core).calling;
        if calling
            .compare_exchange(CALLING, RELEASED, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            drop(Arc::from_raw(core));
        }
    }
}

fn out_of_order(call: &str, expected: &str) -> Error {
    Error::invalid(format!("{call}: out of order: expected {expected}"))
}

impl Core {
    /// The handler gets its schema.
    fn receive_schema(&self, schema: *mut ArrowSchema) -> Result<(), Error> {
        let state = self.lock().state;
        if state != State::Created && state != State::CancelledEarly {
            return Err(Error::invalid("on_schema: called twice: expected one call"));
        }
        // SAFETY: the producer has set its object before this call, and passes its schema. An owner
        // is laid out as its struct.
        let (producer, raw, offered) = unsafe {
            let producer = (*self.handler.get()).producer;
            (
                producer,
                producer.as_ref(),
                schema.cast::<Schema>().as_ref(),
            )
        };
        let offered = offered
            .filter(|schema| !schema.is_released())
            .ok_or_else(|| {
                Error::invalid("on_schema: schema is NULL or released: expected a schema")
            })?;
        let missing = match raw {
            None => Some("handler.producer: NULL: expected an ArrowAsyncProducer"),
            Some(raw) if raw.request.is_none() => {
                Some("producer.request: NULL: expected a callback")
            }
            Some(raw) if raw.cancel.is_none() => Some("producer.cancel: NULL: expected a callback"),
            Some(_) => None,
        };
        let Some(raw) = raw.filter(|_| missing.is_none()) else {
            return Err(Error::invalid(missing.unwrap_or_default()));
        };
        // SAFETY: the metadata is the producer's, as the text asks for it.
        let metadata = unsafe { Metadata::read(raw.additional_metadata) }?;
        if state == State::Created {
            self.ask(|| AsyncOffer::Schema(offered))?;
        }
        // SAFETY: the producer hands it over.
        let mut schema = unsafe { Schema::move_from(schema) };
        let promise = Promise::of(schema.as_raw(), raw.device_type);
        let metadata = metadata.block().to_vec();
        let mut inner = self.lock();
        let cancelled = inner.state == State::CancelledEarly;
        let dropped = cancelled.then(|| std::mem::take(&mut schema));
        let _ = self.info.set(Info {
            schema,
            metadata,
            promise,
            producer,
        });
        if cancelled {
            inner.state = State::Cancelled;
            self.out(inner, PRODUCER, ptr::null_mut(), |inner| {
                drop(inner);
                drop(dropped);
                self.call_cancel();
            });
            return Ok(());
        }
        inner.state = State::Streaming;
        self.send_unsent(inner);
        self.wake();
        Ok(())
    }

    fn ask<'a>(&self, offer: impl FnOnce() -> AsyncOffer<'a>) -> Result<(), Error> {
        self.accept.as_ref().map_or(Ok(()), |accept| {
            (accept.lock().unwrap_or_else(PoisonError::into_inner))(offer())
        })
    }

    fn receive_task(&self, task: &ArrowAsyncTask, metadata: *const c_char) -> Result<(), Error> {
        if task.extract_data.is_none() {
            return Err(Error::invalid(
                "task.extract_data: NULL: expected a callback",
            ));
        }
        // SAFETY: the metadata is the producer's, as the text asks for it.
        let metadata = unsafe { Metadata::read(metadata) }?;
        if self.accept.is_some() && self.lock().state == State::Streaming {
            self.ask(|| AsyncOffer::Batch(metadata))?;
        }
        let queued = Queued {
            task: ArrowAsyncTask { ..*task },
            metadata: metadata.block().to_vec(),
        };
        let mut inner = self.lock();
        let (streaming, over) = match inner.state {
            State::Streaming => (true, false),
            State::Cancelled | State::Broken => (false, false),
            _ => (false, true),
        };
        if over || inner.demand == 0 {
            drop(inner);
            return Err(match over {
                true => out_of_order("on_next_task", "a call after on_schema and before the end"),
                false => Error::invalid(
                    "on_next_task: too many tasks: expected at most the sum of the requests",
                ),
            });
        }
        inner.demand -= 1;
        if !streaming {
            self.out(inner, TASK, ptr::null_mut(), |inner| {
                drop(inner);
                queued.drop_data();
            });
            return Ok(());
        }
        inner.queue.push_back(queued);
        let waker = inner.waker.take();
        drop(inner);
        wake(waker);
        Ok(())
    }

    fn receive_end(&self) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.state = match inner.state {
            State::Streaming | State::Cancelled => State::Ended,
            State::Broken => State::Failed,
            _ => {
                drop(inner);
                return Err(out_of_order(
                    "on_next_task(NULL)",
                    "one call after on_schema",
                ));
            }
        };
        let waker = inner.waker.take();
        drop(inner);
        wake(waker);
        Ok(())
    }

    /// Ends the stream with an error. Returns its code, the result of the handler call.
    fn refuse(&self, error: Error) -> c_int {
        let code = error.code();
        self.end(State::Refused, error);
        code
    }

    fn end(&self, state: State, error: Error) {
        let mut inner = self.lock();
        let notify = inner.state.is_live();
        if notify || inner.state.is_silent() {
            inner.state = state;
        }
        if notify {
            inner.failure = Some(error);
            inner.close();
            self.drop_queued(inner);
            self.wake();
        }
    }

    /// False when it is not the first call.
    fn receive_release(&self) -> bool {
        let mut inner = self.lock();
        if matches!(inner.state, State::Releasing | State::Released) {
            return false;
        }
        let notify = inner.state.is_live();
        let keep = inner.close() && inner.state == State::Ended;
        let here = here(self.id());
        let wait = here == 0 && self.running(&inner) != 0;
        let ended = self.ended.fetch_or(MARK, Ordering::AcqRel);
        inner.counts.mark(ended);
        inner.state = match wait {
            true => State::Releasing,
            false => State::Released,
        };
        inner.extracting = keep;
        if notify {
            inner.failure = Some(Error::new(
                EIO,
                "release: called too early: expected on_next_task(NULL) or on_error before",
            ));
        }
        // A producer that is destroyed with its last task outlives another thread's call to it.
        while self.running(&inner).wrapping_sub(here) >= PRODUCER {
            inner = self.wait(inner);
        }
        drop(inner);
        // What this thread has taken already: it is inside the request for more.
        each_here(self.id(), |frame| {
            let info = self.info.get().filter(|_| !frame.taken.is_null());
            // SAFETY: the frame's call is suspended on this thread and has lent the pointer.
            let _ = info.map(|info| unsafe { Taken::extract_once(frame.taken, &info.promise) });
        });
        if keep {
            self.keep_queued();
        }
        if notify {
            self.drop_queued(self.lock());
        }
        if notify || keep {
            self.wake();
        }
        if wait {
            let mut inner = self.lock();
            while self.running(&inner) != 0 {
                inner = self.wait(inner);
            }
            inner.state = State::Released;
        }
        true
    }
}

// SPDX-License-Identifier: Apache-2.0

//! OpenCL. A wait is enqueued on a queue of the event's own cl_context. OpenCL captures nothing.

use std::ffi::c_void;
use std::ptr;

use super::event::{Events, Handle, Origin, Recorded, SyncEvent};
use super::tables::opencl::{self as cl, cl_command_queue, cl_event, cl_int, Functions, TITLE};
use super::vendor::{call, Answer, EventState, Symbol};
use super::{OnCapture, Stream};
use crate::Error;

pub(super) struct OpenclEvents;

fn check(answer: Answer) -> Result<(), Error> {
    if answer.code == cl::CL_SUCCESS {
        return Ok(());
    }
    let name = cl::status_name(answer.code).unwrap_or_default();
    Err(answer.error(TITLE, name, "", answer.code == cl::CL_INVALID_EVENT))
}

fn queue_of(stream: &Stream) -> Result<cl_command_queue, Error> {
    match stream.as_ptr() {
        queue if !queue.is_null() => Ok(queue),
        _ => Err(Error::invalid(
            "stream is NULL: expected a cl_command_queue, because OpenCL has no default queue",
        )),
    }
}

/// A function that answers what is asked of an event or a queue.
type Get = Symbol<unsafe extern "system" fn(Handle, u32, usize, *mut c_void, *mut usize) -> cl_int>;

/// `found` is what it is as long as there is no answer.
fn ask<T: Copy>(get: Get, of: Handle, what: u32, mut found: T) -> Result<T, Error> {
    let (size, value) = (size_of::<T>(), (&raw mut found).cast());
    check(call!(get, of, what, size, value, ptr::null_mut())).map(|()| found)
}

fn state_of(cl: &Functions, event: cl_event) -> Result<cl_int, Error> {
    let what = cl::CL_EVENT_COMMAND_EXECUTION_STATUS;
    ask(cl.cl_get_event_info, event, what, cl::CL_QUEUED)
}

fn is_complete(cl: &Functions, event: cl_event) -> Result<bool, Error> {
    let code = state_of(cl, event)?;
    let function = "the command of the event";
    match cl::event_state(code) {
        EventState::Failed => check(Answer { function, code }).map(|()| false),
        state => Ok(state == EventState::Done),
    }
}

fn check_context(cl: &Functions, event: cl_event, queue: cl_command_queue) -> Result<(), Error> {
    let null: Handle = ptr::null_mut();
    let (of_queue, of_event) = (cl::CL_QUEUE_CONTEXT, cl::CL_EVENT_CONTEXT);
    let context = ask(cl.cl_get_command_queue_info, queue, of_queue, null)?;
    if ask(cl.cl_get_event_info, event, of_event, null)? == context {
        return Ok(());
    }
    Err(Error::invalid(
        "wait_on: cl_context of the queue differs from the event's; hint: pass a queue of the \
         event's context, or call synchronize",
    ))
}

impl Events for OpenclEvents {
    fn synchronize(&self, event: &SyncEvent) -> Result<(), Error> {
        let event = event.handle()?;
        let cl = cl::functions()?;
        let answer = call!(cl.cl_wait_for_events, 1, &event);
        if answer.code == cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST {
            is_complete(cl, event)?; // the command itself has failed, and its state says how
        }
        check(answer)
    }

    fn wait_on(&self, event: &SyncEvent, stream: &Stream, _: OnCapture) -> Result<(), Error> {
        let (event, queue) = (event.handle()?, queue_of(stream)?);
        let cl = cl::functions()?;
        check_context(cl, event, queue)?;
        // A queue need not begin with a command before it is flushed. A user event has no queue.
        let (what, null): (_, Handle) = (cl::CL_EVENT_COMMAND_QUEUE, ptr::null_mut());
        let producer = ask(cl.cl_get_event_info, event, what, null)?;
        if !producer.is_null() {
            check(call!(cl.cl_flush, producer))?;
        }
        let wait = cl.cl_enqueue_barrier_with_wait_list;
        check(call!(wait, queue, 1, &event, ptr::null_mut()))
    }

    fn is_ready(&self, event: &SyncEvent) -> Result<bool, Error> {
        let event = event.handle()?;
        is_complete(cl::functions()?, event)
    }

    fn record(&self, stream: &Stream, _: i64, _: OnCapture) -> Result<Recorded, Error> {
        let (queue, cl) = (queue_of(stream)?, cl::functions()?);
        let mark = cl.cl_enqueue_marker_with_wait_list;
        let mark = mark.in_library(TITLE, cl.library)?;
        let mut event = ptr::null_mut();
        check(call!(mark, queue, 0, ptr::null(), &raw mut event))?;
        let recorded = Recorded::new(&OpenclEvents, event, Origin::default());
        // An event that no queue has submitted never happens.
        check(call!(cl.cl_flush, queue)).map(|()| recorded)
    }

    fn has_passed(&self, recorded: &Recorded) -> Result<bool, Error> {
        let state = state_of(cl::functions()?, recorded.event)?;
        Ok(cl::event_state(state) == EventState::Done || cl::is_lost(state))
    }

    fn destroy(&self, recorded: &Recorded) -> Result<(), Error> {
        check(call!(cl::functions()?.cl_release_event, recorded.event))
    }

    fn run_relaxed(&self, body: &mut dyn FnMut()) {
        body();
    }
}

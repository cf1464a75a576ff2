// SPDX-License-Identifier: Apache-2.0

//! OpenCL. A wait is enqueued on a queue of the event's own cl_context. OpenCL captures nothing.

use std::ffi::c_void;

use super::event::{Events, Handle, Origin, Recorded, SyncEvent};
use super::tables::opencl::{self as cl, cl_command_queue, cl_event, cl_int, Functions, TITLE};
use super::vendor::{no_function, EventState, Failure};
use super::{OnCapture, Stream};
use crate::Error;

pub(super) struct OpenclEvents;

fn check(function: &'static str, result: cl_int) -> Result<(), Error> {
    if result == cl::CL_SUCCESS {
        return Ok(());
    }
    Err(Error::from(Failure {
        title: TITLE,
        function,
        status: result,
        name: cl::status_name(result).map(String::from),
        text: None,
        is_invalid_handle: result == cl::CL_INVALID_EVENT,
    }))
}

fn queue_of(operation: &str, stream: &Stream) -> Result<cl_command_queue, Error> {
    if !stream.as_ptr().is_null() {
        return Ok(stream.as_ptr().cast());
    }
    Err(Error::invalid(format!(
        "{operation}stream is NULL: expected a cl_command_queue, because OpenCL has no default \
         queue"
    )))
}

type Info = unsafe extern "system" fn(cl_event, u32, usize, *mut c_void, *mut usize) -> cl_int;

/// One property of an event. `T` is the type of it.
fn event_info<T>(cl: &Functions, event: cl_event, what: u32, mut value: T) -> Result<T, Error> {
    let (get, size): (Info, _) = (cl.cl_get_event_info, size_of::<T>());
    let null = std::ptr::null_mut();
    // SAFETY: the event is alive (Owner::from_raw), or recorded by us; the value has the size.
    let result = unsafe { get(event, what, size, (&raw mut value).cast(), null) };
    check("clGetEventInfo", result).map(|()| value)
}

fn state_of(cl: &Functions, event: cl_event) -> Result<cl_int, Error> {
    event_info(cl, event, cl::CL_EVENT_COMMAND_EXECUTION_STATUS, cl::CL_QUEUED)
}

fn is_complete(cl: &Functions, event: cl_event) -> Result<bool, Error> {
    let state = state_of(cl, event)?;
    match cl::event_state(state) {
        EventState::Failed => check("the command of the event", state).map(|()| false),
        state => Ok(state == EventState::Done),
    }
}

fn check_context(cl: &Functions, event: cl_event, queue: cl_command_queue) -> Result<(), Error> {
    let null = std::ptr::null_mut;
    let of_event: cl::cl_context = event_info(cl, event, cl::CL_EVENT_CONTEXT, null())?;
    let mut of_queue: cl::cl_context = null();
    // SAFETY: the queue is alive (Stream::from_raw), and the value has the size.
    let result = unsafe {
        (cl.cl_get_command_queue_info)(
            queue,
            cl::CL_QUEUE_CONTEXT,
            size_of::<cl::cl_context>(),
            (&raw mut of_queue).cast(),
            std::ptr::null_mut(),
        )
    };
    check("clGetCommandQueueInfo", result)?;
    if of_event == of_queue {
        return Ok(());
    }
    Err(Error::invalid(
        "wait_on: cl_context of the queue differs from the event's; hint: pass a queue of the \
         event's context, or call synchronize",
    ))
}

/// A queue need not begin with a command before it is flushed. A user event has no queue.
fn flush_queue_of(cl: &Functions, event: cl_event) -> Result<(), Error> {
    let queue: cl_command_queue =
        event_info(cl, event, cl::CL_EVENT_COMMAND_QUEUE, std::ptr::null_mut())?;
    if queue.is_null() {
        return Ok(());
    }
    // SAFETY: the queue lives as long as the event.
    check("clFlush", unsafe { (cl.cl_flush)(queue) })
}

impl Events for OpenclEvents {
    fn synchronize(&self, event: &SyncEvent) -> Result<(), Error> {
        let event: cl_event = event.handle()?.cast();
        let cl = cl::functions()?;
        // SAFETY: the event is alive (Owner::from_raw).
        let result = unsafe { (cl.cl_wait_for_events)(1, &event) };
        if result == cl::CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST {
            // The command itself has failed, and its state says how.
            is_complete(cl, event)?;
        }
        check("clWaitForEvents", result)
    }

    fn wait_on(&self, event: &SyncEvent, stream: &Stream, _: OnCapture) -> Result<(), Error> {
        let queue = queue_of("wait_on: ", stream)?;
        let event: cl_event = event.handle()?.cast();
        let cl = cl::functions()?;
        check_context(cl, event, queue)?;
        flush_queue_of(cl, event)?;
        let wait = cl.cl_enqueue_barrier_with_wait_list;
        // SAFETY: the queue and the event are alive (Stream::from_raw, Owner::from_raw).
        let result = unsafe { wait(queue, 1, &event, std::ptr::null_mut()) };
        check("clEnqueueBarrierWithWaitList", result)
    }

    fn is_ready(&self, event: &SyncEvent) -> Result<bool, Error> {
        let event = event.handle()?.cast();
        is_complete(cl::functions()?, event)
    }

    fn record(&self, stream: &Stream, _: i64, _: OnCapture) -> Result<Recorded, Error> {
        let queue = queue_of("", stream)?;
        let cl = cl::functions()?;
        let name = "clEnqueueMarkerWithWaitList";
        let mark = cl.cl_enqueue_marker_with_wait_list;
        let mark = mark.ok_or_else(|| no_function(TITLE, cl.library, name))?;
        let mut event: cl_event = std::ptr::null_mut();
        // SAFETY: the queue is alive (Stream::from_raw).
        let result = unsafe { mark(queue, 0, std::ptr::null(), &mut event) };
        check(name, result)?;
        let recorded = Recorded::new(&OpenclEvents, event.cast(), Origin::NONE);
        // An event that no queue has submitted never happens.
        // SAFETY: as above.
        check("clFlush", unsafe { (cl.cl_flush)(queue) }).map(|()| recorded)
    }

    fn has_passed(&self, recorded: &Recorded) -> Result<bool, Error> {
        let state = state_of(cl::functions()?, recorded.event.cast())?;
        Ok(cl::event_state(state) == EventState::Done || cl::is_lost(state))
    }

    fn destroy(&self, recorded: &Recorded) -> Result<(), Error> {
        let event: Handle = recorded.event;
        let release = cl::functions()?.cl_release_event;
        // SAFETY: the event is ours, and released once.
        check("clReleaseEvent", unsafe { release(event.cast()) })
    }

    fn run_relaxed(&self, body: &mut dyn FnMut()) {
        body();
    }
}

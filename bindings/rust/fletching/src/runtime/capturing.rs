// SPDX-License-Identifier: Apache-2.0

//! The operations on events for runtimes whose streams can be captured into a graph: CUDA and HIP.

use std::marker::PhantomData;
use std::ptr;

use super::event::{Events, Handle, Origin, Recorded, SyncEvent};
use super::vendor::{call, Answer, EventState, Optional, Symbol};
use super::{with_capture_hint, OnCapture, Stream};
use crate::Error;

type OfEvent = unsafe extern "system" fn(Handle) -> i32;
type OfTwo = unsafe extern "system" fn(Handle, Handle) -> i32;
type OfTwoWithFlags = unsafe extern "system" fn(Handle, Handle, u32) -> i32;

/// The functions and numbers that both runtimes have, under names of their own. A call that does
/// not return 0 has failed.
pub(super) struct Driver {
    pub(super) title: &'static str,
    pub(super) library: &'static str,
    pub(super) init: Symbol<unsafe extern "system" fn(u32) -> i32>,
    pub(super) exchange_mode: Optional<unsafe extern "system" fn(*mut i32) -> i32>,
    pub(super) is_capturing: Optional<unsafe extern "system" fn(Handle, *mut i32) -> i32>,
    pub(super) stream_wait_event: Symbol<OfTwoWithFlags>,
    pub(super) event_synchronize: Symbol<OfEvent>,
    pub(super) event_query: Symbol<OfEvent>,
    pub(super) event_create: Optional<unsafe extern "system" fn(*mut Handle, u32) -> i32>,
    pub(super) event_record: Optional<OfTwo>,
    pub(super) event_record_with_flags: Optional<OfTwoWithFlags>,
    pub(super) event_destroy: Optional<OfEvent>,
    /// The default stream would depend on a captured one.
    pub(super) implicit_capture: i32,
    /// Of exchange_mode: the thread may make unsafe calls while streams are captured.
    pub(super) relaxed: i32,
    pub(super) disable_timing: u32,
    pub(super) wait_external: u32,
    pub(super) record_external: u32,
    pub(super) state: fn(i32) -> EventState,
    pub(super) is_lost: fn(i32) -> bool,
    /// The handle as the runtime calls the stream.
    pub(super) stream: fn(Handle) -> Handle,
}

/// What else differs.
pub(super) trait Api: Sized + Sync + 'static {
    fn functions() -> Result<&'static Self, Error>;
    fn driver(&self) -> Driver;
    /// The error, if the call has failed.
    fn check(&self, answer: Answer) -> Result<(), Error>;
    /// Errors: ENOTSUP where there are no events of each launch of a graph.
    fn has_external_events(&self) -> Result<(), Error>;
    /// Runs `body` where the stream belongs, with where an event is from that is recorded there.
    fn on_stream<T>(
        &'static self,
        stream: Handle,
        device: i64,
        body: impl FnOnce(&mut dyn FnMut() -> Result<Origin, Error>) -> Result<T, Error>,
    ) -> Result<T, Error>;

    // What is here is for a runtime that knows the place of an event.

    /// Runs `body` where an event can be waited on and asked.
    fn anywhere<T>(
        &'static self,
        _device: i64,
        body: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        body()
    }

    /// Runs `body` where the event is from; `None` when it was destroyed with its context. Sets
    /// `is_lost` when an error says that nothing there can still run.
    fn at_origin<T>(
        &'static self,
        _origin: &Origin,
        _is_lost: &mut bool,
        body: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        body().map(Some)
    }
}

/// Runs `body` while the thread may make calls that are unsafe while streams are captured: then
/// they fail neither themselves nor the capture. `body` gets the error when the mode cannot be set,
/// and whether that says that a context is lost, of whatever event.
fn relaxed<A: Api, T>(
    api: &A,
    body: impl FnOnce(Result<(), Error>, bool) -> Result<T, Error>,
) -> Result<T, Error> {
    let driver = api.driver();
    let Some(exchange) = driver.exchange_mode.found() else {
        return body(Ok(()), false); // a runtime without modes
    };
    let mut mode = driver.relaxed;
    let entered = call!(exchange, &raw mut mode);
    let result = body(api.check(entered), (driver.is_lost)(entered.code));
    if entered.code != 0 {
        return result;
    }
    let left = call!(exchange, &raw mut mode);
    if left.code != 0 {
        let _ = call!(exchange, &raw mut mode); // it may have reported an earlier error
    }
    let value = result?;
    api.check(left).map(|()| value)
}

/// The operations.
pub(super) struct Capturing<A>(PhantomData<fn() -> A>);

impl<A: Api> Capturing<A> {
    pub(super) const NEW: &'static Self = &Self(PhantomData);

    fn initialized() -> Result<(&'static A, Driver), Error> {
        let api = A::functions()?;
        let driver = api.driver();
        api.check(call!(driver.init, 0)).map(|()| (api, driver))
    }

    /// The answer of a function that asks or waits for the event.
    fn ask(
        event: &SyncEvent,
        function: impl FnOnce(&Driver) -> Symbol<OfEvent>,
    ) -> Result<(&'static A, Answer), Error> {
        let handle = event.handle()?;
        let (api, driver) = Self::initialized()?;
        relaxed(api, |entered, _| {
            entered?;
            api.anywhere(event.device_id, || {
                Ok((api, call!(function(&driver), handle)))
            })
        })
    }

    fn is_done(api: &A, answer: Answer) -> Result<bool, Error> {
        match (api.driver().state)(answer.code) {
            EventState::Done => Ok(true),
            EventState::Pending => Ok(false),
            EventState::Failed => api.check(answer).map(|()| false),
        }
    }

    /// Whether the stream is captured, and may be. Does not disturb the capture.
    fn is_captured(api: &A, stream: Handle, on_capture: OnCapture) -> Result<bool, Error> {
        let driver = api.driver();
        let Some(is_capturing) = driver.is_capturing.found() else {
            return Ok(false);
        };
        let mut status = 0;
        let answer = call!(is_capturing, (driver.stream)(stream), &raw mut status);
        let got = if answer.code == driver.implicit_capture {
            "the legacy default stream while a stream that is ordered with it is being captured \
             into a graph"
        } else {
            api.check(answer)?;
            match (status, on_capture) {
                (0, _) => return Ok(false),
                (1, OnCapture::External) => return api.has_external_events().map(|()| true),
                (1, OnCapture::Refuse) => "one that is being captured into a graph",
                _ => {
                    "one that is being captured into a graph, and whose capture is invalid and \
                     not ended"
                }
            }
        };
        let text = format!(
            "{}: expected a stream whose work runs, got {got}",
            driver.title
        );
        Err(Error::new(crate::errno::EBUSY, text))
    }

    fn make(
        api: &'static A,
        stream: Handle,
        is_captured: bool,
        origin: Origin,
    ) -> Result<Recorded, Error> {
        let driver = api.driver();
        let (title, library) = (driver.title, driver.library);
        let create = driver.event_create.in_library(title, library)?;
        let mut event = ptr::null_mut();
        api.check(call!(create, &raw mut event, driver.disable_timing))?;
        let recorded = Recorded::new(Self::NEW, event, origin);
        let stream = (driver.stream)(stream);
        let answer = if is_captured {
            let record = driver.event_record_with_flags.in_library(title, library)?;
            call!(record, event, stream, driver.record_external)
        } else {
            let record = driver.event_record.in_library(title, library)?;
            call!(record, event, stream)
        };
        api.check(answer).map(|()| recorded)
    }
}

impl<A: Api> Events for Capturing<A> {
    fn synchronize(&self, event: &SyncEvent) -> Result<(), Error> {
        let (api, answer) = Self::ask(event, |driver| driver.event_synchronize)?;
        api.check(answer)
    }

    fn wait_on(&self, event: &SyncEvent, stream: &Stream, on: OnCapture) -> Result<(), Error> {
        let handle = event.handle()?;
        let (api, driver) = Self::initialized()?;
        let stream = stream.as_ptr();
        api.on_stream(stream, event.device_id, |_| {
            let is_captured = Self::is_captured(api, stream, on).map_err(|error| {
                with_capture_hint(
                    "wait_on",
                    error,
                    "wait before the capture begins, or pass OnCapture::External for a wait at \
                     each launch of the graph",
                )
            })?;
            let flags = if is_captured { driver.wait_external } else { 0 };
            let wait = driver.stream_wait_event;
            api.check(call!(wait, (driver.stream)(stream), handle, flags))
        })
    }

    fn is_ready(&self, event: &SyncEvent) -> Result<bool, Error> {
        let (api, answer) = Self::ask(event, |driver| driver.event_query)?;
        Self::is_done(api, answer)
    }

    fn record(&self, stream: &Stream, device: i64, on: OnCapture) -> Result<Recorded, Error> {
        let (api, _) = Self::initialized()?;
        let stream = stream.as_ptr();
        relaxed(api, |entered, _| {
            entered?;
            api.on_stream(stream, device, |origin| {
                let is_captured = Self::is_captured(api, stream, on)?;
                Self::make(api, stream, is_captured, origin()?)
            })
        })
    }

    fn has_passed(&self, recorded: &Recorded) -> Result<bool, Error> {
        let api = A::functions()?;
        let mut has_passed = false;
        let asked = relaxed(api, |entered, reports_loss| {
            // Whether it is the event's context that is lost, the event is asked.
            if !reports_loss {
                entered?;
            }
            let asked = api.at_origin(&recorded.origin, &mut has_passed, || {
                let driver = api.driver();
                let answer = call!(driver.event_query, recorded.event);
                Ok((driver.is_lost)(answer.code) || Self::is_done(api, answer)?)
            });
            has_passed = has_passed || asked?.unwrap_or(true);
            Ok(false)
        });
        // Then it does not matter whether the mode is left as it should be.
        if has_passed {
            return Ok(true);
        }
        asked
    }

    fn destroy(&self, recorded: &Recorded) -> Result<(), Error> {
        let api = A::functions()?;
        let driver = api.driver();
        let destroy = driver
            .event_destroy
            .in_library(driver.title, driver.library)?;
        relaxed(api, |_, _| {
            // Nothing else destroys it, so it is tried without the mode too, and once more when it
            // did not come to that.
            let mut is_tried = false;
            for attempt in 0.. {
                let result = api.at_origin(&recorded.origin, &mut false, || {
                    is_tried = true;
                    api.check(call!(destroy, recorded.event))
                });
                if is_tried || attempt == 1 || result.is_ok() {
                    return result.map(drop);
                }
            }
            Ok(())
        })
    }

    fn run_relaxed(&self, body: &mut dyn FnMut()) {
        let Ok(api) = A::functions() else {
            return body();
        };
        let _ = relaxed(api, |_, _| {
            body();
            Ok(())
        });
    }
}

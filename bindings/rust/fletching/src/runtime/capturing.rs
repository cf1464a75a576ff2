// SPDX-License-Identifier: Apache-2.0

//! The operations on events for runtimes whose streams can be captured into a graph: CUDA and HIP.

use std::marker::PhantomData;
use std::ptr;

use super::event::{within, Events, Handle, Origin, Recorded, Scope, SyncEvent};
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
    type Scope: Scope;

    fn functions() -> Result<&'static Self, Error>;
    fn driver(&self) -> Driver;
    /// The error, if the call has failed.
    fn check(&self, answer: Answer) -> Result<(), Error>;
    /// Errors: ENOTSUP where there are no events of each launch of a graph.
    fn can_record_externally(&self) -> Result<(), Error>;
    fn can_wait_externally(&self) -> Result<(), Error>;
    fn scope(&'static self) -> Self::Scope;
    /// To where the stream belongs.
    fn enter_stream(scope: &mut Self::Scope, stream: Handle, device: i64) -> Result<(), Error>;
    /// To where an event can be waited on and asked.
    fn enter_any(scope: &mut Self::Scope, device: i64) -> Result<(), Error>;
    /// Of an event that is recorded in the scope.
    fn origin(scope: &mut Self::Scope) -> Result<Origin, Error>;
    /// Runs `body`; true instead when the event was destroyed with its context.
    fn unless_gone(
        &'static self,
        origin: &Origin,
        body: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<bool, Error>;
    /// Runs `destroy` where the event is from, unless it was destroyed with its context.
    fn destroy(
        &'static self,
        origin: &Origin,
        destroy: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error>;
}

/// Lets the calling thread make calls that are unsafe while streams are captured: then they fail
/// neither themselves nor the capture. Does nothing in a runtime without modes.
struct Relaxed<A: Api> {
    api: &'static A,
    mode: i32,
    is_entered: bool,
    /// Whether a context is lost, of whatever event: then each call of the thread may report it.
    reports_loss: bool,
}

impl<A: Api> Relaxed<A> {
    fn new(api: &'static A) -> Self {
        #[rustfmt::skip]
        return Self { api, mode: api.driver().relaxed, is_entered: false, reports_loss: false };
    }

    fn exchange(&mut self) -> Option<Answer> {
        let Symbol { name, function } = self.api.driver().exchange_mode;
        let function = function?;
        Some(call!(Symbol { name, function }, &raw mut self.mode))
    }

    fn enter(&mut self) -> Result<(), Error> {
        let Some(answer) = self.exchange() else {
            return Ok(());
        };
        self.is_entered = answer.code == 0;
        self.reports_loss = (self.api.driver().is_lost)(answer.code);
        self.api.check(answer)
    }
}

impl<A: Api> Scope for Relaxed<A> {
    fn leave(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_entered) {
            return Ok(());
        }
        let Some(answer) = self.exchange().filter(|answer| answer.code != 0) else {
            return Ok(());
        };
        let _ = self.exchange(); // it may have reported an earlier error
        self.api.check(answer)
    }
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

    /// The state of the event, asked or waited for from any place.
    fn anywhere(
        event: &SyncEvent,
        function: impl FnOnce(&Driver) -> Symbol<OfEvent>,
    ) -> Result<(&'static A, Answer), Error> {
        let handle = event.handle()?;
        let (api, driver) = Self::initialized()?;
        within(Relaxed::new(api), |relaxed| {
            relaxed.enter()?;
            within(api.scope(), |scope| {
                A::enter_any(scope, event.device_id)?;
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
        let Symbol { name, function } = driver.is_capturing;
        let Some(function) = function else {
            return Ok(false);
        };
        let mut status = 0;
        let answer = call!(
            Symbol { name, function },
            (driver.stream)(stream),
            &raw mut status
        );
        let got = if answer.code == driver.implicit_capture {
            "the legacy default stream while a stream that is ordered with it is being captured \
             into a graph"
        } else {
            api.check(answer)?;
            match (status, on_capture) {
                (0, _) => return Ok(false),
                (1, OnCapture::External) => return Ok(true),
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
        Err(Error::new(libc::EBUSY, text))
    }

    fn record_in(
        scope: &mut A::Scope,
        (api, driver): (&'static A, &Driver),
        stream: Handle,
        on_capture: OnCapture,
    ) -> Result<Recorded, Error> {
        let is_captured = Self::is_captured(api, stream, on_capture)?;
        if is_captured {
            api.can_record_externally()?;
        }
        let origin = A::origin(scope)?;
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
            call!(
                driver.event_record.in_library(title, library)?,
                event,
                stream
            )
        };
        api.check(answer).map(|()| recorded)
    }
}

impl<A: Api> Events for Capturing<A> {
    fn synchronize(&self, event: &SyncEvent) -> Result<(), Error> {
        let (api, answer) = Self::anywhere(event, |driver| driver.event_synchronize)?;
        api.check(answer)
    }

    fn wait_on(&self, event: &SyncEvent, stream: &Stream, on: OnCapture) -> Result<(), Error> {
        let handle = event.handle()?;
        let (api, driver) = Self::initialized()?;
        let stream = stream.as_ptr();
        within(api.scope(), |scope| {
            A::enter_stream(scope, stream, event.device_id)?;
            let is_captured = Self::is_captured(api, stream, on).map_err(|error| {
                with_capture_hint(
                    "wait_on",
                    error,
                    "wait before the capture begins, or pass OnCapture::External for a wait at \
                     each launch of the graph",
                )
            })?;
            if is_captured {
                api.can_wait_externally()?;
            }
            let flags = if is_captured { driver.wait_external } else { 0 };
            let wait = driver.stream_wait_event;
            api.check(call!(wait, (driver.stream)(stream), handle, flags))
        })
    }

    fn is_ready(&self, event: &SyncEvent) -> Result<bool, Error> {
        let (api, answer) = Self::anywhere(event, |driver| driver.event_query)?;
        Self::is_done(api, answer)
    }

    fn record(&self, stream: &Stream, device: i64, on: OnCapture) -> Result<Recorded, Error> {
        let (api, driver) = Self::initialized()?;
        let stream = stream.as_ptr();
        within(Relaxed::new(api), |relaxed| {
            relaxed.enter()?;
            within(api.scope(), |scope| {
                A::enter_stream(scope, stream, device)?;
                Self::record_in(scope, (api, &driver), stream, on)
            })
        })
    }

    fn has_passed(&self, recorded: &Recorded) -> Result<bool, Error> {
        let api = A::functions()?;
        let mut has_passed = false;
        let asked = within(Relaxed::new(api), |relaxed| {
            let entered = relaxed.enter();
            // Whether it is the event's context that is lost, the event is asked.
            if !relaxed.reports_loss {
                entered?;
            }
            has_passed = api.unless_gone(&recorded.origin, || {
                let driver = api.driver();
                let answer = call!(driver.event_query, recorded.event);
                Ok((driver.is_lost)(answer.code) || Self::is_done(api, answer)?)
            })?;
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
        within(Relaxed::new(api), |relaxed| {
            // Nothing else destroys it, so it is tried without the mode too.
            let _ = relaxed.enter();
            api.destroy(&recorded.origin, || {
                let driver = api.driver();
                let destroy = driver
                    .event_destroy
                    .in_library(driver.title, driver.library)?;
                api.check(call!(destroy, recorded.event))
            })
        })
    }

    fn run_relaxed(&self, body: &mut dyn FnMut()) {
        let Ok(api) = A::functions() else {
            return body();
        };
        let _ = within(Relaxed::new(api), |relaxed| {
            let _ = relaxed.enter();
            body();
            Ok(())
        });
    }
}

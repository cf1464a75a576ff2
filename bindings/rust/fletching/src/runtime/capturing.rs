// SPDX-License-Identifier: Apache-2.0

//! The operations on events for runtimes whose streams can be captured into a graph: CUDA and HIP.

use std::marker::PhantomData;

use super::event::{
    captured, with_capture_hint, within, Events, Handle, Origin, Recorded, Scope, SyncEvent,
};
use super::vendor::EventState;
use super::{OnCapture, Stream};
use crate::Error;

/// What a call has returned, and what the vendor calls the function.
#[derive(Clone, Copy)]
pub(super) struct Answer {
    pub(super) function: &'static str,
    pub(super) code: i32,
}

/// Calls a function of a vendor's.
macro_rules! call {
    ($name:literal, $function:expr $(, $argument:expr)*) => {
        Answer {
            function: $name,
            // SAFETY: the types are the vendor's. A stream and an event are alive, see
            // Stream::from_raw and Owner::from_raw; the other pointers are to variables.
            code: unsafe { ($function)($($argument),*) },
        }
    };
}
pub(super) use call;

/// The same for a function that a library may lack.
macro_rules! call_optional {
    ($table:expr, $name:literal, $function:expr $(, $argument:expr)*) => {
        match $function {
            Some(function) => Ok(call!($name, function $(, $argument)*)),
            None => Err(no_function(TITLE, $table.library, $name)),
        }
    };
}
pub(super) use call_optional;

/// What a stream is to a capture, numbered alike by both vendors.
const RUNS: i32 = 0;
const IS_CAPTURED: i32 = 1;

/// What CUDA and HIP spell in ways of their own. Any code but 0 is an error.
pub(super) trait Api: Sized + Sync + 'static {
    const TITLE: &'static str;
    /// The default stream would depend on a captured one.
    const IMPLICIT_CAPTURE: i32;
    /// The mode of a thread that may make unsafe calls while streams are captured.
    const RELAXED: i32;
    const WAIT_EXTERNAL: u32;
    type Scope: Scope;

    fn functions() -> Result<&'static Self, Error>;
    fn error(&self, answer: Answer) -> Error;
    fn state(code: i32) -> EventState;
    fn is_lost(code: i32) -> bool;

    fn init(&self) -> Answer;
    /// `None` in a runtime without modes.
    fn exchange_mode(&self, mode: &mut i32) -> Option<Answer>;
    /// `None` in a runtime without captures.
    fn is_capturing(&self, stream: Handle, status: &mut i32) -> Option<Answer>;
    fn stream_wait_event(&self, stream: Handle, event: Handle, flags: u32) -> Answer;
    fn event_synchronize(&self, event: Handle) -> Answer;
    fn event_query(&self, event: Handle) -> Answer;
    fn event_create(&self, event: &mut Handle) -> Result<Answer, Error>;
    fn event_record(&self, event: Handle, stream: Handle) -> Result<Answer, Error>;
    fn event_record_external(&self, event: Handle, stream: Handle) -> Result<Answer, Error>;
    fn event_destroy(&self, event: Handle) -> Result<Answer, Error>;

    /// ENOTSUP where the driver has no events of each launch of a graph. One that does not know the
    /// flag of a wait refuses it.
    fn can_wait_externally(&self) -> Result<(), Error>;
    fn can_record_externally(&self) -> Result<(), Error>;

    fn scope(&'static self) -> Self::Scope;
    /// To where the stream belongs.
    fn enter_stream(scope: &mut Self::Scope, stream: Handle, device: i64) -> Result<(), Error>;
    /// To where an event can be waited on and asked.
    fn enter_any(scope: &mut Self::Scope, device: i64) -> Result<(), Error>;
    /// What has to be known of where the scope is, for an event that is recorded there.
    fn origin(scope: &mut Self::Scope) -> Result<Origin, Error>;
    /// Runs `body`; true instead when the event was destroyed with its context.
    fn unless_gone(
        &'static self,
        origin: &Origin,
        body: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<bool, Error>;
    fn destroy(&'static self, event: Handle, origin: &Origin) -> Result<(), Error>;

    fn check(&self, answer: Answer) -> Result<(), Error> {
        match answer.code {
            0 => Ok(()),
            _ => Err(self.error(answer)),
        }
    }
}

/// Lets the calling thread make calls that are unsafe while streams are captured: then they fail
/// neither themselves nor the capture.
struct Relaxed<A: Api> {
    api: &'static A,
    mode: i32,
    is_entered: bool,
    /// Whether a context is lost, of whatever event: then each call of the thread may report it.
    reports_loss: bool,
}

impl<A: Api> Relaxed<A> {
    fn new(api: &'static A) -> Self {
        Self {
            api,
            mode: A::RELAXED,
            is_entered: false,
            reports_loss: false,
        }
    }

    fn enter(&mut self) -> Result<(), Error> {
        let Some(answer) = self.api.exchange_mode(&mut self.mode) else {
            return Ok(());
        };
        self.is_entered = answer.code == 0;
        self.reports_loss = A::is_lost(answer.code);
        self.api.check(answer)
    }
}

impl<A: Api> Scope for Relaxed<A> {
    fn leave(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_entered) {
            return Ok(());
        }
        match self.api.exchange_mode(&mut self.mode) {
            Some(answer) if answer.code != 0 => {
                // It may have reported an earlier error.
                let _ = self.api.exchange_mode(&mut self.mode);
                self.api.check(answer)
            }
            _ => Ok(()),
        }
    }
}

/// The operations.
pub(super) struct Capturing<A>(PhantomData<fn() -> A>);

impl<A: Api> Capturing<A> {
    pub(super) const NEW: &'static Self = &Self(PhantomData);

    fn initialized() -> Result<&'static A, Error> {
        let api = A::functions()?;
        api.check(api.init()).map(|()| api)
    }

    fn relaxed<T>(api: &'static A, body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        within(Relaxed::new(api), |scope| {
            scope.enter()?;
            body()
        })
    }

    fn anywhere<T>(
        event: &SyncEvent,
        body: impl FnOnce(&'static A, Handle) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let handle = event.handle()?;
        let api = Self::initialized()?;
        Self::relaxed(api, || {
            within(api.scope(), |scope| {
                A::enter_any(scope, event.device_id)?;
                body(api, handle)
            })
        })
    }

    /// Whether the stream is captured, and may be. Does not disturb the capture.
    fn is_captured(api: &A, stream: Handle, on_capture: OnCapture) -> Result<bool, Error> {
        let mut status = RUNS;
        let answer = match api.is_capturing(stream, &mut status) {
            None => return Ok(false),
            Some(answer) => answer,
        };
        let got = if answer.code == A::IMPLICIT_CAPTURE {
            "the legacy default stream while a stream that is ordered with it is being captured \
             into a graph"
        } else {
            api.check(answer)?;
            match (status, on_capture) {
                (RUNS, _) => return Ok(false),
                (IS_CAPTURED, OnCapture::External) => return Ok(true),
                (IS_CAPTURED, OnCapture::Refuse) => "one that is being captured into a graph",
                _ => {
                    "one that is being captured into a graph, and whose capture is invalid and \
                     not ended"
                }
            }
        };
        Err(captured(A::TITLE, got))
    }

    fn record_on(
        api: &'static A,
        scope: &mut A::Scope,
        stream: Handle,
        on_capture: OnCapture,
    ) -> Result<Recorded, Error> {
        let is_captured = Self::is_captured(api, stream, on_capture)?;
        let origin = A::origin(scope)?;
        if is_captured {
            api.can_record_externally()?;
        }
        let mut event = std::ptr::null_mut();
        api.check(api.event_create(&mut event)?)?;
        let recorded = Recorded::new(Self::NEW, event, origin);
        let answer = match is_captured {
            true => api.event_record_external(event, stream),
            false => api.event_record(event, stream),
        };
        api.check(answer?).map(|()| recorded)
    }
}

impl<A: Api> Events for Capturing<A> {
    fn synchronize(&self, event: &SyncEvent) -> Result<(), Error> {
        Self::anywhere(event, |api, handle| api.check(api.event_synchronize(handle)))
    }

    fn wait_on(&self, event: &SyncEvent, stream: &Stream, on: OnCapture) -> Result<(), Error> {
        let handle = event.handle()?;
        let api = Self::initialized()?;
        within(api.scope(), |scope| {
            A::enter_stream(scope, stream.as_ptr(), event.device_id)?;
            let is_captured = Self::is_captured(api, stream.as_ptr(), on).map_err(|error| {
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
            let flags = if is_captured { A::WAIT_EXTERNAL } else { 0 };
            api.check(api.stream_wait_event(stream.as_ptr(), handle, flags))
        })
    }

    fn is_ready(&self, event: &SyncEvent) -> Result<bool, Error> {
        Self::anywhere(event, |api, handle| {
            let answer = api.event_query(handle);
            match A::state(answer.code) {
                EventState::Done => Ok(true),
                EventState::Pending => Ok(false),
                EventState::Failed => Err(api.error(answer)),
            }
        })
    }

    fn record(&self, stream: &Stream, device: i64, on: OnCapture) -> Result<Recorded, Error> {
        let api = Self::initialized()?;
        Self::relaxed(api, || {
            within(api.scope(), |scope| {
                A::enter_stream(scope, stream.as_ptr(), device)?;
                Self::record_on(api, scope, stream.as_ptr(), on)
            })
        })
    }

    fn has_passed(&self, recorded: &Recorded) -> Result<bool, Error> {
        let api = A::functions()?;
        let mut has_passed = false;
        let asked = within(Relaxed::new(api), |relaxed| {
            // Whether it is the event's context that is lost, the event is asked.
            relaxed.enter().or_else(|error| match relaxed.reports_loss {
                true => Ok(()),
                false => Err(error),
            })?;
            has_passed = api.unless_gone(&recorded.origin, || {
                let answer = api.event_query(recorded.event);
                match A::state(answer.code) {
                    EventState::Done => Ok(true),
                    EventState::Pending => Ok(false),
                    EventState::Failed if A::is_lost(answer.code) => Ok(true),
                    EventState::Failed => Err(api.error(answer)),
                }
            })?;
            Ok(())
        });
        // Then it does not matter that the mode is not left as it should be.
        if has_passed {
            return Ok(true);
        }
        asked.map(|()| false)
    }

    fn destroy(&self, recorded: &Recorded) -> Result<(), Error> {
        let api = A::functions()?;
        within(Relaxed::new(api), |relaxed| {
            // Nothing else destroys it, so it is tried without the mode too.
            let entered = relaxed.enter();
            api.destroy(recorded.event, &recorded.origin).and(entered)
        })
    }

    fn run_relaxed(&self, body: &mut dyn FnMut()) {
        let Ok(api) = A::functions() else {
            return body();
        };
        let _ = within(Relaxed::new(api), |relaxed| {
            let entered = relaxed.enter();
            body();
            entered
        });
    }
}

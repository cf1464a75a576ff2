// SPDX-License-Identifier: Apache-2.0

//! HIP. An event is waited on, asked and destroyed from whatever device the thread has: HIP knows
//! where it belongs.

use super::capturing::{call, call_optional, Answer, Api};
use super::event::{Handle, Origin, Scope};
use super::tables::hip::{self, Functions, TITLE};
use super::vendor::{no_function, EventState, Failure};
use crate::error::printable_c;
use crate::Error;

/// hipEventWaitExternal and hipEventRecordExternal, which are newer than the table.
const EXTERNAL: u32 = 1;

/// The calling thread's device, set for a while.
pub(super) struct HipScope {
    hip: &'static Functions,
    before: i32,
    is_set: bool,
}

impl HipScope {
    fn set(&self, device: i32) -> Answer {
        call!("hipSetDevice", self.hip.hip_set_device, device)
    }
}

impl Scope for HipScope {
    fn leave(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_set) {
            return Ok(());
        }
        let answer = self.set(self.before);
        if answer.code != 0 {
            let _ = self.set(self.before); // it may have reported an earlier error
        }
        self.hip.check(answer)
    }
}

/// 1 is CUDA's number for the legacy default stream; HIP's is NULL, and older ones have no other.
fn stream_of(stream: Handle) -> hip::hipStream_t {
    if stream.addr() == 1 {
        return std::ptr::null_mut();
    }
    stream.cast()
}

/// ROCm 6.4 can record an event of each launch of a graph, and ignores the flag of a wait.
fn has_external_events(hip: &Functions) -> Result<(), Error> {
    const FIRST: i32 = 70_000_000; // 7.0
    let mut version = 0;
    hip.check(call!(
        "hipRuntimeGetVersion",
        hip.hip_runtime_get_version,
        &raw mut version
    ))?;
    if hip.hip_event_record_with_flags.is_some() && version >= FIRST {
        return Ok(());
    }
    Err(Error::new(
        libc::ENOTSUP,
        format!(
            "{TITLE}: no external events of graphs: expected ROCm 7.0 or later, got version \
             {version}"
        ),
    ))
}

impl Api for Functions {
    const TITLE: &'static str = TITLE;
    const IMPLICIT_CAPTURE: i32 = hip::HIP_ERROR_STREAM_CAPTURE_IMPLICIT;
    const RELAXED: i32 = hip::HIP_STREAM_CAPTURE_MODE_RELAXED;
    const WAIT_EXTERNAL: u32 = EXTERNAL;
    type Scope = HipScope;

    fn functions() -> Result<&'static Self, Error> {
        hip::functions()
    }

    fn error(&self, answer: Answer) -> Error {
        // SAFETY: any number may be asked for, and the texts are static.
        let (name, text) = unsafe {
            (
                printable_c((self.hip_get_error_name)(answer.code)),
                printable_c((self.hip_get_error_string)(answer.code)),
            )
        };
        let known = || hip::status_name(answer.code).map(String::from);
        Error::from(Failure {
            title: TITLE,
            function: answer.function,
            status: answer.code,
            name: Some(name).filter(|name| !name.is_empty()).or_else(known),
            text: Some(text).filter(|text| !text.is_empty()),
            is_invalid_handle: answer.code == hip::HIP_ERROR_INVALID_HANDLE,
        })
    }

    fn state(code: i32) -> EventState {
        hip::event_state(code)
    }

    fn is_lost(code: i32) -> bool {
        hip::is_lost(code)
    }

    fn init(&self) -> Answer {
        call!("hipInit", self.hip_init, 0)
    }

    fn exchange_mode(&self, mode: &mut i32) -> Option<Answer> {
        let function = self.hip_thread_exchange_stream_capture_mode?;
        Some(call!("hipThreadExchangeStreamCaptureMode", function, mode))
    }

    fn is_capturing(&self, stream: Handle, status: &mut i32) -> Option<Answer> {
        let function = self.hip_stream_is_capturing?;
        Some(call!("hipStreamIsCapturing", function, stream_of(stream), status))
    }

    fn stream_wait_event(&self, stream: Handle, event: Handle, flags: u32) -> Answer {
        let stream = stream_of(stream);
        call!("hipStreamWaitEvent", self.hip_stream_wait_event, stream, event.cast(), flags)
    }

    fn event_synchronize(&self, event: Handle) -> Answer {
        call!("hipEventSynchronize", self.hip_event_synchronize, event.cast())
    }

    fn event_query(&self, event: Handle) -> Answer {
        call!("hipEventQuery", self.hip_event_query, event.cast())
    }

    fn event_create(&self, event: &mut Handle) -> Result<Answer, Error> {
        let create = self.hip_event_create_with_flags;
        let event = (&raw mut *event).cast();
        call_optional!(self, "hipEventCreateWithFlags", create, event, hip::HIP_EVENT_DISABLE_TIMING)
    }

    fn event_record(&self, event: Handle, stream: Handle) -> Result<Answer, Error> {
        let (record, stream) = (self.hip_event_record, stream_of(stream));
        call_optional!(self, "hipEventRecord", record, event.cast(), stream)
    }

    fn event_record_external(&self, event: Handle, stream: Handle) -> Result<Answer, Error> {
        let (record, stream) = (self.hip_event_record_with_flags, stream_of(stream));
        call_optional!(self, "hipEventRecordWithFlags", record, event.cast(), stream, EXTERNAL)
    }

    fn event_destroy(&self, event: Handle) -> Result<Answer, Error> {
        call_optional!(self, "hipEventDestroy", self.hip_event_destroy, event.cast())
    }

    fn can_wait_externally(&self) -> Result<(), Error> {
        has_external_events(self)
    }

    fn can_record_externally(&self) -> Result<(), Error> {
        has_external_events(self)
    }

    fn scope(&'static self) -> HipScope {
        HipScope {
            hip: self,
            before: 0,
            is_set: false,
        }
    }

    fn enter_stream(scope: &mut HipScope, stream: Handle, _device: i64) -> Result<(), Error> {
        let hip = scope.hip;
        hip.check(call!("hipGetDevice", hip.hip_get_device, &raw mut scope.before))?;
        // The default streams are those of the thread's device.
        if stream.addr() <= hip::HIP_STREAM_PER_THREAD.addr() {
            return Ok(());
        }
        let device = call!("", hip.hip_get_stream_device_id, stream.cast()).code;
        if device < 0 {
            return Err(Error::invalid(format!(
                "{TITLE}: hipGetStreamDeviceId failed with {device}; hint: check that the stream \
                 is alive"
            )));
        }
        if device == scope.before {
            return Ok(());
        }
        let answer = scope.set(device);
        scope.is_set = answer.code == 0;
        hip.check(answer)
    }

    fn enter_any(_scope: &mut HipScope, _device: i64) -> Result<(), Error> {
        Ok(())
    }

    fn origin(_scope: &mut HipScope) -> Result<Origin, Error> {
        Ok(Origin::NONE)
    }

    fn unless_gone(
        &'static self,
        _origin: &Origin,
        body: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        body()
    }

    fn destroy(&'static self, event: Handle, _origin: &Origin) -> Result<(), Error> {
        self.check(self.event_destroy(event)?)
    }
}

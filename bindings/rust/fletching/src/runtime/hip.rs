// SPDX-License-Identifier: Apache-2.0

//! HIP. An event is waited on, asked and destroyed from whatever device the thread has: HIP knows
//! where it belongs.

use std::ptr;

use super::capturing::{Api, Driver};
use super::event::{Handle, Origin, Scope};
use super::tables::hip::{self, Functions, TITLE};
use super::vendor::{call, Answer};
use crate::error::printable_c;
use crate::Error;

/// The calling thread's device, set for a while.
pub(super) struct HipScope {
    hip: &'static Functions,
    before: i32,
    is_set: bool,
}

impl Scope for HipScope {
    fn leave(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_set) {
            return Ok(());
        }
        let answer = call!(self.hip.hip_set_device, self.before);
        if answer.code != 0 {
            // It may have reported an earlier error.
            let _ = call!(self.hip.hip_set_device, self.before);
        }
        self.hip.check(answer)
    }
}

/// 1 is CUDA's number for the legacy default stream; HIP's is NULL, and older ones have no other.
fn stream_of(stream: Handle) -> Handle {
    match stream.addr() {
        1 => ptr::null_mut(),
        _ => stream,
    }
}

impl Api for Functions {
    type Scope = HipScope;

    fn functions() -> Result<&'static Self, Error> {
        hip::functions()
    }

    fn driver(&self) -> Driver {
        Driver {
            title: TITLE,
            library: self.library,
            init: self.hip_init,
            exchange_mode: self.hip_thread_exchange_stream_capture_mode,
            is_capturing: self.hip_stream_is_capturing,
            stream_wait_event: self.hip_stream_wait_event,
            event_synchronize: self.hip_event_synchronize,
            event_query: self.hip_event_query,
            event_create: self.hip_event_create_with_flags,
            event_record: self.hip_event_record,
            event_record_with_flags: self.hip_event_record_with_flags,
            event_destroy: self.hip_event_destroy,
            implicit_capture: hip::HIP_ERROR_STREAM_CAPTURE_IMPLICIT,
            relaxed: hip::HIP_STREAM_CAPTURE_MODE_RELAXED,
            disable_timing: hip::HIP_EVENT_DISABLE_TIMING,
            // hipEventWaitExternal and hipEventRecordExternal, which are newer than the table.
            wait_external: 1,
            record_external: 1,
            state: hip::event_state,
            is_lost: hip::is_lost,
            stream: stream_of,
        }
    }

    fn check(&self, answer: Answer) -> Result<(), Error> {
        if answer.code == hip::HIP_SUCCESS {
            return Ok(());
        }
        // SAFETY: any number may be asked for, and the texts are static.
        let [name, text] = unsafe {
            [
                printable_c((self.hip_get_error_name.function)(answer.code)),
                printable_c((self.hip_get_error_string.function)(answer.code)),
            ]
        };
        let is_invalid = answer.code == hip::HIP_ERROR_INVALID_HANDLE;
        Err(answer.error(TITLE, &name, &text, is_invalid))
    }

    /// ROCm 6.4 can record an event of each launch of a graph, and ignores the flag of a wait.
    fn can_record_externally(&self) -> Result<(), Error> {
        const FIRST: i32 = 70_000_000; // 7.0
        let mut version = 0;
        self.check(call!(self.hip_runtime_get_version, &raw mut version))?;
        if self.hip_event_record_with_flags.function.is_some() && version >= FIRST {
            return Ok(());
        }
        let text = format!(
            "{TITLE}: no external events of graphs: expected ROCm 7.0 or later, got version \
             {version}"
        );
        Err(Error::new(libc::ENOTSUP, text))
    }

    fn can_wait_externally(&self) -> Result<(), Error> {
        self.can_record_externally()
    }

    fn scope(&'static self) -> HipScope {
        let (before, is_set) = (0, false);
        #[rustfmt::skip]
        return HipScope { hip: self, before, is_set };
    }

    fn enter_stream(scope: &mut HipScope, stream: Handle, _device: i64) -> Result<(), Error> {
        let hip = scope.hip;
        hip.check(call!(hip.hip_get_device, &raw mut scope.before))?;
        // The default streams are those of the thread's device.
        if stream.addr() <= hip::HIP_STREAM_PER_THREAD.addr() {
            return Ok(());
        }
        let Answer { function, code } = call!(hip.hip_get_stream_device_id, stream);
        if code < 0 {
            return Err(Error::invalid(format!(
                "{TITLE}: {function} failed with {code}; hint: check that the stream is alive"
            )));
        }
        if code == scope.before {
            return Ok(());
        }
        let answer = call!(hip.hip_set_device, code);
        scope.is_set = answer.code == 0;
        hip.check(answer)
    }

    fn enter_any(_scope: &mut HipScope, _device: i64) -> Result<(), Error> {
        Ok(())
    }

    fn origin(_scope: &mut HipScope) -> Result<Origin, Error> {
        Ok(Origin::default())
    }

    fn unless_gone(
        &'static self,
        _origin: &Origin,
        body: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        body()
    }

    fn destroy(
        &'static self,
        _origin: &Origin,
        destroy: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        destroy()
    }
}

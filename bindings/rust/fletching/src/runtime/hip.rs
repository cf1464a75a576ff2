// SPDX-License-Identifier: Apache-2.0

//! HIP. An event is waited on, asked and destroyed from whatever device the thread has: HIP knows
//! where it belongs.

use std::ptr;

use super::capturing::{Api, Driver};
use super::event::{Handle, Origin};
use super::tables::hip::{self, Functions, TITLE};
use super::vendor::{call, Answer};
use crate::error::printable_c;
use crate::Error;

/// 1 is CUDA's number for the legacy default stream; HIP's is NULL, and older ones have no other.
fn stream_of(stream: Handle) -> Handle {
    match stream.addr() {
        1 => ptr::null_mut(),
        _ => stream,
    }
}

impl Api for Functions {
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
        let known = hip::status_name(answer.code).unwrap_or_default();
        let name = if name.is_empty() { known } else { &name };
        let is_invalid = answer.code == hip::HIP_ERROR_INVALID_HANDLE;
        Err(answer.error(TITLE, name, &text, is_invalid))
    }

    /// ROCm 6.4 can record an event of each launch of a graph, and ignores the flag of a wait.
    fn has_external_events(&self) -> Result<(), Error> {
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
        Err(Error::new(crate::errno::ENOTSUP, text))
    }

    fn on_stream<T>(
        &'static self,
        stream: Handle,
        _device: i64,
        body: impl FnOnce(&mut dyn FnMut() -> Result<Origin, Error>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (mut before, mut origin) = (0, || Ok(Origin::default()));
        self.check(call!(self.hip_get_device, &raw mut before))?;
        // The default streams are those of the thread's device.
        if stream.addr() <= hip::HIP_STREAM_PER_THREAD.addr() {
            return body(&mut origin);
        }
        let Answer { function, code } = call!(self.hip_get_stream_device_id, stream);
        if code < 0 {
            return Err(Error::invalid(format!(
                "{TITLE}: {function} failed with {code}; hint: check that the stream is alive"
            )));
        }
        if code == before {
            return body(&mut origin);
        }
        self.check(call!(self.hip_set_device, code))?;
        let result = body(&mut origin);
        let left = call!(self.hip_set_device, before);
        if left.code != 0 {
            let _ = call!(self.hip_set_device, before); // it may have reported an earlier error
        }
        let value = result?;
        self.check(left).map(|()| value)
    }
}

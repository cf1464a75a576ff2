// SPDX-License-Identifier: Apache-2.0

//! CUDA, and its contexts as the operations on events need them, by the driver API alone.

use std::ptr;

use super::capturing::{Api, Driver};
use super::event::{Handle, Origin};
use super::tables::cuda::{self, CUcontext, CUdevice, Functions, TITLE};
use super::vendor::{call, Answer};
use crate::error::printable_c;
use crate::Error;

/// A context that is current for the calling thread, for a while.
///
/// No context is created: only one that another party has made is used. Afterwards the thread's
/// contexts, and the references of the primary one, are as before.
pub(super) struct CudaScope {
    cuda: &'static Functions,
    current: CUcontext,
    is_pushed: bool,
    retained: Option<CUdevice>,
    /// Whether a call has failed because nothing of the context can still run.
    is_lost: bool,
}

impl CudaScope {
    fn run<T>(
        cuda: &'static Functions,
        body: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut scope = Self {
            cuda,
            current: ptr::null_mut(),
            is_pushed: false,
            retained: None,
            is_lost: false,
        };
        let result = body(&mut scope);
        let popped = scope.pop();
        let released = scope.release();
        let value = result?;
        popped.and(released).map(|()| value)
    }

    fn check(&mut self, answer: Answer) -> Result<(), Error> {
        self.is_lost |= cuda::is_lost(answer.code);
        self.cuda.check(answer)
    }

    /// The context that the thread has now.
    fn ask_current(&self) -> (CUcontext, Answer) {
        let mut context = ptr::null_mut();
        let answer = call!(self.cuda.cu_ctx_get_current, &raw mut context);
        (context, answer)
    }

    fn enter(&mut self, context: CUcontext) -> Result<(), Error> {
        let (before, answer) = self.ask_current();
        self.check(answer)?;
        self.current = context;
        if before == context {
            return Ok(());
        }
        let answer = call!(self.cuda.cu_ctx_push_current, context);
        self.is_pushed = answer.code == 0;
        self.check(answer)
    }

    fn is_primary_active(&mut self, device: CUdevice) -> Result<bool, Error> {
        let (mut flags, mut active) = (0, 0);
        let get = self.cuda.cu_device_primary_ctx_get_state;
        self.check(call!(get, device, &raw mut flags, &raw mut active))?;
        Ok(active != 0)
    }

    /// A primary context that is active. `release` gives it back.
    fn retain(&mut self, device: CUdevice) -> Result<CUcontext, Error> {
        let mut context = ptr::null_mut();
        let retain = self.cuda.cu_device_primary_ctx_retain;
        let answer = call!(retain, &raw mut context, device);
        self.retained = (answer.code == 0).then_some(device);
        self.check(answer).map(|()| context)
    }

    fn release(&mut self) -> Result<(), Error> {
        let Some(device) = self.retained.take() else {
            return Ok(());
        };
        let answer = call!(self.cuda.cu_device_primary_ctx_release, device);
        self.check(answer)
    }

    fn pop(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_pushed) {
            return Ok(());
        }
        let mut popped = ptr::null_mut();
        let answer = call!(self.cuda.cu_ctx_pop_current, &raw mut popped);
        if answer.code != 0 {
            // It may report an earlier error, and have popped nonetheless: ours must not stay, and
            // the caller's must not go.
            let (left, asked) = self.ask_current();
            if asked.code == 0 && left == self.current {
                let _ = call!(self.cuda.cu_ctx_pop_current, &raw mut popped);
            }
        }
        self.check(answer)
    }

    /// The number of a context, NULL for the current one. `None` where the driver has no numbers.
    fn id(&self, context: CUcontext) -> Option<(u64, Answer)> {
        let (get, mut id) = (self.cuda.cu_ctx_get_id.found()?, 0);
        let answer = call!(get, context, &raw mut id);
        Some((id, answer))
    }

    /// The current context; without one the primary context of the device, if it is active.
    fn enter_any(&mut self, device_id: i64) -> Result<(), Error> {
        let (current, answer) = self.ask_current();
        self.check(answer)?;
        self.current = current;
        if !current.is_null() {
            return Ok(());
        }
        let Ok(ordinal @ 0..) = i32::try_from(device_id) else {
            return Err(Error::invalid(format!(
                "device_id: not a CUDA device ordinal: expected 0 to 2147483647, got {device_id}"
            )));
        };
        let mut device = 0;
        self.check(call!(self.cuda.cu_device_get, &raw mut device, ordinal))?;
        if !self.is_primary_active(device)? {
            return Err(Error::invalid(format!(
                "CUDA context: none is current on this thread, and the primary context of device \
                 {device} is not active; hint: make the array's context current"
            )));
        }
        let context = self.retain(device)?;
        self.enter(context)
    }

    /// Of an event that is recorded now.
    fn origin(&mut self) -> Result<Origin, Error> {
        let (mut id, mut device) = (0, 0);
        if let Some((found, answer)) = self.id(self.current) {
            self.check(answer)?;
            id = found;
        }
        self.check(call!(self.cuda.cu_ctx_get_device, &raw mut device))?;
        let mut is_primary = self.retained == Some(device);
        if !is_primary && self.is_primary_active(device)? {
            is_primary = self.retain(device)? == self.current;
            self.release()?;
        }
        let context = self.current.expose_provenance();
        #[rustfmt::skip]
        return Ok(Origin { context, id, device, is_primary });
    }

    /// Whether the event's context is still there, and with it the event. A primary context stays
    /// as long as this scope, unless it is reset.
    ///
    /// Of a primary context the driver knows at any time whether it is active, and the number of
    /// the one that is. A context that was created can only be asked itself, which the driver
    /// answers with CUDA_ERROR_CONTEXT_IS_DESTROYED, but does not promise to. Without cuCtxGetId,
    /// before CUDA 12.0, a primary context that was reset and is active again counts as the same.
    fn holds(&mut self, origin: &Origin) -> Result<bool, Error> {
        let mut context = origin.context as CUcontext;
        if origin.is_primary {
            if !self.is_primary_active(origin.device)? {
                return Ok(false);
            }
            context = self.retain(origin.device)?;
            if context.addr() != origin.context {
                return Ok(false);
            }
        }
        let Some((id, answer)) = self.id(context) else {
            return Ok(true);
        };
        let gone = [
            cuda::CUDA_ERROR_CONTEXT_IS_DESTROYED,
            cuda::CUDA_ERROR_INVALID_CONTEXT,
        ];
        if gone.contains(&answer.code) {
            return Ok(false);
        }
        self.check(answer).map(|()| id == origin.id)
    }
}

impl Api for Functions {
    fn functions() -> Result<&'static Self, Error> {
        cuda::functions()
    }

    fn driver(&self) -> Driver {
        Driver {
            title: TITLE,
            library: self.library,
            init: self.cu_init,
            exchange_mode: self.cu_thread_exchange_stream_capture_mode.into(),
            is_capturing: self.cu_stream_is_capturing.into(),
            stream_wait_event: self.cu_stream_wait_event,
            event_synchronize: self.cu_event_synchronize,
            event_query: self.cu_event_query,
            event_create: self.cu_event_create,
            event_record: self.cu_event_record,
            event_record_with_flags: self.cu_event_record_with_flags,
            event_destroy: self.cu_event_destroy,
            implicit_capture: cuda::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
            relaxed: cuda::CU_STREAM_CAPTURE_MODE_RELAXED,
            disable_timing: cuda::CU_EVENT_DISABLE_TIMING,
            wait_external: cuda::CU_EVENT_WAIT_EXTERNAL,
            record_external: cuda::CU_EVENT_RECORD_EXTERNAL,
            state: cuda::event_state,
            is_lost: cuda::is_lost,
            stream: |stream| stream,
        }
    }

    fn check(&self, answer: Answer) -> Result<(), Error> {
        if answer.code == cuda::CUDA_SUCCESS {
            return Ok(());
        }
        let [name, text] = [self.cu_get_error_name, self.cu_get_error_string].map(|get| {
            let mut text = ptr::null();
            let _ = call!(get, answer.code, &raw mut text);
            // SAFETY: NULL, or a static text.
            unsafe { printable_c(text) }
        });
        let known = cuda::status_name(answer.code).unwrap_or_default();
        let name = if name.is_empty() { known } else { &name };
        let is_invalid = answer.code == cuda::CUDA_ERROR_INVALID_HANDLE;
        Err(answer.error(TITLE, name, &text, is_invalid))
    }

    fn has_external_events(&self) -> Result<(), Error> {
        let record = self.cu_event_record_with_flags;
        record
            .in_library(TITLE, self.library)
            .map(drop)
            .map_err(|error| {
                let text = format!("{error} (CUDA 11.1) for an event of a captured stream");
                Error::new(crate::errno::ENOTSUP, text)
            })
    }

    fn on_stream<T>(
        &'static self,
        stream: Handle,
        device: i64,
        body: impl FnOnce(&mut dyn FnMut() -> Result<Origin, Error>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        CudaScope::run(self, |scope| {
            // The default streams are those of the current context.
            if stream.addr() <= cuda::CU_STREAM_PER_THREAD.addr() {
                scope.enter_any(device)?;
            } else {
                let mut context = ptr::null_mut();
                scope.check(call!(self.cu_stream_get_ctx, stream, &raw mut context))?;
                scope.enter(context)?;
            }
            body(&mut || scope.origin())
        })
    }

    fn anywhere<T>(
        &'static self,
        device: i64,
        body: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        CudaScope::run(self, |scope| {
            scope.enter_any(device)?;
            body()
        })
    }

    fn at_origin<T>(
        &'static self,
        origin: &Origin,
        is_lost: &mut bool,
        body: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        CudaScope::run(self, |scope| {
            // The driver answers also when the current context was destroyed elsewhere.
            let current = scope.id(ptr::null_mut());
            let is_current = current.is_some_and(|(id, asked)| asked.code == 0 && id == origin.id);
            if !is_current {
                let entered = scope.holds(origin).and_then(|holds| match holds {
                    true => scope.enter(origin.context as CUcontext).map(|()| true),
                    false => Ok(false),
                });
                *is_lost = scope.is_lost;
                if !entered? {
                    return Ok(None);
                }
            }
            body().map(Some)
        })
    }
}

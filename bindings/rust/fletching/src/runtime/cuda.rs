// SPDX-License-Identifier: Apache-2.0

//! CUDA, and its contexts as the operations on events need them, by the driver API alone.

use std::cell::Cell;

use super::capturing::{call, call_optional, Answer, Api};
use super::event::{within, Handle, Origin, Scope};
use super::tables::cuda::{self, CUcontext, CUdevice, Functions, TITLE};
use super::vendor::{no_function, EventState, Failure};
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
    fn check(&mut self, answer: Answer) -> Result<(), Error> {
        self.is_lost |= cuda::is_lost(answer.code);
        self.cuda.check(answer)
    }

    fn thread_context(&self) -> (CUcontext, Answer) {
        let mut context = std::ptr::null_mut();
        let get = self.cuda.cu_ctx_get_current;
        let answer = call!("cuCtxGetCurrent", get, &raw mut context);
        (context, answer)
    }

    fn enter(&mut self, context: CUcontext) -> Result<(), Error> {
        let (before, answer) = self.thread_context();
        self.cuda.check(answer)?;
        self.current = context;
        if before == context {
            return Ok(());
        }
        let push = self.cuda.cu_ctx_push_current;
        let answer = call!("cuCtxPushCurrent", push, context);
        self.is_pushed = answer.code == 0;
        self.cuda.check(answer)
    }

    /// The current context; without one the primary context of the device, if it is active.
    fn enter_any(&mut self, device_id: i64) -> Result<(), Error> {
        let (context, answer) = self.thread_context();
        self.cuda.check(answer)?;
        self.current = context;
        if !context.is_null() {
            return Ok(());
        }
        let Ok(ordinal @ 0..) = i32::try_from(device_id) else {
            return Err(Error::invalid(format!(
                "device_id: not a CUDA device ordinal: expected 0 to 2147483647, got {device_id}"
            )));
        };
        let mut device = 0;
        let get = self.cuda.cu_device_get;
        self.check(call!("cuDeviceGet", get, &raw mut device, ordinal))?;
        if !self.is_primary_active(device)? {
            return Err(Error::invalid(format!(
                "CUDA context: none is current on this thread, and the primary context of device \
                 {device} is not active; hint: make the array's context current"
            )));
        }
        let context = self.retain(device)?;
        self.enter(context)
    }

    fn is_primary_active(&mut self, device: CUdevice) -> Result<bool, Error> {
        let (mut flags, mut active) = (0, 0);
        let get = self.cuda.cu_device_primary_ctx_get_state;
        self.check(call!(
            "cuDevicePrimaryCtxGetState",
            get,
            device,
            &raw mut flags,
            &raw mut active
        ))?;
        Ok(active != 0)
    }

    /// A primary context that is active. Released by `leave`.
    fn retain(&mut self, device: CUdevice) -> Result<CUcontext, Error> {
        let mut context = std::ptr::null_mut();
        let retain = self.cuda.cu_device_primary_ctx_retain;
        let answer = call!("cuDevicePrimaryCtxRetain", retain, &raw mut context, device);
        self.retained = (answer.code == 0).then_some(device);
        self.check(answer).map(|()| context)
    }

    fn release(&mut self) -> Result<(), Error> {
        let Some(device) = self.retained.take() else {
            return Ok(());
        };
        let release = self.cuda.cu_device_primary_ctx_release;
        self.check(call!("cuDevicePrimaryCtxRelease", release, device))
    }

    fn pop(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_pushed) {
            return Ok(());
        }
        let mut popped = std::ptr::null_mut();
        let pop = self.cuda.cu_ctx_pop_current;
        let answer = call!("cuCtxPopCurrent", pop, &raw mut popped);
        if answer.code != 0 {
            // It may report an earlier error, and have popped nonetheless: ours must not stay, and
            // the caller's must not go.
            let (left, asked) = self.thread_context();
            if asked.code == 0 && left == self.current {
                let _ = call!("cuCtxPopCurrent", pop, &raw mut popped);
            }
        }
        self.check(answer)
    }

    /// The number of a context, NULL for the current one. `None` where the driver has no numbers.
    fn id(&self, context: CUcontext) -> Option<(u64, Answer)> {
        let get = self.cuda.cu_ctx_get_id?;
        let mut id = 0;
        let answer = call!("cuCtxGetId", get, context, &raw mut id);
        Some((id, answer))
    }

    /// Where an event is from that is recorded now.
    fn origin(&mut self) -> Result<Origin, Error> {
        thread_local! {
            // What a context is never changes, and no other one has its number.
            static KNOWN: Cell<Origin> = const { Cell::new(Origin::NONE) };
        }
        let id = match self.id(self.current) {
            Some((id, answer)) => self.check(answer).map(|()| id)?,
            None => 0,
        };
        let mut known = KNOWN.get();
        if id == 0 || id != known.id {
            let mut device = 0;
            let get = self.cuda.cu_ctx_get_device;
            self.check(call!("cuCtxGetDevice", get, &raw mut device))?;
            let is_primary = self.is_current_primary(device)?;
            known = Origin {
                context: std::ptr::null_mut(),
                id,
                device,
                is_primary,
            };
            KNOWN.set(known);
        }
        known.context = self.current.cast();
        Ok(known)
    }

    fn is_current_primary(&mut self, device: CUdevice) -> Result<bool, Error> {
        if !self.is_primary_active(device)? {
            return Ok(false);
        }
        let before = self.retained.take();
        let found = self.retain(device);
        let released = self.release();
        self.retained = before;
        let primary = found?;
        released.map(|()| primary == self.current)
    }

    /// Whether the event's context is current for this thread, and alive. The driver answers also
    /// when the current one was destroyed elsewhere.
    fn is_current(&self, origin: &Origin) -> bool {
        match self.id(std::ptr::null_mut()) {
            Some((id, answer)) => answer.code == 0 && id == origin.id && id != 0,
            None => false,
        }
    }

    /// Whether the event's context is still there, and with it the event. A primary context stays
    /// as long as this scope, unless it is reset.
    ///
    /// Of a primary context the driver knows at any time whether it is active, and the number of
    /// the one that is. A context that was created can only be asked itself, which the driver
    /// answers with CUDA_ERROR_CONTEXT_IS_DESTROYED, but does not promise to. Without cuCtxGetId,
    /// before CUDA 12.0, a primary context that was reset and is active again counts as the same.
    fn holds(&mut self, origin: &Origin) -> Result<bool, Error> {
        let mut context: CUcontext = origin.context.cast();
        if origin.is_primary {
            if !self.is_primary_active(origin.device)? {
                return Ok(false);
            }
            context = self.retain(origin.device)?;
            if context != origin.context.cast() {
                return Ok(false);
            }
        }
        let Some((id, answer)) = self.id(context) else {
            return Ok(true);
        };
        if matches!(
            answer.code,
            cuda::CUDA_ERROR_CONTEXT_IS_DESTROYED | cuda::CUDA_ERROR_INVALID_CONTEXT
        ) {
            return Ok(false);
        }
        self.check(answer).map(|()| id == origin.id)
    }
}

impl Scope for CudaScope {
    fn leave(&mut self) -> Result<(), Error> {
        let popped = self.pop();
        let released = self.release();
        popped.and(released)
    }
}

impl Api for Functions {
    const TITLE: &'static str = TITLE;
    const IMPLICIT_CAPTURE: i32 = cuda::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    const RELAXED: i32 = cuda::CU_STREAM_CAPTURE_MODE_RELAXED;
    const WAIT_EXTERNAL: u32 = cuda::CU_EVENT_WAIT_EXTERNAL;
    type Scope = CudaScope;

    fn functions() -> Result<&'static Self, Error> {
        cuda::functions()
    }

    fn error(&self, answer: Answer) -> Error {
        let text = |get: unsafe extern "system" fn(i32, *mut *const _) -> i32| {
            let mut text = std::ptr::null();
            // SAFETY: any number may be asked for, and the texts are static.
            let text = match unsafe { get(answer.code, &raw mut text) } {
                // SAFETY: as above.
                0 => unsafe { printable_c(text) },
                _ => String::new(),
            };
            Some(text).filter(|text| !text.is_empty())
        };
        let known = || cuda::status_name(answer.code).map(String::from);
        Error::from(Failure {
            title: TITLE,
            function: answer.function,
            status: answer.code,
            name: text(self.cu_get_error_name).or_else(known),
            text: text(self.cu_get_error_string),
            is_invalid_handle: answer.code == cuda::CUDA_ERROR_INVALID_HANDLE,
        })
    }

    fn state(code: i32) -> EventState {
        cuda::event_state(code)
    }

    fn is_lost(code: i32) -> bool {
        cuda::is_lost(code)
    }

    fn init(&self) -> Answer {
        call!("cuInit", self.cu_init, 0)
    }

    fn exchange_mode(&self, mode: &mut i32) -> Option<Answer> {
        let exchange = self.cu_thread_exchange_stream_capture_mode;
        Some(call!("cuThreadExchangeStreamCaptureMode", exchange, mode))
    }

    fn is_capturing(&self, stream: Handle, status: &mut i32) -> Option<Answer> {
        let is_capturing = self.cu_stream_is_capturing;
        Some(call!("cuStreamIsCapturing", is_capturing, stream.cast(), status))
    }

    fn stream_wait_event(&self, stream: Handle, event: Handle, flags: u32) -> Answer {
        let wait = self.cu_stream_wait_event;
        call!("cuStreamWaitEvent", wait, stream.cast(), event.cast(), flags)
    }

    fn event_synchronize(&self, event: Handle) -> Answer {
        call!("cuEventSynchronize", self.cu_event_synchronize, event.cast())
    }

    fn event_query(&self, event: Handle) -> Answer {
        call!("cuEventQuery", self.cu_event_query, event.cast())
    }

    fn event_create(&self, event: &mut Handle) -> Result<Answer, Error> {
        let (create, event) = (self.cu_event_create, (&raw mut *event).cast());
        call_optional!(self, "cuEventCreate", create, event, cuda::CU_EVENT_DISABLE_TIMING)
    }

    fn event_record(&self, event: Handle, stream: Handle) -> Result<Answer, Error> {
        let record = self.cu_event_record;
        call_optional!(self, "cuEventRecord", record, event.cast(), stream.cast())
    }

    fn event_record_external(&self, event: Handle, stream: Handle) -> Result<Answer, Error> {
        let (record, flag) = (self.cu_event_record_with_flags, cuda::CU_EVENT_RECORD_EXTERNAL);
        let (event, stream) = (event.cast(), stream.cast());
        call_optional!(self, "cuEventRecordWithFlags", record, event, stream, flag)
    }

    fn event_destroy(&self, event: Handle) -> Result<Answer, Error> {
        call_optional!(self, "cuEventDestroy", self.cu_event_destroy, event.cast())
    }

    fn can_wait_externally(&self) -> Result<(), Error> {
        Ok(())
    }

    fn can_record_externally(&self) -> Result<(), Error> {
        if self.cu_event_record_with_flags.is_some() {
            return Ok(());
        }
        Err(Error::new(
            libc::ENOTSUP,
            format!(
                "{TITLE}: no cuEventRecordWithFlags in this driver: expected CUDA 11.1 or later \
                 for an event of a captured stream"
            ),
        ))
    }

    fn scope(&'static self) -> CudaScope {
        CudaScope {
            cuda: self,
            current: std::ptr::null_mut(),
            is_pushed: false,
            retained: None,
            is_lost: false,
        }
    }

    fn enter_stream(scope: &mut CudaScope, stream: Handle, device: i64) -> Result<(), Error> {
        // The default streams are those of the current context.
        if stream.addr() <= cuda::CU_STREAM_PER_THREAD.addr() {
            return scope.enter_any(device);
        }
        let mut context = std::ptr::null_mut();
        let get = scope.cuda.cu_stream_get_ctx;
        scope.check(call!("cuStreamGetCtx", get, stream.cast(), &raw mut context))?;
        scope.enter(context)
    }

    fn enter_any(scope: &mut CudaScope, device: i64) -> Result<(), Error> {
        scope.enter_any(device)
    }

    fn origin(scope: &mut CudaScope) -> Result<Origin, Error> {
        scope.origin()
    }

    fn unless_gone(
        &'static self,
        origin: &Origin,
        body: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let mut has_passed = false;
        let asked = within(self.scope(), |scope| {
            has_passed = match scope.holds(origin) {
                Ok(true) => body()?, // from whatever context there is: cuEventQuery needs none
                Ok(false) => true,
                Err(_) if scope.is_lost => true,
                Err(error) => return Err(error),
            };
            Ok(false)
        });
        // Then it does not matter that the context is not left as it should be.
        if has_passed {
            return Ok(true);
        }
        asked
    }

    fn destroy(&'static self, event: Handle, origin: &Origin) -> Result<(), Error> {
        let attempt = |is_tried: &mut bool| {
            within(self.scope(), |scope| {
                if !scope.is_current(origin) {
                    *is_tried = !scope.holds(origin)?;
                    if *is_tried {
                        return Ok(());
                    }
                    scope.enter(origin.context.cast())?;
                }
                *is_tried = true;
                self.check(self.event_destroy(event)?)
            })
        };
        // Nothing else destroys it, so it is tried once more when it did not come to that.
        let mut is_tried = false;
        let result = attempt(&mut is_tried);
        if is_tried {
            return result;
        }
        attempt(&mut is_tried)
    }
}

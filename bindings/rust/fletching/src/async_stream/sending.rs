// SPDX-License-Identifier: Apache-2.0

//! The future that drives a producer. Every handler call is made inside its `poll`.

use std::ffi::{c_int, CString};
use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::errno::{ECANCELED, EINVAL};
use fletching_abi::{ArrowAsyncDeviceStreamHandler as Handler, ArrowDeviceType};
use futures_core::Stream;

use super::batch::{AsyncBatch, Data};
use super::producer::AsyncProducer;
use super::producer_core::{Core, Stop};
use super::task::Nodes;
use super::waker::wake;
use super::{AsyncHandler, Promise};
use crate::error::{discard, guarded, printable, Error};
use crate::metadata::Metadata;
use crate::owner::Schema;

/// Sends a stream to a consumer, see [`AsyncProducer::send`].
///
/// Resolves when the handler is released, after the last task is extracted. The result is `Ok`
/// after the end of the stream or if the consumer cancelled, otherwise the error that the consumer
/// got, or the error with which it rejected a call. A batch that could not be made is always an
/// error.
///
/// The stream is read one batch ahead of the consumer's requests, so that its end is sent without a
/// request. It is dropped before `on_error` and the release. A panic in the stream is an error, EIO
/// with the message of the panic. A batch that is released, on a device of another type, or of
/// another schema is an error, EINVAL.
///
/// Dropping the future before the end calls `on_error` with ECANCELED and then the release. If
/// tasks are not extracted yet, the release is called after the last of them, on a new thread.
///
/// Errors: EINVAL for a handler without a callback, which is released at once; for a schema that is
/// released, a `device_type` of 0, and malformed metadata.
pub struct AsyncSending<F, St> {
    core: Arc<Core>,
    /// None after the release.
    handler: Option<AsyncHandler>,
    source: Source<F, St>,
    schema: Option<Schema>,
    /// The batch that was read but not sent.
    next: Option<AsyncBatch>,
    pub(super) ended: bool,
    pub(super) sent: u64,
    nodes: Nodes,
    /// All calls but the release were made, and the open tasks are counted.
    over: bool,
    result: Result<(), Error>,
    calls_per_poll: u32,
    pub(super) device_type: ArrowDeviceType,
}

enum Source<F, St> {
    Opening(Pin<Box<F>>),
    Open(Pin<Box<St>>),
    Closed,
}

/// Ends a stream with an error, from any thread. See [`AsyncSending::abort_handle`].
#[derive(Clone)]
pub struct AsyncAbort(Arc<Core>);

impl AsyncAbort {
    /// Fails the stream: the consumer's `on_error` gets the error when the future is next polled,
    /// before batches that were not sent. Does nothing after the end of the stream.
    pub fn fail(&self, error: Error) {
        wake(self.0.stop(Stop::Failed(error)));
    }
}

enum Step {
    Called,
    Waits,
    Released,
}

impl<F, St, B> AsyncProducer<F>
where
    F: Future<Output = Result<(Schema, St), Error>>,
    St: Stream<Item = Result<B, Error>>,
    B: Into<AsyncBatch>,
{
    /// Sends the stream to a consumer. The future makes all handler calls. It needs an executor,
    /// and does nothing until it is polled.
    pub fn send(self, handler: AsyncHandler) -> AsyncSending<F, St> {
        AsyncSending::new(self, handler)
    }
}

impl<F, St> AsyncSending<F, St> {
    fn new(producer: AsyncProducer<F>, handler: AsyncHandler) -> Self {
        let checked = check(&producer);
        let core = Core::new(producer.device_type, producer.metadata);
        if let Err(error) = checked {
            wake(core.stop(Stop::Failed(error)));
        }
        // SAFETY: the handler is owned, and its producer must be set here.
        let missing = unsafe {
            (*handler.as_ptr()).producer = core.raw();
            missing_callback(&*handler.as_ptr())
        };
        let mut sending = Self {
            core,
            handler: Some(handler),
            source: Source::Opening(Box::pin(producer.open)),
            schema: None,
            next: None,
            ended: false,
            sent: 0,
            nodes: Nodes::default(),
            over: false,
            result: Ok(()),
            calls_per_poll: producer.calls_per_poll,
            device_type: producer.device_type,
        };
        if let Some(name) = missing {
            let text = format!("handler.{name}: NULL: expected a callback");
            sending.result = Err(Error::invalid(text));
            sending.finish();
        }
        sending
    }

    /// A handle with which the caller ends the stream with an error.
    #[must_use]
    pub fn abort_handle(&self) -> AsyncAbort {
        AsyncAbort(Arc::clone(&self.core))
    }

    fn raw(&self) -> *mut Handler {
        let handler = self.handler.as_ref();
        handler.map_or(ptr::null_mut(), AsyncHandler::as_ptr)
    }

    /// Handles the result of a handler call. The callbacks are not NULL.
    fn called(&mut self, call: &str, code: Option<c_int>) -> Step {
        let code = code.unwrap_or(EINVAL);
        if code != 0 {
            let text = format!("{call}: refused by the consumer: expected 0, got {code}");
            self.result = Err(Error::new(code, text));
            self.core.take_stop();
            self.finish();
        }
        Step::Called
    }

    fn send_schema(&mut self, mut schema: Schema) -> Step {
        let (handler, raw) = (self.raw(), schema.as_mut_ptr());
        // SAFETY: no other call is running; the handler either takes the schema or leaves it.
        let code = unsafe { Handler::call_on_schema(handler, raw) };
        self.called("on_schema", code)
    }

    fn send_batch(&mut self, batch: AsyncBatch) -> Step {
        self.sent += 1;
        let (handler, core) = (self.raw(), Arc::as_ptr(&self.core));
        let number = self.sent - 1;
        // SAFETY: no other call is running, and the arguments are valid during the call.
        let code = self
            .nodes
            .send(core, number, batch, |task, metadata| unsafe {
                Handler::call_on_next_task(handler, task, metadata)
            });
        self.called("on_next_task", code)
    }

    fn send_end(&mut self) -> Step {
        let reason = self.core.take_stop();
        if !matches!(reason, Stop::Running) {
            return self.stop(reason);
        }
        self.drop_source();
        // SAFETY: no other call is running. NULL signals the end.
        let code = unsafe { Handler::call_on_next_task(self.raw(), ptr::null_mut(), ptr::null()) };
        self.called("on_next_task", code);
        self.finish();
        Step::Called
    }

    /// Stops the stream. Drops its source first.
    fn stop(&mut self, reason: Stop) -> Step {
        self.drop_source();
        let Stop::Failed(error) = reason else {
            self.finish();
            return self.release();
        };
        let text = match error.message() {
            "" => CString::from(c"producer: failed without a message"),
            text => CString::new(printable(text.as_bytes())).unwrap_or_default(),
        };
        let (code, text) = (error.code(), text.as_ptr());
        // SAFETY: no other call is running, and the message is valid during the call.
        unsafe { Handler::call_on_error(self.raw(), code, text, ptr::null()) };
        self.result = Err(error);
        self.finish();
        Step::Called
    }

    fn drop_source(&mut self) {
        discard(std::mem::replace(&mut self.source, Source::Closed));
        discard((self.next.take(), self.schema.take()));
    }

    /// Marks that only the release remains.
    fn finish(&mut self) {
        if !std::mem::replace(&mut self.over, true) {
            self.drop_source();
            self.core.count_open(|open| self.nodes.count_open(open));
        }
    }

    fn release(&mut self) -> Step {
        if !self.core.is_settled() {
            return Step::Waits;
        }
        drop(self.handler.take());
        Step::Released
    }
}

fn missing_callback(handler: &Handler) -> Option<&'static str> {
    let callbacks = [
        ("on_schema", handler.on_schema.is_none()),
        ("on_next_task", handler.on_next_task.is_none()),
        ("on_error", handler.on_error.is_none()),
        ("release", handler.release.is_none()),
    ];
    let missing = callbacks.into_iter().find(|(_, is_missing)| *is_missing);
    missing.map(|(name, _)| name)
}

/// Errors: EINVAL for an invalid device type or metadata.
fn check<F>(producer: &AsyncProducer<F>) -> Result<(), Error> {
    if producer.device_type.0 == 0 {
        let text = "AsyncProducer: device_type: 0: expected the device type of the batches";
        return Err(Error::broken_rule("async-producer.device-type-set", text));
    }
    check_metadata(&producer.metadata)
}

/// Errors: EINVAL unless the bytes are exactly one block, or empty for no metadata.
fn check_metadata(block: &[u8]) -> Result<(), Error> {
    if block.is_empty() || Metadata::from_bytes(block)?.block().len() == block.len() {
        return Ok(());
    }
    Err(Error::invalid("metadata: bytes after the last pair"))
}

impl<F, St, B> AsyncSending<F, St>
where
    F: Future<Output = Result<(Schema, St), Error>>,
    St: Stream<Item = Result<B, Error>>,
    B: Into<AsyncBatch>,
{
    fn step(&mut self, cx: &mut Context<'_>) -> Step {
        if self.over {
            return self.release();
        }
        if !self.is_stopped() {
            if let Err(error) = self.read(cx) {
                wake(self.core.stop(Stop::Failed(error)));
            }
        }
        if self.is_stopped() {
            let reason = self.core.take_stop();
            return self.stop(reason);
        }
        if let Some(schema) = self.schema.take() {
            return self.send_schema(schema);
        }
        match self.next.take() {
            Some(batch) if self.core.requested.load(Ordering::Acquire) > self.sent => {
                self.send_batch(batch)
            }
            None if self.ended => self.send_end(),
            next => {
                self.next = next;
                Step::Waits
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.core.stopped.load(Ordering::Acquire)
    }

    /// Reads the schema, or the next batch if none is waiting to be sent.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<(), Error> {
        match &mut self.source {
            Source::Opening(open) => {
                if let Poll::Ready(opened) = guarded(|| Ok(open.as_mut().poll(cx)))? {
                    let (schema, stream) = opened?;
                    self.opened(schema, stream)?;
                }
            }
            Source::Open(stream) if self.next.is_none() && !self.ended => {
                let read = guarded(|| {
                    Ok(match stream.as_mut().poll_next(cx) {
                        Poll::Pending => return Ok(None),
                        Poll::Ready(batch) => Some(batch.transpose()?.map(Into::into)),
                    })
                })?;
                match read {
                    None => {}
                    Some(None) => self.ended = true,
                    Some(Some(batch)) => self.next = Some(self.checked(batch)?),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn opened(&mut self, schema: Schema, stream: St) -> Result<(), Error> {
        discard(std::mem::replace(
            &mut self.source,
            Source::Open(Box::pin(stream)),
        ));
        if schema.is_released() {
            return Err(Error::invalid("schema: released: expected a live schema"));
        }
        let promise = Promise::of(&schema, self.device_type)?;
        let _ = self.core.promise.set(promise);
        self.schema = Some(schema);
        Ok(())
    }

    fn checked(&self, batch: AsyncBatch) -> Result<AsyncBatch, Error> {
        if let Data::Ready(array) = &batch.data {
            self.core.check(self.sent, array)?;
        }
        check_metadata(&batch.metadata)?;
        Ok(batch)
    }
}

impl<F, St, B> Future for AsyncSending<F, St>
where
    F: Future<Output = Result<(Schema, St), Error>>,
    St: Stream<Item = Result<B, Error>>,
    B: Into<AsyncBatch>,
{
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.core.waker.register(cx.waker());
        for _ in 0..self.calls_per_poll {
            match self.step(cx) {
                Step::Called => {}
                Step::Waits => return Poll::Pending,
                Step::Released => {
                    let lost = self.core.lost().map_or(Ok(()), Err);
                    return Poll::Ready(self.result.clone().and(lost));
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<F, St> Drop for AsyncSending<F, St> {
    fn drop(&mut self) {
        if !self.over {
            let dropped = "producer: dropped before the end of the stream";
            wake(self.core.stop(Stop::Failed(Error::new(ECANCELED, dropped))));
            let reason = self.core.take_stop();
            self.stop(reason);
        }
        if let Some(handler) = self.handler.take() {
            let nodes = std::mem::take(&mut self.nodes);
            self.core.release_later(Box::new((handler, nodes)));
        }
    }
}

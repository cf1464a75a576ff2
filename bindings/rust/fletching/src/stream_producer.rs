// SPDX-License-Identifier: Apache-2.0

//! Exports iterators as streams.

use std::ffi::{c_char, c_int, CString};

use crate::errno::EINVAL;
use fletching_abi::{ArrowArrayStream, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema};

use crate::batch_type::BatchType;
use crate::error::{discard, guarded, printable, Error};
use crate::options::Options;
use crate::owner::{Array, ArrayStream, DeviceArray, DeviceArrayStream, Owner, Schema};
use crate::raw::Raw;
use crate::shared::Shared;
use crate::stream::sealed::Callbacks;
use crate::stream::{BatchOf, RawStream};

impl DeviceArrayStream {
    /// Exports an iterator of batches as a device stream: a [`StreamReader`](crate::StreamReader),
    /// or `vec![...].into_iter().map(Ok)`. All batches have the type `schema` and are on devices of
    /// `device_type`.
    ///
    /// The iterator is called on the thread that calls `get_next`, one call at a time. `get_next`
    /// returns the code of the iterator's error, and `get_last_error` its message. The following
    /// are errors too: a panic (EIO), a batch on a device whose memory is not accessible from
    /// `device_type`, a released batch, and a batch whose children or dictionaries differ from
    /// `schema`. After an error, `get_next` returns the same error again.
    ///
    /// Errors: EINVAL if `schema` is released or malformed, or if `device_type` is 0.
    ///
    /// See the Arrow C device stream interface.
    pub fn from_batches<I>(
        schema: Schema,
        device_type: ArrowDeviceType,
        batches: I,
    ) -> Result<Self, Error>
    where
        I: IntoIterator<Item = Result<DeviceArray, Error>, IntoIter: Send + 'static>,
    {
        if device_type.0 == 0 {
            return Err(Error::broken_rule(
                "device-stream.device-type-set",
                "from_batches: device_type: 0: expected the device type of the batches",
            ));
        }
        export::<ArrowDeviceArrayStream, _>(schema, device_type, batches.into_iter())
    }
}

impl ArrayStream {
    /// Exports an iterator of CPU batches. Errors: EINVAL if `schema` is released or malformed.
    /// See the Arrow C stream interface.
    pub fn from_batches<I>(schema: Schema, batches: I) -> Result<Self, Error>
    where
        I: IntoIterator<Item = Result<Array, Error>, IntoIter: Send + 'static>,
    {
        export::<ArrowArrayStream, _>(schema, ArrowDeviceType::CPU, batches.into_iter())
    }
}

struct Export<I> {
    schema: Shared<ArrowSchema>,
    batch_type: BatchType,
    batches: I,
    /// The number of batches that the iterator has returned.
    count: u64,
    options: Options,
    ended: bool,
    failure: Option<Error>,
    /// The error message of the last call, or none if it succeeded.
    last_error: Option<CString>,
}

fn export<S, I>(schema: Schema, device_type: ArrowDeviceType, batches: I) -> Result<Owner<S>, Error>
where
    S: RawStream,
    I: Iterator<Item = Result<BatchOf<S>, Error>> + Send + 'static,
{
    let state = Box::new(Export {
        batch_type: BatchType::of(&schema)?,
        schema: schema.share()?,
        batches,
        count: 0,
        options: Options::default(),
        ended: false,
        failure: None,
        last_error: None,
    });
    let callbacks = Callbacks {
        get_schema: Some(get_schema::<S, I>),
        get_next: Some(get_next::<S, I>),
        get_last_error: Some(get_last_error::<S, I>),
        private_data: Box::into_raw(state).cast(),
    };
    let stream = S::new(device_type, callbacks, Some(release::<S, I>));
    // SAFETY: the callbacks are defined in this module.
    Ok(unsafe { Owner::new(stream) })
}

impl<I> Export<I> {
    fn next<S>(&mut self, stream: &S) -> Result<BatchOf<S>, Error>
    where
        S: RawStream,
        I: Iterator<Item = Result<BatchOf<S>, Error>>,
    {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.ended {
            return Ok(Owner::default());
        }
        let batch = guarded(|| {
            let Some(batch) = self.batches.next().transpose()? else {
                return Ok(Owner::default());
            };
            if batch.is_released() {
                return Err(Error::invalid(
                    "get_next: batch is released: expected a live batch, because a released one is \
                     the end",
                ));
            }
            let number = self.count;
            self.count += 1;
            let refused = |why| Error::invalid(format!("batch {number}: {why}"));
            self.batch_type.check_shape(&batch).map_err(refused)?;
            stream.check_batch(batch.as_raw(), &mut self.options)?;
            Ok(batch)
        });
        match &batch {
            Ok(batch) => self.ended = batch.is_released(),
            Err(failure) => self.failure = Some(failure.clone()),
        }
        batch
    }
}

/// Calls `body` with the state of a stream. Writes the value to `out`, or stores the error message.
///
/// # Safety
///
/// `this` is NULL or a stream of this kind, and `out` is NULL or valid for writes.
unsafe fn enter<S: RawStream, I, Out: Raw>(
    this: *mut S,
    out: *mut Out,
    body: impl FnOnce(&mut Export<I>, &S) -> Result<Owner<Out>, Error>,
) -> c_int {
    if this.is_null() || out.is_null() {
        return EINVAL;
    }
    // SAFETY: guaranteed by the caller; one thread at a time uses a stream.
    unsafe {
        out.write(Out::zeroed());
        let Some(state) = (*this)
            .callbacks()
            .private_data
            .cast::<Export<I>>()
            .as_mut()
        else {
            return EINVAL;
        };
        state.last_error = None;
        match body(state, &*this) {
            Ok(value) => {
                out.write(value.detach());
                0
            }
            Err(error) => {
                let text = CString::new(printable(error.message().as_bytes())).unwrap_or_default();
                state.last_error = Some(text).filter(|text| !text.is_empty());
                error.code()
            }
        }
    }
}

unsafe extern "C" fn get_schema<S: RawStream, I>(this: *mut S, out: *mut ArrowSchema) -> c_int {
    // SAFETY: the consumer passes the stream and a struct to fill.
    unsafe { enter::<S, I, _>(this, out, |state, _| guarded(|| state.schema.view())) }
}

unsafe extern "C" fn get_next<S, I>(this: *mut S, out: *mut S::Batch) -> c_int
where
    S: RawStream,
    I: Iterator<Item = Result<BatchOf<S>, Error>>,
{
    // SAFETY: the consumer passes the stream and a struct to fill.
    unsafe { enter::<S, I, _>(this, out, |state, stream| state.next(stream)) }
}

unsafe extern "C" fn get_last_error<S: RawStream, I>(this: *mut S) -> *const c_char {
    // SAFETY: the consumer passes the stream or NULL.
    unsafe {
        let state = this
            .as_ref()
            .and_then(|stream| stream.callbacks().private_data.cast::<Export<I>>().as_ref());
        let text = state.and_then(|state| state.last_error.as_deref());
        text.map_or(std::ptr::null(), |text| text.as_ptr())
    }
}

unsafe extern "C" fn release<S: RawStream, I>(this: *mut S) {
    // SAFETY: the consumer passes the stream, and the state is taken once.
    unsafe {
        let mut callbacks = (*this).callbacks();
        let data = std::mem::replace(&mut callbacks.private_data, std::ptr::null_mut());
        *this = S::new((*this).device_type(), callbacks, None);
        let state = data.cast::<Export<I>>();
        if !state.is_null() {
            discard(Box::from_raw(state));
        }
    }
}

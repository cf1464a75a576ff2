// SPDX-License-Identifier: Apache-2.0

//! Foreign streams as iterators.

use std::ffi::{c_char, c_int};

use fletching_abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType,
    ArrowSchema,
};

use crate::error::Error;
use crate::handover::Handover;
use crate::options::Options;
use crate::owner::{Owner, Schema};
use crate::raw::Raw;

/// A stream of batches: [`ArrowArrayStream`] or [`ArrowDeviceArrayStream`]. Sealed.
pub trait RawStream: Raw + sealed::RawStream {}

impl RawStream for ArrowArrayStream {}
impl RawStream for ArrowDeviceArrayStream {}

pub(crate) mod sealed {
    use super::*;

    pub(crate) type Pull<S, Out> = unsafe extern "C" fn(*mut S, *mut Out) -> c_int;
    pub(crate) type LastError<S> = unsafe extern "C" fn(*mut S) -> *const c_char;

    /// The members of a stream, except its device type and its release callback.
    #[derive(Debug)]
    pub struct Callbacks<S: RawStream> {
        pub get_schema: Option<Pull<S, ArrowSchema>>,
        pub get_next: Option<Pull<S, S::Batch>>,
        pub get_last_error: Option<LastError<S>>,
        pub private_data: *mut std::ffi::c_void,
    }

    pub trait RawStream: crate::raw::Raw {
        type Batch: crate::raw::Nested<Base = ArrowArray>;
        const NAME: &'static str;
        const CALLBACKS_SET: &'static str;
        fn new(
            device_type: ArrowDeviceType,
            callbacks: Callbacks<Self>,
            release: Option<unsafe extern "C" fn(*mut Self)>,
        ) -> Self;
        fn device_type(&self) -> ArrowDeviceType;
        fn callbacks(&self) -> Callbacks<Self>;
        fn check_batch(&self, batch: &Self::Batch, options: &mut Options) -> Result<(), Error>;
    }
}

macro_rules! raw_stream {
    ($stream:ident of $batch:ident, $rule:literal, $device_type:expr, $check:expr, $($field:ident)?) => {
        impl sealed::RawStream for $stream {
            type Batch = $batch;
            const NAME: &'static str = stringify!($stream);
            const CALLBACKS_SET: &'static str = $rule;
            fn new(
                _device_type: ArrowDeviceType,
                callbacks: sealed::Callbacks<Self>,
                release: Option<unsafe extern "C" fn(*mut Self)>,
            ) -> Self {
                Self {
                    $($field: _device_type,)?
                    get_schema: callbacks.get_schema,
                    get_next: callbacks.get_next,
                    get_last_error: callbacks.get_last_error,
                    release,
                    private_data: callbacks.private_data,
                }
            }
            fn device_type(&self) -> ArrowDeviceType {
                $device_type(self)
            }
            fn callbacks(&self) -> sealed::Callbacks<Self> {
                sealed::Callbacks {
                    get_schema: self.get_schema,
                    get_next: self.get_next,
                    get_last_error: self.get_last_error,
                    private_data: self.private_data,
                }
            }
            fn check_batch(&self, batch: &$batch, options: &mut Options) -> Result<(), Error> {
                $check(self, batch, options)
            }
        }
    };
}

raw_stream! {
    ArrowArrayStream of ArrowArray, "stream.callbacks-set",
    |_: &Self| ArrowDeviceType::CPU, |_: &Self, _: &ArrowArray, _: &mut Options| Ok(()),
}

raw_stream! {
    ArrowDeviceArrayStream of ArrowDeviceArray, "device-stream.callbacks-set",
    |stream: &Self| stream.device_type,
    |stream: &Self, batch: &ArrowDeviceArray, options: &mut Options| {
        options.check_batch(batch, stream.device_type)
    },
    device_type
}

/// The owner type of a stream's batches.
pub type BatchOf<S> = Owner<<S as sealed::RawStream>::Batch>;

impl<S: RawStream> Owner<S> {
    /// The type of the device that the batches are on, or 0 if the stream is released.
    #[must_use]
    pub fn device_type(&self) -> ArrowDeviceType {
        self.live()
            .map_or(ArrowDeviceType(0), sealed::RawStream::device_type)
    }

    /// Returns an iterator over the batches that handles warnings according to `options`.
    #[must_use]
    pub fn reader(mut self, options: Options) -> StreamReader<S> {
        // SAFETY: guaranteed by the contract of `from_raw` and `out`.
        unsafe { Handover::Import.validate(S::KIND, self.as_mut_ptr()) };
        StreamReader {
            stream: self,
            options,
            failure: None,
            ended: false,
        }
    }
}

/// Iterates over the batches. Warnings are dropped.
impl<S: RawStream> IntoIterator for Owner<S> {
    type Item = Result<BatchOf<S>, Error>;
    type IntoIter = StreamReader<S>;

    fn into_iter(self) -> StreamReader<S> {
        self.reader(Options::default())
    }
}

/// Reads a stream batch by batch. Ends at the end of the stream, or after the first error.
///
/// After an error, [`schema`](Self::schema) returns that error again, and no callback is called. An
/// error returned by `schema` is also the next item. Batches and schemas outlive the reader, which
/// releases the stream on drop.
///
/// Errors: the errno value that the stream returned, with the message from `get_last_error`; EIO if
/// the value is not positive. EINVAL, with the id of the rule, for a callback that is NULL and for
/// a batch whose memory is not accessible from the stream's device type.
///
/// Warnings: `device-stream.one-device-type` for a batch of another device type whose memory is
/// accessible from every device that can access the stream's; `device-array.reserved-zero`.
///
/// Texts: C stream interface, C device stream interface.
#[derive(Debug)]
pub struct StreamReader<S: RawStream> {
    stream: Owner<S>,
    options: Options,
    failure: Option<Error>,
    ended: bool,
}

impl<S: RawStream> StreamReader<S> {
    /// Returns the schema of all batches. Can be called at any time and repeatedly.
    pub fn schema(&mut self) -> Result<Schema, Error> {
        self.unless_dead(Self::pull_schema)
    }

    /// The type of the device that the batches are on.
    #[must_use]
    pub fn device_type(&self) -> ArrowDeviceType {
        self.stream.device_type()
    }

    fn unless_dead<T>(
        &mut self,
        pull: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        pull(self).inspect_err(|error| self.failure = Some(error.clone()))
    }

    fn pull_schema(&mut self) -> Result<Schema, Error> {
        let schema: Schema = self.call("get_schema", |stream| stream.get_schema)?;
        if schema.is_released() {
            return Err(Error::invalid(
                "get_schema: released schema with return value 0: expected a live schema",
            ));
        }
        Ok(schema)
    }

    fn pull_batch(&mut self) -> Result<BatchOf<S>, Error> {
        let batch: BatchOf<S> = self.call("get_next", |stream| stream.get_next)?;
        if !batch.is_released() {
            self.stream
                .as_raw()
                .check_batch(batch.as_raw(), &mut self.options)?;
        }
        Ok(batch)
    }

    fn call<Out: Raw>(
        &mut self,
        name: &str,
        callback: impl Fn(&sealed::Callbacks<S>) -> Option<sealed::Pull<S, Out>>,
    ) -> Result<Owner<Out>, Error> {
        let Some(stream) = self.stream.live() else {
            return Err(Error::invalid("stream: released: expected a live stream"));
        };
        let callbacks = stream.callbacks();
        let Some(pull) = callback(&callbacks) else {
            let message = format!(
                "{}.{name}: NULL: expected a callback; hint: fix the producer",
                S::NAME
            );
            return Err(Error::broken_rule(S::CALLBACKS_SET, &message));
        };
        let stream = self.stream.as_mut_ptr();
        let mut out = Out::zeroed();
        // SAFETY: the stream is not released, and the callbacks belong to it. After a failed call,
        // `out` is not released; after a successful one, it conforms to the specification.
        unsafe {
            match pull(stream, &mut out) {
                0 => Ok(Owner::new(out)),
                code => {
                    let text = callbacks.get_last_error;
                    let message = text.map_or(std::ptr::null(), |text| text(stream));
                    Err(Error::foreign(code, message))
                }
            }
        }
    }
}

impl<S: RawStream> Iterator for StreamReader<S> {
    type Item = Result<BatchOf<S>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let batch = self.unless_dead(Self::pull_batch);
        self.ended = batch.as_ref().map_or(true, Owner::is_released);
        match batch {
            Ok(batch) if batch.is_released() => None,
            batch => Some(batch),
        }
    }
}

impl<S: RawStream> std::iter::FusedIterator for StreamReader<S> {}

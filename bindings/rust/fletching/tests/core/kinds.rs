// SPDX-License-Identifier: Apache-2.0

//! The two kinds of streams, for what both have to do.

use std::ffi::{c_char, c_int, CString};

use fletching::abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType,
    ArrowSchema,
};
use fletching::{
    Array, ArrayStream, BatchOf, DeviceArray, DeviceArrayStream, Error, Owner, RawStream, Schema,
    StreamReader,
};

use crate::script::{
    fails, last_error, pull, pull_schema, release_device_stream, release_stream, Play,
};

/// The two kinds of streams, for what both have to do.
pub trait Kind: RawStream {
    fn foreign(play: &Play) -> Owner<Self>;
    fn of<I>(schema: Schema, batches: I) -> Result<Owner<Self>, Error>
    where
        I: IntoIterator<Item = Result<Array, Error>, IntoIter: Send + 'static>;
    fn length(batch: &BatchOf<Self>) -> i64;
    /// Calls get_schema, get_next, get_last_error, release of a stream.
    fn call_schema(stream: &mut Self) -> Result<Schema, c_int>;
    fn call_next(stream: &mut Self) -> Result<BatchOf<Self>, c_int>;
    fn get_next_null(stream: &mut Self) -> c_int;
    fn get_schema_of_null() -> c_int;
    fn last_error(stream: &mut Self) -> Option<CString>;
    fn last_error_address(stream: &mut Self) -> *const c_char;
    fn release(stream: &mut Self);
    fn without_get_schema(stream: Owner<Self>) -> Owner<Self>;
    fn without_get_next(stream: Owner<Self>) -> Owner<Self>;
    fn without_last_error(stream: Owner<Self>) -> Owner<Self>;
    fn has_callbacks(stream: &Self) -> bool;
}

macro_rules! kind {
    ($stream:ident of $batch:ident, $release:ident, $($device_type:ident)?; $fill:expr; $of:expr) => {
        impl Kind for $stream {
            fn foreign(play: &Play) -> Owner<Self> {
                unsafe extern "C" fn get_schema(this: *mut $stream, out: *mut ArrowSchema) -> c_int {
                    // SAFETY: the stream of a script.
                    pull_schema(unsafe { &Play::behind((*this).private_data) }, out)
                }
                unsafe extern "C" fn get_next(this: *mut $stream, out: *mut $batch) -> c_int {
                    // SAFETY: the stream of a script.
                    let play = unsafe { Play::behind((*this).private_data) };
                    pull(&play, out, &$batch::zeroed(), $fill)
                }
                unsafe extern "C" fn get_last_error(this: *mut $stream) -> *const c_char {
                    // SAFETY: the stream of a script.
                    last_error(unsafe { &Play::behind((*this).private_data) })
                }
                let mut raw = $stream::zeroed();
                $(raw.$device_type = play.get(|script| script.device_type);)?
                raw.get_schema = Some(get_schema);
                raw.get_next = Some(get_next);
                raw.get_last_error = Some(get_last_error);
                raw.release = Some($release);
                raw.private_data = play.private_data();
                // SAFETY: the script does what the test asks.
                unsafe { Owner::from_raw(raw) }
            }
            fn of<I>(schema: Schema, batches: I) -> Result<Owner<Self>, Error>
            where
                I: IntoIterator<Item = Result<Array, Error>, IntoIter: Send + 'static>,
            {
                #[allow(clippy::redundant_closure_call, reason = "of a macro")]
                ($of)(schema, batches.into_iter())
            }
            fn length(batch: &BatchOf<Self>) -> i64 {
                batch.length()
            }
            fn call_schema(stream: &mut Self) -> Result<Schema, c_int> {
                let mut schema = Schema::default();
                // SAFETY: a stream that is ours.
                match unsafe { stream.get_schema.unwrap()(stream, schema.out()) } {
                    0 => Ok(schema),
                    code => Err(code),
                }
            }
            fn call_next(stream: &mut Self) -> Result<BatchOf<Self>, c_int> {
                let mut batch = BatchOf::<Self>::default();
                // SAFETY: a stream that is ours.
                match unsafe { stream.get_next.unwrap()(stream, batch.out()) } {
                    0 => Ok(batch),
                    code => Err(code),
                }
            }
            fn get_next_null(stream: &mut Self) -> c_int {
                // SAFETY: NULL is looked for.
                unsafe { stream.get_next.unwrap()(stream, std::ptr::null_mut()) }
            }
            fn get_schema_of_null() -> c_int {
                let mut stream = Self::of(crate::foreign::bare_schema(|_| ()), []).unwrap().into_raw();
                let mut out = ArrowSchema::zeroed();
                // SAFETY: NULL is looked for.
                let code = unsafe {
                    assert!(stream.get_last_error.unwrap()(std::ptr::null_mut()).is_null());
                    stream.get_schema.unwrap()(std::ptr::null_mut(), &mut out)
                };
                Self::release(&mut stream);
                code
            }
            fn last_error(stream: &mut Self) -> Option<CString> {
                let text = Self::last_error_address(stream);
                // SAFETY: the text of a stream of ours.
                (!text.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(text) }.into())
            }
            fn last_error_address(stream: &mut Self) -> *const c_char {
                // SAFETY: a stream that is ours.
                unsafe { stream.get_last_error.unwrap()(stream) }
            }
            fn release(stream: &mut Self) {
                let release = stream.release.unwrap();
                // SAFETY: a stream that is ours. The callback looks for a released one.
                unsafe {
                    release(stream);
                    assert!(stream.is_released());
                    release(stream);
                }
            }
            fn without_get_schema(stream: Owner<Self>) -> Owner<Self> {
                let mut raw = stream.into_raw();
                raw.get_schema = None;
                // SAFETY: a reader notices.
                unsafe { Owner::from_raw(raw) }
            }
            fn without_get_next(stream: Owner<Self>) -> Owner<Self> {
                let mut raw = stream.into_raw();
                raw.get_next = None;
                // SAFETY: a reader notices.
                unsafe { Owner::from_raw(raw) }
            }
            fn without_last_error(stream: Owner<Self>) -> Owner<Self> {
                let mut raw = stream.into_raw();
                raw.get_last_error = None;
                // SAFETY: a reader notices.
                unsafe { Owner::from_raw(raw) }
            }
            fn has_callbacks(stream: &Self) -> bool {
                stream.get_schema.is_some()
                    && stream.get_next.is_some()
                    && stream.get_last_error.is_some()
                    && stream.release.is_some()
            }
        }
    };
}

kind! {
    ArrowArrayStream of ArrowArray, release_stream,;
    |array, _| array.into_raw();
    ArrayStream::from_batches
}

kind! {
    ArrowDeviceArrayStream of ArrowDeviceArray, release_device_stream, device_type;
    |array, step| {
        let mut raw = DeviceArray::from(array).into_raw();
        raw.device_type = step.device_type;
        raw.reserved[2] = step.reserved;
        raw
    };
    |schema, batches: I::IntoIter| DeviceArrayStream::from_batches(
        schema,
        ArrowDeviceType::CPU,
        batches.map(|batch| batch.map(DeviceArray::from)),
    )
}

pub fn reader<S: Kind>(play: &Play) -> StreamReader<S> {
    S::foreign(play).into_iter()
}

/// How a foreign text arrives in an error.
#[cfg_attr(miri, allow(dead_code))]
pub fn shown(text: &[u8]) -> String {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let play = Play::new([fails(libc::EIO)]);
    play.get(|script| script.text = CString::new(text).ok());
    let error = reader::<ArrowArrayStream>(&play)
        .next()
        .unwrap()
        .unwrap_err();
    error.message().into()
}

// SPDX-License-Identifier: Apache-2.0

//! A device stream that passes on what another one gives, under callbacks of Rust.

use std::ffi::{c_char, c_int, CStr, CString};

use fletching_abi::{ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema};

use crate::check::{check_array, check_schema, check_stream};
use crate::error::{guard, Error};
use crate::forward::{count_export, count_release, forward_array, forward_tree};
use crate::owned::{Owned, Release};

/// Looks at each batch as it passes through; an error of it becomes an error of the stream.
pub type Inspect = Box<dyn FnMut(&ArrowSchema, &ArrowDeviceArray) -> Result<(), Error>>;

/// What stands behind a stream of ours.
struct Pipe {
    source: Owned<ArrowDeviceArrayStream>,
    schema: Owned<ArrowSchema>,
    inspect: Inspect,
    last_error: Option<CString>,
}

/// Moves `source` in and gives a stream with the same schema, batches and errors.
///
/// # Safety
///
/// The callbacks of `source`, and what it gives, keep to the specification where they are not NULL.
pub unsafe fn forward_stream(
    source: Owned<ArrowDeviceArrayStream>,
    inspect: Inspect,
) -> Result<Owned<ArrowDeviceArrayStream>, Error> {
    check_stream(&source)?;
    let mut pipe = Pipe {
        source,
        schema: Owned::zeroed(),
        inspect,
        last_error: None,
    };
    // SAFETY: the callbacks are there.
    let mut copy = unsafe {
        pipe.schema = pipe.pull_schema()?;
        // Plain data; what owns something is replaced below.
        std::ptr::read(&*pipe.source)
    };
    copy.get_schema = Some(get_schema);
    copy.get_next = Some(get_next);
    copy.get_last_error = Some(get_last_error);
    copy.release = Some(release);
    copy.private_data = Box::into_raw(Box::new(pipe)).cast();
    count_export();
    // SAFETY: the callbacks are ours, and this is the only owner.
    Ok(unsafe { Owned::from_raw(copy) })
}

impl Pipe {
    unsafe fn pull_schema(&mut self) -> Result<Owned<ArrowSchema>, Error> {
        // SAFETY: a callback of the source; what it gives is checked before it is walked.
        unsafe {
            let schema = self.pull(self.source.get_schema)?;
            check_schema(&schema)?;
            Ok(schema)
        }
    }

    /// The next batch, inspected; a released one at the end.
    unsafe fn pull_batch(&mut self) -> Result<Owned<ArrowDeviceArray>, Error> {
        // SAFETY: a callback of the source; what it gives is checked before it is walked.
        unsafe {
            let batch = self.pull(self.source.get_next)?;
            if batch.is_released() {
                return Ok(batch);
            }
            check_array(&self.schema, &batch.array)?;
            (self.inspect)(&self.schema, &batch)?;
            Ok(forward_array(batch))
        }
    }

    unsafe fn pull<T: Release>(
        &mut self,
        callback: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream, *mut T) -> c_int>,
    ) -> Result<Owned<T>, Error> {
        let callback = callback.ok_or_else(|| Error::invalid("stream has lost a callback"))?;
        let mut out = T::default();
        // SAFETY: the stream is alive, `out` may be written to, and after 0 it is filled or released.
        // What a failed call left there is not ours to release.
        unsafe {
            match callback(&mut *self.source, &mut out) {
                0 => Ok(Owned::from_raw(out)),
                code => Err(Error {
                    code,
                    text: self.source_error(),
                }),
            }
        }
    }

    /// The text after a failed call.
    unsafe fn source_error(&mut self) -> Option<CString> {
        let get_last_error = self.source.get_last_error?;
        // SAFETY: the stream is alive; a text that is not NULL ends and lives until the next call.
        unsafe {
            let text = get_last_error(&mut *self.source);
            (!text.is_null()).then(|| CStr::from_ptr(text).to_owned())
        }
    }
}

/// The pipe of a stream of ours; an error when it is NULL or released.
unsafe fn pipe_of<'a>(this: *mut ArrowDeviceArrayStream) -> Result<&'a mut Pipe, Error> {
    // SAFETY: NULL, or a stream that `forward_stream` filled; its callers take turns.
    unsafe {
        let stream = this.as_ref().filter(|stream| !stream.is_released());
        let pipe = stream.and_then(|stream| stream.private_data.cast::<Pipe>().as_mut());
        pipe.ok_or_else(|| Error::invalid("stream is released"))
    }
}

/// Runs `work` for a caller in C and keeps its error for get_last_error.
unsafe fn answer<T: Release>(
    this: *mut ArrowDeviceArrayStream,
    out: *mut T,
    work: impl FnOnce(&mut Pipe) -> Result<Owned<T>, Error>,
) -> c_int {
    // SAFETY: the caller passes a stream of ours.
    let pipe = match unsafe { pipe_of(this) } {
        Ok(pipe) => pipe,
        Err(error) => return error.code,
    };
    pipe.last_error = None;
    let outcome = guard(|| {
        if out.is_null() {
            return Err(Error::invalid("out is NULL"));
        }
        // SAFETY: what stands in `out` is nobody's, so it is overwritten.
        work(pipe).map(|given| unsafe { out.write(given.into_raw()) })
    });
    outcome.map_or_else(
        |error| {
            pipe.last_error = error.text;
            error.code
        },
        |()| 0,
    )
}

unsafe extern "C" fn get_schema(this: *mut ArrowDeviceArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: called on a stream of ours; the schema was checked when it was pulled.
    unsafe {
        answer(this, out, |pipe| {
            pipe.pull_schema().map(|schema| forward_tree(schema))
        })
    }
}

unsafe extern "C" fn get_next(
    this: *mut ArrowDeviceArrayStream,
    out: *mut ArrowDeviceArray,
) -> c_int {
    // SAFETY: called on a stream of ours.
    unsafe { answer(this, out, |pipe| pipe.pull_batch()) }
}

unsafe extern "C" fn get_last_error(this: *mut ArrowDeviceArrayStream) -> *const c_char {
    // SAFETY: called on a stream of ours.
    let pipe = unsafe { pipe_of(this) };
    let text = pipe.ok().and_then(|pipe| pipe.last_error.as_deref());
    text.map_or(std::ptr::null(), CStr::as_ptr)
}

unsafe extern "C" fn release(this: *mut ArrowDeviceArrayStream) {
    // A panic would come out of a foreign release, which cannot panic; there is nobody to tell.
    let _ = guard(|| {
        // SAFETY: called on a stream of ours, once.
        unsafe {
            let pipe: *mut Pipe = pipe_of(this)?;
            (*this).release = None;
            drop(Box::from_raw(pipe));
        }
        count_release();
        Ok(())
    });
}

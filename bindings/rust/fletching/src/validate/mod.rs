// SPDX-License-Identifier: Apache-2.0

//! The validation layer: checks arrays, streams and the handlers of async streams against the rules
//! of the C interfaces. Feature `validate`.
//!
//! The environment variable `FLETCHING_VALIDATE` adds the layer to all imports and exports of the
//! program: see `docs/validate.md` of the repository.
//!
//! The layer is in `libfletching`, which the first call loads: from the path in the environment
//! variable `FLETCHING_LIBRARY` if it is set, otherwise by name. It stays loaded. If loading fails,
//! the next call tries again.
//!
//! Errors of all functions: ENOENT if the library is not found, ENOSYS if it lacks a function,
//! EINVAL if its struct layout differs.

mod library;
pub(crate) mod switch;

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::fmt;
use std::ptr;

use fletching_abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema,
};

use crate::error::{guarded, printable_c, Error};
use crate::owner::{Owner, Schema};
use library::{run, Message};

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The id of the rule, such as `stream.callbacks-set`.
    pub rule: String,
    /// `error`, `warning` or `note`.
    pub severity: String,
    /// The party that broke the rule: `producer`, `consumer`, or `both` if unknown.
    pub party: String,
    /// The path of the struct, such as `get_next[2].array.children[1]`.
    pub path: String,
    /// The expected and the actual value.
    pub message: String,
    /// The last calls on a stream and their results, one per line.
    pub history: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (rule {})", self.path, self.message, self.rule)
    }
}

/// The extent of the checks. Each level includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(i32);

impl Level {
    /// The order of the calls on a stream. For an array, the same as [`SHAPE`](Self::SHAPE).
    pub const PROTOCOL: Self = Self(0);
    /// The members of schemas and arrays, and each array against its schema. Reads no buffers.
    pub const SHAPE: Self = Self(1);

    /// Additionally the buffers in host-readable memory, after waiting for the array's event. Never
    /// reads other device memory. A failed wait is the finding `limit.event`.
    ///
    /// # Safety
    ///
    /// Every buffer of a checked array in host memory is as long as the structs and the offsets
    /// specify.
    #[must_use]
    pub const unsafe fn data() -> Self {
        Self(2)
    }

    /// Adds stress to the level.
    #[must_use]
    pub const fn with(self, stress: Stress) -> Validation {
        Validation {
            level: self,
            stress,
        }
    }
}

/// Unusual behavior that the rules allow. It exposes peers that rely on the usual behavior; a peer
/// that breaks a rule can crash. Combine with `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stress(u32);

impl Stress {
    /// Overwrites released structs, and strings and metadata after their lifetime.
    pub const POISON: Self = Self(1);
    /// Moves structs to other addresses. A later write to the old address is a finding.
    pub const MOVE: Self = Self(2);
    /// Sets `private_data` to a value that is not an address.
    pub const PRIVATE_DATA: Self = Self(4);
    /// Runs the producer's release callbacks on another thread.
    pub const THREAD: Self = Self(8);
    /// Runs the producer's release callbacks after the next call on the stream.
    pub const DELAY: Self = Self(16);
    /// Calls [`report_live`] when the program exits.
    pub const REPORT_AT_EXIT: Self = Self(32);
}

impl std::ops::BitOr for Stress {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The level and stress of a validated stream: a [`Level`], or [`Level::with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validation {
    level: Level,
    stress: Stress,
}

impl From<Level> for Validation {
    fn from(level: Level) -> Self {
        level.with(Stress::default())
    }
}

/// An array that can be checked: [`ArrowArray`] or [`ArrowDeviceArray`]. Sealed.
pub trait Checked: sealed::Function {}

/// A stream that can be validated: [`ArrowArrayStream`] or [`ArrowDeviceArrayStream`]. Sealed.
pub trait Validated: sealed::Function {}

mod sealed {
    /// A struct, and the library function that takes it.
    pub trait Function: crate::raw::Raw {
        const NAME: &'static std::ffi::CStr;
    }
}

macro_rules! functions {
    ($($raw:ident is $trait:ident by $name:literal;)*) => {
        $(
            impl $trait for $raw {}
            impl sealed::Function for $raw {
                const NAME: &'static CStr = $name;
            }
        )*
    };
}

functions! {
    ArrowArray is Checked by c"FletchingCheckArray";
    ArrowDeviceArray is Checked by c"FletchingCheckDeviceArray";
    ArrowArrayStream is Validated by c"FletchingValidateStream";
    ArrowDeviceArrayStream is Validated by c"FletchingValidateDeviceStream";
}

/// Checks an array against its schema. Returns at most 64 findings, plus one for a failed wait;
/// empty for a correct array.
///
/// Errors: see the module; ENOMEM.
pub fn check<R: Checked>(
    array: &Owner<R>,
    schema: &Schema,
    level: Level,
) -> Result<Vec<Finding>, Error> {
    const OPERATION: &str = "check";
    type Check<R> = unsafe extern "C" fn(
        *const ArrowSchema,
        *const R,
        *const Options,
        *mut i64,
        *mut Message,
    ) -> c_int;
    // SAFETY: the types of both functions match the header.
    let check: Check<R> =
        unsafe { library::function(R::NAME) }.map_err(|error| error.named(OPERATION))?;
    let findings = RefCell::new(Vec::new());
    let add = |finding| findings.borrow_mut().push(finding);
    let report: Reporter = &add;
    let options = Options::new(level.into(), &report);
    // SAFETY: guaranteed by the contract of `Owner::from_raw` and `Level::data`; `report` is called
    // only during this call, on this thread.
    run(|message| unsafe {
        check(
            schema.as_raw(),
            array.as_raw(),
            &options,
            ptr::null_mut(),
            message,
        )
    })
    .map_err(|error| error.named(OPERATION))?;
    Ok(findings.into_inner())
}

/// Wraps a stream: the returned stream validates every call and forwards it. `report` receives each
/// finding on the thread of the call that broke the rule. `report` must not call into the stream
/// and may be called concurrently; its panics are caught. It is never dropped, because a late call
/// on a released batch also reports.
///
/// Errors: see the module; EINVAL for a released stream, ENOMEM. After an error, the stream and
/// `report` are dropped.
pub fn validate_stream<S: Validated>(
    mut stream: Owner<S>,
    how: impl Into<Validation>,
    report: impl Fn(Finding) + Send + Sync + 'static,
) -> Result<Owner<S>, Error> {
    const OPERATION: &str = "validate_stream";
    type Validate<S> = unsafe extern "C" fn(*mut S, *const Options, *mut Message) -> c_int;
    // SAFETY: the types of both functions match the header.
    let validate: Validate<S> =
        unsafe { library::function(S::NAME) }.map_err(|error| error.named(OPERATION))?;
    // SAFETY: guaranteed by the contract of `Owner::from_raw` and `Level::data`.
    keep(how.into(), report, |options, message| unsafe {
        validate(stream.as_mut_ptr(), options, message)
    })
    .map_err(|error| error.named(OPERATION))?;
    Ok(stream)
}

/// Wraps the handler of an async consumer: the returned handler validates every call of the
/// producer and forwards it. Calls of the consumer to its producer are validated too. For `report`
/// see [`validate_stream`].
///
/// Errors: see the module; ENOMEM. After an error, the handler and `report` are dropped.
#[cfg(feature = "async")]
pub fn validate_handler(
    handler: crate::AsyncHandler,
    how: impl Into<Validation>,
    report: impl Fn(Finding) + Send + Sync + 'static,
) -> Result<crate::AsyncHandler, Error> {
    use fletching_abi::ArrowAsyncDeviceStreamHandler as Handler;

    const OPERATION: &str = "validate_handler";
    type Validate = unsafe extern "C" fn(*mut *mut Handler, *const Options, *mut Message) -> c_int;
    // SAFETY: the type matches the header.
    let validate: Validate = unsafe { library::function(c"FletchingValidateAsyncHandler") }
        .map_err(|error| error.named(OPERATION))?;
    let mut raw = handler.as_ptr();
    // SAFETY: guaranteed by the contract of `AsyncHandler::from_raw` and `Level::data`.
    keep(how.into(), report, |options, message| unsafe {
        validate(&mut raw, options, message)
    })
    .map_err(|error| error.named(OPERATION))?;
    std::mem::forget(handler);
    // SAFETY: the library has taken the handler and never writes NULL.
    Ok(unsafe { crate::AsyncHandler::from_raw(ptr::NonNull::new_unchecked(raw)) })
}

/// Calls a library function with options whose `report` is never dropped, unless the call fails.
fn keep(
    how: Validation,
    report: impl Fn(Finding) + Send + Sync + 'static,
    validate: impl FnOnce(&Options, *mut Message) -> c_int,
) -> Result<(), Error> {
    let report = Box::into_raw(Box::new(report));
    // SAFETY: the box lives until the process exits, or until the error below.
    let context: *mut Reporter<'static> = Box::into_raw(Box::new(unsafe { &*report }));
    // SAFETY: as above.
    let options = Options::new(how, unsafe { &*context });
    run(|message| validate(&options, message)).inspect_err(|_| {
        // SAFETY: the library keeps neither of them after an error.
        unsafe {
            drop(Box::from_raw(context));
            drop(Box::from_raw(report));
        }
    })
}

/// Reports every live schema, batch, handler and task of the validated streams to the `report` of
/// its stream. Returns their number. Call it when the consumer is done.
///
/// Errors: see the module; ENOMEM.
pub fn report_live() -> Result<u64, Error> {
    const OPERATION: &str = "report_live";
    // SAFETY: the type matches the header.
    let live: unsafe extern "C" fn() -> i64 =
        unsafe { library::function(c"FletchingValidateLive") }
            .map_err(|error| error.named(OPERATION))?;
    // SAFETY: the function has no requirements.
    u64::try_from(unsafe { live() })
        .map_err(|_| Error::new(crate::errno::ENOMEM, "no memory").named(OPERATION))
}

// --- The structs of fletching/validate.h --------------------------------------------------------

type Reporter<'a> = &'a dyn Fn(Finding);

#[repr(C)]
struct Options {
    size: usize,
    level: i32,
    report: unsafe extern "C" fn(*const Reporter<'static>, *const Texts),
    context: *const c_void,
    stress: u32,
}

impl Options {
    fn new(how: Validation, report: &Reporter<'_>) -> Self {
        Self {
            size: size_of::<Self>(),
            level: how.level.0,
            report: report_finding,
            context: ptr::from_ref(report).cast(),
            stress: how.stress.0,
        }
    }
}

/// `struct FletchingFinding`.
#[repr(C)]
struct Texts {
    rule: *const c_char,
    severity: *const c_char,
    party: *const c_char,
    path: *const c_char,
    message: *const c_char,
    history: *const c_char,
}

unsafe extern "C" fn report_finding(report: *const Reporter<'static>, texts: *const Texts) {
    // A panic of the report cannot unwind through C.
    let _ = guarded(|| {
        // SAFETY: the context is the one in the options, and the strings are valid until this
        // function returns.
        let (report, texts) = unsafe { (&*report, &*texts) };
        // SAFETY: as above.
        let copy = |text| unsafe { printable_c(text) };
        report(Finding {
            rule: copy(texts.rule),
            severity: copy(texts.severity),
            party: copy(texts.party),
            path: copy(texts.path),
            message: copy(texts.message),
            history: copy(texts.history),
        });
        Ok(())
    });
}

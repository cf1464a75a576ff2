// SPDX-License-Identifier: Apache-2.0

//! The validation layer: checks arrays, streams and the handlers of async streams against the rules
//! of the C interfaces. Feature `validate`.
//!
//! The layer is in `libfletching`, which the first call loads: from the path in the environment
//! variable `FLETCHING_LIBRARY` if it is set, else by the name of the library. It stays loaded. A
//! call that fails to load it tries again the next time.
//!
//! Errors of all functions: ENOENT if the library is not found, ENOSYS if it lacks a function,
//! EINVAL if it was built with structs of another layout.

mod library;

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
    /// The id of the rule: `stream.callbacks-set`.
    pub rule: String,
    /// `error` or `warning`.
    pub severity: String,
    /// Who broke the rule: `producer` or `consumer`; `both` if not known.
    pub party: String,
    /// The struct: `get_next[2].array.children[1]`.
    pub path: String,
    /// The expected and the actual value.
    pub message: String,
    /// The last calls on a stream with their results, one per line.
    pub history: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (rule {})", self.path, self.message, self.rule)
    }
}

/// How much is checked. Each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(i32);

impl Level {
    /// The order of the calls on a stream. For an array, the same as [`SHAPE`](Self::SHAPE).
    pub const PROTOCOL: Self = Self(0);
    /// The members of schemas and arrays, and each array against its schema. Reads no buffer.
    pub const SHAPE: Self = Self(1);

    /// Also the buffers in memory that the host can read, after a wait for the event of the array.
    /// Never reads other device memory. A failed wait is the finding `limit.event`.
    ///
    /// # Safety
    ///
    /// Each buffer of a checked array in host memory is as long as the structs and the offsets say.
    #[must_use]
    pub const unsafe fn data() -> Self {
        Self(2)
    }

    /// The level with stress.
    #[must_use]
    pub const fn with(self, stress: Stress) -> Validation {
        Validation {
            level: self,
            stress,
        }
    }
}

/// Unusual behavior that the rules allow. It shows the faults of a peer that relies on the usual
/// behavior; a peer that breaks a rule can crash. Combine by `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stress(u32);

impl Stress {
    /// Overwrites released structs, and texts and metadata after their lifetime.
    pub const POISON: Self = Self(1);
    /// Moves structs to other addresses. A later write to the old one is a finding.
    pub const MOVE: Self = Self(2);
    /// Makes `private_data` no address.
    pub const PRIVATE_DATA: Self = Self(4);
    /// Runs the producer's release callbacks on another thread.
    pub const THREAD: Self = Self(8);
    /// Runs them after the next call on the stream.
    pub const DELAY: Self = Self(16);
    /// Does what [`report_live`] does, when the program exits.
    pub const REPORT_AT_EXIT: Self = Self(32);
}

impl std::ops::BitOr for Stress {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a stream is validated: a [`Level`], or [`Level::with`].
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
    /// A struct, and the function of the library that takes it.
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

/// Compares an array with its schema. Returns at most 64 findings, and one more for a failed wait;
/// none for a correct array.
///
/// Errors: see the module; ENOMEM.
pub fn check<R: Checked>(
    array: &Owner<R>,
    schema: &Schema,
    level: Level,
) -> Result<Vec<Finding>, Error> {
    type Check<R> = unsafe extern "C" fn(
        *const ArrowSchema,
        *const R,
        *const Options,
        *mut i64,
        *mut Message,
    ) -> c_int;
    // SAFETY: as the header declares both functions.
    let check: Check<R> = unsafe { library::function(R::NAME) }?;
    let findings = RefCell::new(Vec::new());
    let add = |finding| findings.borrow_mut().push(finding);
    let report: Reporter = &add;
    let options = Options::new(level.into(), &report);
    // SAFETY: see Owner::from_raw and Level::data; the reports come from this thread, within the call.
    run(|message| unsafe {
        check(
            schema.as_raw(),
            array.as_raw(),
            &options,
            ptr::null_mut(),
            message,
        )
    })?;
    Ok(findings.into_inner())
}

/// Wraps a stream: the returned one validates every call, and passes it on. `report` receives each
/// finding on the thread of the call that broke the rule; it must not call into the stream, two
/// threads may call it at once, and a panic in it goes no further. It is never dropped, because a
/// late call on a released batch reports as well.
///
/// Errors: see the module; EINVAL for a released stream, ENOMEM. An error drops the stream and the
/// report.
pub fn validate_stream<S: Validated>(
    mut stream: Owner<S>,
    how: impl Into<Validation>,
    report: impl Fn(Finding) + Send + Sync + 'static,
) -> Result<Owner<S>, Error> {
    type Validate<S> = unsafe extern "C" fn(*mut S, *const Options, *mut Message) -> c_int;
    // SAFETY: as the header declares both functions.
    let validate: Validate<S> = unsafe { library::function(S::NAME) }?;
    // SAFETY: see Owner::from_raw and Level::data.
    keep(how.into(), report, |options, message| unsafe {
        validate(stream.as_mut_ptr(), options, message)
    })?;
    Ok(stream)
}

/// Wraps the handler of a consumer of an async stream: the returned one validates every call of the
/// producer, and passes it on; so does the producer that the consumer gets with its calls. `report` is
/// as for [`validate_stream`].
///
/// Errors: see the module; ENOMEM. An error drops the handler and the report.
#[cfg(feature = "async")]
pub fn validate_handler(
    handler: crate::AsyncHandler,
    how: impl Into<Validation>,
    report: impl Fn(Finding) + Send + Sync + 'static,
) -> Result<crate::AsyncHandler, Error> {
    use fletching_abi::ArrowAsyncDeviceStreamHandler as Handler;

    type Validate = unsafe extern "C" fn(*mut *mut Handler, *const Options, *mut Message) -> c_int;
    // SAFETY: as the header declares it.
    let validate: Validate = unsafe { library::function(c"FletchingValidateAsyncHandler") }?;
    let mut raw = handler.as_ptr();
    // SAFETY: see AsyncHandler::from_raw and Level::data.
    keep(how.into(), report, |options, message| unsafe {
        validate(&mut raw, options, message)
    })?;
    let _taken = handler.into_raw();
    // SAFETY: the library has taken the handler over, and never writes NULL.
    Ok(unsafe { crate::AsyncHandler::from_raw(ptr::NonNull::new_unchecked(raw)) })
}

/// Calls a function of the library with options whose report is never dropped, unless it fails.
fn keep(
    how: Validation,
    report: impl Fn(Finding) + Send + Sync + 'static,
    validate: impl FnOnce(&Options, *mut Message) -> c_int,
) -> Result<(), Error> {
    let report = Box::into_raw(Box::new(report));
    // SAFETY: the box lives as long as the process, or until the error below.
    let context: *mut Reporter<'static> = Box::into_raw(Box::new(unsafe { &*report }));
    // SAFETY: as above.
    let options = Options::new(how, unsafe { &*context });
    run(|message| validate(&options, message)).inspect_err(|_| {
        // SAFETY: the library keeps neither after an error.
        unsafe {
            drop(Box::from_raw(context));
            drop(Box::from_raw(report));
        }
    })
}

/// Reports each schema and batch of a validated stream, each handler and each task that is not
/// released yet, to the report of its stream. Returns how many there are. Call it when the consumer is done.
///
/// Errors: see the module; ENOMEM.
pub fn report_live() -> Result<u64, Error> {
    // SAFETY: as the header declares it.
    let live: unsafe extern "C" fn() -> i64 =
        unsafe { library::function(c"FletchingValidateLive") }?;
    // SAFETY: it has no conditions.
    u64::try_from(unsafe { live() })
        .map_err(|_| Error::new(crate::errno::ENOMEM, "report_live: no memory"))
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
    // A panic of the report has no caller to return to.
    let _ = guarded(|| {
        // SAFETY: the context of the options, and texts that live until this returns.
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

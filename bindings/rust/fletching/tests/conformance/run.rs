// SPDX-License-Identifier: Apache-2.0

//! The groups of the suite, and a faulty subject.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use fletching::abi::ArrowDeviceArrayStream;
use fletching::DeviceArrayStream;
use fletching_testing::message::Message;

use crate::subject::{finish, subjects, Subject};

/// `struct FletchingConformanceResult`
#[repr(C)]
pub struct CaseReport([*const c_char; 6]);

/// `struct FletchingConformanceOptions`
#[repr(C)]
pub struct RunOptions {
    size: usize,
    group: *const c_char,
    case_name: *const c_char,
    report: unsafe extern "C" fn(*mut c_void, *const CaseReport),
    context: *mut c_void,
    begin: *const c_void,
}

fletching_testing::library! {
    /// The suite.
    pub struct Suite from "fletching_conformance" {
        group = FletchingConformanceGroup(i32) -> *const c_char;
        run = FletchingConformanceRun(*const Subject, *const RunOptions, *mut i64, *mut Message) -> c_int;
    }
}

/// The result of a case: group, name, verdict, answer, rule, and message.
type CaseTexts = [String; 6];

unsafe extern "C" fn report(results: *mut c_void, found: *const CaseReport) {
    // SAFETY: the suite passes the context of the run, and strings.
    unsafe {
        let texts = (*found)
            .0
            .map(|text| CStr::from_ptr(text).to_string_lossy().into_owned());
        (*results.cast::<Vec<CaseTexts>>()).push(texts);
    }
}

fn play(subject: &Subject, group: &str) -> Vec<CaseTexts> {
    // The suite allows one run at a time per process.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    #[cfg(all(feature = "runtime", target_pointer_width = "64", unix))]
    for name in ["libcuda.so.1", "libamdhip64.so.7"] {
        fletching_testing::library::load_stand_in(name);
    }
    let suite = Suite::load().unwrap();
    let group = CString::new(group).unwrap();
    let (mut results, mut message) = (Vec::<CaseTexts>::new(), Message::default());
    let options = RunOptions {
        size: size_of::<RunOptions>(),
        group: group.as_ptr(),
        case_name: ptr::null(),
        report,
        context: (&raw mut results).cast(),
        begin: ptr::null(),
    };
    // SAFETY: the structs match conformance.h and live during the call.
    let code = unsafe { (suite.run)(subject, &options, ptr::null_mut(), &mut message) };
    assert_eq!(code, 0, "{}", message.text());
    results
}

fn check(group: &str) {
    // The functions of a disabled feature are NULL.
    let is_whole = cfg!(all(
        feature = "async",
        feature = "dlpack",
        feature = "runtime"
    ));
    let mut lines = Vec::new();
    for subject in subjects() {
        // SAFETY: the name is a literal.
        let name = unsafe { CStr::from_ptr(subject.name) }.to_string_lossy();
        let results = play(&subject, group);
        // On 32-bit machines, the devices with tested streams do not exist.
        let has_devices = cfg!(target_pointer_width = "64") || group != "events";
        let is_right = results.iter().any(|result| result[2] == "right");
        assert!(
            is_right || !is_whole || !has_devices,
            "{group}: no case is right"
        );
        for [group, case, verdict, _, rule, message] in results {
            if verdict == "wrong" || verdict == "not-supported" && is_whole {
                lines.push(format!(
                    "{name}: {group}: {case}: {verdict}: {message} [{rule}]"
                ));
            }
        }
    }
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

macro_rules! groups {
    ($($name:ident = $group:literal;)+) => {
        const GROUPS: &[&str] = &[$($group),+];
        $(
            #[test]
            fn $name() {
                check($group);
            }
        )+
    };
}

groups! {
    schemas = "schemas";
    arrays = "arrays";
    children = "children";
    array_consumers = "array-consumers";
    streams = "streams";
    device_streams = "device-streams";
    stream_consumers = "stream-consumers";
    tensors = "tensors";
    legacy_tensors = "legacy-tensors";
    random_tensors = "random-tensors";
    receivers = "receivers";
    senders = "senders";
    catalogue_arrays = "catalogue-arrays";
    catalogue_streams = "catalogue-streams";
    events = "events";
    devices = "devices";
}

#[test]
fn every_group_has_test() {
    let suite = Suite::load().unwrap();
    // SAFETY: any index is allowed, and the names live as long as the library.
    let names = (0..).map_while(|index| unsafe {
        let name = (suite.group)(index);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_str().unwrap())
    });
    // async_replay tests these groups.
    let played = names.filter(|name| !name.ends_with("-traces"));
    assert_eq!(played.collect::<Vec<_>>(), GROUPS);
}

unsafe extern "C" fn drop_first_batch(
    _: *mut c_void,
    from: *mut ArrowDeviceArrayStream,
    to: *mut ArrowDeviceArrayStream,
    message: *mut Message,
) -> c_int {
    // SAFETY: the suite moves a stream in and passes a slot.
    unsafe {
        finish(message, || {
            let mut reader = DeviceArrayStream::move_from(from).into_iter();
            let (schema, device_type) = (reader.schema()?, reader.device_type());
            DeviceArrayStream::from_batches(schema, device_type, reader.skip(1))?.move_to(to);
            Ok(())
        })
    }
}

/// Shows that the suite tests the given subject.
#[test]
fn dropped_batch_is_reported_as_wrong() {
    let subject = Subject {
        device_stream: Some(drop_first_batch),
        ..subjects()[0]
    };
    let results = play(&subject, "device-streams");
    let expected = [
        "device-streams",
        "stream.good",
        "wrong",
        "accepted",
        "",
        "expected 3 batches, got 2",
    ];
    assert!(
        results.iter().any(|result| result == &expected),
        "{results:?}"
    );
}

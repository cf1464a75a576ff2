// SPDX-License-Identifier: Apache-2.0

//! The rules of streams of both kinds: those that the reader keeps towards a foreign producer.

use std::sync::{Arc, Mutex};

use fletching::abi::{ArrowArrayStream, ArrowDeviceArrayStream, ArrowDeviceType};
use fletching::{DeviceArray, Error, Options, Owner};

use crate::kinds::{reader, Kind};
use crate::script::{fails, Play, Script, Step};

type Plain = ArrowArrayStream;
type Device = ArrowDeviceArrayStream;

/// Tests that are one function for both kinds.
#[macro_export]
macro_rules! rules {
    ($($rule:ident = $test:expr;)*) => {$(
        #[test]
        fn $rule() {
            $test();
        }
    )*};
}

fn reads_batches_and_end<S: Kind>() {
    let play = Play::new([Step::default(), Step::default(), Step::default()]);
    let mut reader = reader::<S>(&play);
    let lengths: Vec<_> = reader
        .by_ref()
        .map(|batch| S::length(&batch.unwrap()))
        .collect();
    assert_eq!(lengths, [1, 2, 3]);
    // It stays ended and does not ask again.
    assert!(reader.next().is_none());
    assert_eq!(play.get(|script| script.pulls), 4);
    drop(reader);
    play.expect_clean();
}

fn batches_outlive<S: Kind>() {
    let play = Play::new([Step::default(), Step::default()]);
    let mut reader = reader::<S>(&play);
    let schema = reader.schema().unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(
        play.get(|script| (script.released_streams, script.live)),
        (1, 3)
    );
    assert_eq!((S::length(&batches[1]), schema.format()), (2, c"i"));
    drop((schema, batches));
    play.expect_clean();
}

fn keeps_errno<S: Kind>(code: i32, expected: i32) {
    let play = Play::new([Step::default(), fails(code), Step::default()]);
    let mut reader = reader::<S>(&play);
    assert!(reader.next().unwrap().is_ok());
    let error = reader.next().unwrap().unwrap_err();
    let text = match code {
        1.. => "the foreign text".into(),
        _ => format!("the foreign text (code {code})"),
    };
    assert_eq!((error.code(), error.message()), (expected, &*text));
    // Over: nothing more, and no callback is called.
    assert!(reader.next().is_none());
    let again = reader.schema().unwrap_err();
    assert_eq!((again.code(), again.message()), (expected, &*text));
    assert_eq!(
        play.get(|script| (script.pulls, script.asked_for_text)),
        (2, 1)
    );
    drop(reader);
    play.expect_clean();
}

#[test]
fn rule_stream_errno_read() {
    // -1 is no errno value, and still an error.
    for (code, expected) in [
        (libc::ENOSPC, libc::ENOSPC),
        (-1, libc::EIO),
        (i32::MIN, libc::EIO),
    ] {
        keeps_errno::<Plain>(code, expected);
        keeps_errno::<Device>(code, expected);
    }
}

#[test]
fn rule_stream_errno_recognized() {
    for code in [libc::EINVAL, libc::ENOMEM, libc::EIO, i32::MAX] {
        keeps_errno::<Plain>(code, code);
        keeps_errno::<Device>(code, code);
    }
}

fn copies_text<S: Kind>() {
    let play = Play::new([fails(libc::EIO)]);
    let error = reader::<S>(&play).next().unwrap().unwrap_err();
    play.overwrite_text();
    assert_eq!(error.message(), "the foreign text");
    play.expect_clean();
}

fn accepts_no_text<S: Kind>() {
    let play = Play::new([fails(libc::EIO)]);
    play.get(|script| script.text = None);
    let error = reader::<S>(&play).next().unwrap().unwrap_err();
    assert_eq!((error.code(), error.message()), (libc::EIO, ""));
    assert!(!error.to_string().is_empty());
    play.expect_clean();
}

fn asks_for_text_only_after_an_error<S: Kind>() {
    let play = Play::new([Step::default(), Step::default()]);
    let mut reader = reader::<S>(&play);
    assert!(reader.schema().is_ok());
    assert_eq!(reader.by_ref().count(), 2);
    assert!(reader.schema().is_ok());
    drop(reader);
    assert_eq!(play.get(|script| script.asked_for_text), 0);
    play.expect_clean();
}

/// A stream that is released keeps its callbacks, which are not called.
fn not_after_release<S: Kind>(read: impl Fn(&mut fletching::StreamReader<S>) -> Error) {
    let play = Play::new([Step::default()]);
    let mut raw = S::foreign(&play).into_raw();
    // SAFETY: the stream is ours.
    drop(unsafe { Owner::move_from(&mut raw) });
    // SAFETY: a released stream.
    let mut reader = unsafe { Owner::from_raw(raw) }.into_iter();
    let error = read(&mut reader);
    assert_eq!(
        (error.code(), error.message()),
        (libc::EINVAL, "stream: released: expected a live stream")
    );
    drop(reader);
    assert_eq!(play.get(|script| script.asked_for_text), 0);
    play.expect_clean();
}

fn no_schema_after_release<S: Kind>() {
    not_after_release::<S>(|reader| reader.schema().unwrap_err());
}

fn no_batch_after_release<S: Kind>() {
    not_after_release::<S>(|reader| {
        let error = reader.next().unwrap().unwrap_err();
        assert!(reader.next().is_none());
        error
    });
}

/// The script is locked during a call.
fn calls_one_at_a_time<S: Kind>() {
    let play = Play::new([Step::default(), fails(libc::EIO)]);
    let mut reader = reader::<S>(&play);
    assert!(reader.schema().is_ok());
    assert_eq!(reader.by_ref().count(), 2);
    let thread = std::thread::spawn(move || drop(reader));
    thread.join().unwrap();
    play.expect_clean();
}

/// Every callback finds its script through private_data.
fn leaves_private_data<S: Kind>() {
    let play = Play::new([Step::default()]);
    let moved = Box::new(S::foreign(&play));
    let mut reader = (*moved).into_iter();
    assert!(reader.schema().is_ok());
    assert_eq!(S::length(&reader.next().unwrap().unwrap()), 1);
    drop(reader);
    play.expect_clean();
}

fn null_callbacks<S: Kind>() {
    let play = Play::new([Step::default()]);
    let refused = |error: Error, name: &str| {
        assert_eq!(error.code(), libc::EINVAL);
        assert!(
            error.message().contains(&format!("{name}: NULL")),
            "{error}"
        );
        assert!(error.message().contains("stream.callbacks-set)"), "{error}");
    };
    let mut reader = S::without_get_schema(S::foreign(&play)).into_iter();
    refused(reader.schema().unwrap_err(), "get_schema");
    // An error of the schema is the only item too.
    refused(reader.next().unwrap().unwrap_err(), "get_schema");
    assert!(reader.next().is_none());
    drop(reader);
    let mut reader = S::without_get_next(S::foreign(&play)).into_iter();
    assert!(reader.schema().is_ok());
    refused(reader.next().unwrap().unwrap_err(), "get_next");
    drop(reader);
    assert_eq!(
        play.get(|script| (script.asked_for_text, script.pulls)),
        (0, 0)
    );

    let play = Play::new([fails(libc::EIO)]);
    let error = S::without_last_error(S::foreign(&play)).into_iter().next();
    assert_eq!(error.unwrap().unwrap_err().code(), libc::EIO);
    play.expect_clean();
}

fn ours_has_callbacks<S: Kind>() {
    let play = Play::new([]);
    assert!(S::has_callbacks(S::of(play.schema(), []).unwrap().as_raw()));
    null_callbacks::<S>();
}

fn schema_that_fails_or_is_released<S: Kind>() {
    let play = Play::new([]);
    play.get(|script| script.schema_code = libc::ENOTSUP);
    let mut reader = reader::<S>(&play);
    assert_eq!(reader.schema().unwrap_err().code(), libc::ENOTSUP);
    assert_eq!(reader.next().unwrap().unwrap_err().code(), libc::ENOTSUP);
    assert!(reader.next().is_none());
    drop(reader);
    play.expect_clean();

    let play = Play::new([]);
    play.get(|script| script.schema_released = true);
    crate::foreign::refused(
        crate::kinds::reader::<S>(&play).schema(),
        "get_schema: released schema with return value 0: expected a live schema",
    );
    play.expect_clean();
}

#[test]
fn a_schema_that_fails_or_is_released_is_an_error() {
    schema_that_fails_or_is_released::<Plain>();
    schema_that_fails_or_is_released::<Device>();
}

rules! {
    rule_stream_result_end_checked = reads_batches_and_end::<Plain>;
    rule_device_stream_result_end_checked = reads_batches_and_end::<Device>;
    rule_stream_result_released_independently = batches_outlive::<Plain>;
    rule_device_stream_result_released_independently = batches_outlive::<Device>;
    rule_stream_error_text_copied = copies_text::<Plain>;
    rule_device_stream_error_text_copied = copies_text::<Device>;
    rule_stream_error_text_null_accepted = accepts_no_text::<Plain>;
    rule_device_stream_error_text_null_accepted = accepts_no_text::<Device>;
    rule_stream_get_last_error_only_after_error = asks_for_text_only_after_an_error::<Plain>;
    rule_device_stream_get_last_error_only_after_error = asks_for_text_only_after_an_error::<Device>;
    rule_stream_get_schema_not_after_release = no_schema_after_release::<Plain>;
    rule_device_stream_get_schema_not_after_release = no_schema_after_release::<Device>;
    rule_stream_get_next_not_after_release = no_batch_after_release::<Plain>;
    rule_device_stream_get_next_not_after_release = no_batch_after_release::<Device>;
    rule_stream_get_last_error_not_after_release = no_batch_after_release::<Plain>;
    rule_device_stream_get_last_error_not_after_release = no_batch_after_release::<Device>;
    rule_stream_calls_serialized = calls_one_at_a_time::<Plain>;
    rule_device_stream_calls_serialized = calls_one_at_a_time::<Device>;
    rule_stream_private_data_untouched = leaves_private_data::<Plain>;
    rule_device_stream_private_data_untouched = leaves_private_data::<Device>;
    rule_stream_callbacks_set = ours_has_callbacks::<Plain>;
    rule_device_stream_callbacks_set = ours_has_callbacks::<Device>;
}

// --- Device types -------------------------------------------------------------------------------

const CUDA: ArrowDeviceType = ArrowDeviceType::CUDA;

/// The one batch of a stream, and the warnings, or the error.
fn read_one(
    of_stream: ArrowDeviceType,
    step: Step,
    strict: bool,
) -> Result<(DeviceArray, Vec<&'static str>), Error> {
    let play = Play::of(Script {
        steps: vec![step],
        device_type: of_stream,
        ..Script::default()
    });
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&warnings);
    let options = match strict {
        true => Options::strict(),
        false => Options::on_warning(move |warning| {
            assert!(warning
                .to_string()
                .ends_with(&format!(" (rule {})", warning.rule)));
            kept.lock().unwrap().push(warning.rule);
        }),
    };
    let mut reader = Device::foreign(&play).reader(options);
    assert_eq!(reader.device_type(), of_stream);
    let batch = reader.next().unwrap();
    drop(reader);
    if batch.is_err() {
        play.expect_clean();
    }
    let warnings = warnings.lock().unwrap().clone();
    batch.map(|batch| (batch, warnings))
}

fn on(device_type: ArrowDeviceType) -> Step {
    Step {
        device_type,
        ..Step::default()
    }
}

#[test]
fn rule_device_stream_one_device_type() {
    assert!(read_one(CUDA, on(CUDA), true).is_ok());
    let managed = on(ArrowDeviceType::CUDA_MANAGED);
    let (batch, warnings) = read_one(CUDA, managed.clone(), false).unwrap();
    assert_eq!(batch.device_type(), ArrowDeviceType::CUDA_MANAGED);
    assert_eq!(warnings, ["device-stream.one-device-type"]);
    let error = read_one(CUDA, managed, true).unwrap_err();
    assert!(
        error
            .message()
            .ends_with("(rule device-stream.one-device-type)"),
        "{error}"
    );
}

fn accessible(promised: ArrowDeviceType, found: ArrowDeviceType) -> bool {
    match read_one(promised, on(found), false) {
        Ok(_) => true,
        Err(error) => {
            let rule = "memory that the stream's devices may not access \
                        (rule device-stream-result.accessible)";
            assert!(error.message().ends_with(rule), "{error}");
            false
        }
    }
}

#[test]
fn rule_device_stream_result_accessible() {
    let cpu = ArrowDeviceType::CPU;
    assert!(accessible(cpu, ArrowDeviceType::CUDA_HOST));
    assert!(accessible(cpu, ArrowDeviceType::CUDA_MANAGED));
    assert!(!accessible(cpu, CUDA));
    assert!(!accessible(CUDA, cpu));
    assert!(!accessible(ArrowDeviceType::CUDA_MANAGED, CUDA));
    assert!(!accessible(ArrowDeviceType::VPI, cpu));
    assert!(!accessible(CUDA, ArrowDeviceType(9999)));
    assert!(!accessible(ArrowDeviceType(9999), cpu));
    assert!(accessible(ArrowDeviceType(9999), ArrowDeviceType(9999)));
}

/// A consumer warns of one that is not zero.
#[test]
fn a_batch_with_reserved_bytes_is_warned_of() {
    let step = Step {
        reserved: 5,
        ..on(CUDA)
    };
    let (_, warnings) = read_one(CUDA, step.clone(), false).unwrap();
    assert_eq!(warnings, ["device-array.reserved-zero"]);
    let error = read_one(CUDA, step, true).unwrap_err();
    assert!(
        error
            .message()
            .ends_with("(rule device-array.reserved-zero)"),
        "{error}"
    );
}

/// The end is not looked at: a released struct may have anything in it.
#[test]
fn the_end_of_a_stream_has_no_device_type() {
    let play = Play::of(Script {
        device_type: CUDA,
        ..Script::default()
    });
    let mut reader = Device::foreign(&play).reader(Options::strict());
    assert!(reader.next().is_none());
    drop(reader);
    play.expect_clean();
}

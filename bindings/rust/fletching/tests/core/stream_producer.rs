// SPDX-License-Identifier: Apache-2.0

//! Streams of ours, through their C callbacks: the rules that they keep.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use fletching::abi::{ArrowArrayStream, ArrowDeviceArrayStream, ArrowDeviceType};
use fletching::{Array, DeviceArray, DeviceArrayStream, Error, Owner, Schema, SchemaBuilder};

use crate::kinds::{reader, Kind};
use crate::rules;
use crate::script::{fails, Play, Step};

type Plain = ArrowArrayStream;
type Device = ArrowDeviceArrayStream;

/// Batches of length 1 to `count`, then what `last` returns.
fn counting(
    play: &Play,
    count: i64,
    mut last: impl FnMut() -> Option<Result<Array, Error>> + Send + 'static,
) -> impl Iterator<Item = Result<Array, Error>> + Send + 'static {
    let (play, mut length) = (play.clone(), 0);
    std::iter::from_fn(move || {
        if length == count {
            return last();
        }
        length += 1;
        Some(Ok(play.batch(length)))
    })
}

/// The stream, live, for its callbacks to be called.
fn raw<S: Kind>(
    play: &Play,
    batches: impl Iterator<Item = Result<Array, Error>> + Send + 'static,
) -> S {
    S::of(play.schema(), batches).unwrap().into_raw()
}

/// Nothing of a play is alive that has no foreign stream.
#[track_caller]
fn expect_released(play: &Play) {
    assert_eq!(play.get(|script| script.live), 0);
}

fn ends_with_a_released_array<S: Kind>() {
    let (play, calls) = (Play::new([]), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    let mut stream: S = raw(
        &play,
        counting(&play, 2, move || {
            counted.fetch_add(1, Ordering::SeqCst);
            None
        }),
    );
    for length in 1..3 {
        assert_eq!(S::length(&S::call_next(&mut stream).unwrap()), length);
    }
    for _ in 0..3 {
        assert!(S::call_next(&mut stream).unwrap().is_released());
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    S::release(&mut stream);
    expect_released(&play);
}

fn results_outlive<S: Kind>() {
    let play = Play::new([]);
    let mut stream: S = raw(&play, counting(&play, 1, || None));
    let schema = S::call_schema(&mut stream).unwrap();
    let batch = S::call_next(&mut stream).unwrap();
    S::release(&mut stream);
    assert_eq!(play.get(|script| script.live), 2);
    assert_eq!((S::length(&batch), schema.name()), (1, c"values"));
    drop((schema, batch));
    expect_released(&play);
}

fn schema_is_constant<S: Kind>() {
    let play = Play::new([]);
    let mut stream: S = raw(&play, counting(&play, 1, || None));
    for _ in 0..3 {
        let schema = S::call_schema(&mut stream).unwrap();
        assert_eq!((schema.format(), schema.name()), (c"i", c"values"));
        drop(S::call_next(&mut stream).unwrap());
    }
    S::release(&mut stream);
    expect_released(&play);
}

/// What get_next returns when the iterator does `last`.
fn code_of<S: Kind>(last: impl Fn() -> Option<Result<Array, Error>> + Send + 'static) -> i32 {
    let (play, calls) = (Play::new([]), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    let mut stream: S = raw(
        &play,
        counting(&play, 0, move || {
            counted.fetch_add(1, Ordering::SeqCst);
            last()
        }),
    );
    let code = S::call_next(&mut stream).unwrap_err();
    assert_eq!(S::call_next(&mut stream).unwrap_err(), code);
    // An iterator that has failed is left alone.
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    S::release(&mut stream);
    code
}

fn returns_errno_codes<S: Kind>() {
    assert_eq!(
        code_of::<S>(|| Some(Err(Error::new(libc::ENOSPC, "full")))),
        libc::ENOSPC
    );
    assert_eq!(
        code_of::<S>(|| Some(Err(Error::new(-3, "no errno value")))),
        libc::EIO
    );
    assert_eq!(
        code_of::<S>(|| Some(Err(Error::new(0, "success")))),
        libc::EIO
    );
    assert_eq!(code_of::<S>(|| panic!("a text")), libc::EIO);
    assert_eq!(code_of::<S>(|| std::panic::panic_any(17)), libc::EIO);
    assert_eq!(code_of::<S>(|| Some(Ok(Array::default()))), libc::EINVAL);
    let disk = || std::io::Error::from_raw_os_error(libc::ENOSPC);
    assert_eq!(code_of::<S>(move || Some(Err(disk().into()))), libc::ENOSPC);
}

fn text_for<S: Kind>(message: &str) -> Option<Vec<u8>> {
    let (play, error) = (Play::new([]), Error::new(libc::EIO, message));
    let mut stream: S = raw(&play, counting(&play, 0, move || Some(Err(error.clone()))));
    // Nothing has failed yet.
    assert_eq!(S::last_error(&mut stream), None);
    assert_eq!(S::call_next(&mut stream).unwrap_err(), libc::EIO);
    let text = S::last_error(&mut stream);
    S::release(&mut stream);
    text.map(std::ffi::CString::into_bytes)
}

fn says_why<S: Kind>() {
    assert_eq!(text_for::<S>("café").unwrap(), "café".as_bytes());
    assert_eq!(text_for::<S>("a\0b\x01").unwrap(), b"a\\x00b\\x01");
    assert_eq!(text_for::<S>(""), None);
    assert_eq!(text_for::<S>(&"x".repeat(10_000)).unwrap().len(), 4099);
}

fn text_stays_until_the_next_call<S: Kind>() {
    let play = Play::new([]);
    let lost = || Some(Err(Error::new(libc::EIO, "long enough for the heap")));
    let mut stream: S = raw(&play, counting(&play, 0, lost));
    assert_eq!(S::call_next(&mut stream).unwrap_err(), libc::EIO);
    let text = S::last_error_address(&mut stream);
    // SAFETY: the stream is ours.
    let mut moved = unsafe { Owner::move_from(&mut stream) }.into_raw();
    assert_eq!(S::last_error_address(&mut moved), text);
    let expected = Some(c"long enough for the heap".into());
    assert_eq!(S::last_error(&mut moved), expected);
    // It fails again with the same text; get_schema still works, without any.
    assert!(S::call_schema(&mut moved).is_ok());
    assert_eq!(S::last_error(&mut moved), None);
    assert_eq!(S::call_next(&mut moved).unwrap_err(), libc::EIO);
    assert_eq!(S::last_error(&mut moved), expected);
    S::release(&mut moved);
}

/// Releases twice, and what a consumer must not do does no harm.
fn releases_like_an_array<S: Kind>() {
    let (play, token) = (Play::new([]), Arc::new(()));
    let kept = Arc::clone(&token);
    let mut stream: S = raw(
        &play,
        counting(&play, 0, move || {
            let _ = &kept;
            None
        }),
    );
    assert_eq!(Arc::strong_count(&token), 2);
    S::release(&mut stream);
    assert_eq!(Arc::strong_count(&token), 1);
    expect_released(&play);
    assert_eq!(S::call_next(&mut stream).unwrap_err(), libc::EINVAL);
    assert_eq!(S::call_schema(&mut stream).unwrap_err(), libc::EINVAL);
    assert_eq!(S::last_error(&mut stream), None);
}

fn null_arguments<S: Kind>() {
    let play = Play::new([]);
    let mut stream: S = raw(&play, counting(&play, 1, || None));
    assert_eq!(S::get_next_null(&mut stream), libc::EINVAL);
    assert_eq!(S::get_schema_of_null(), libc::EINVAL);
    // Nothing was lost.
    assert_eq!(S::length(&S::call_next(&mut stream).unwrap()), 1);
    S::release(&mut stream);
    expect_released(&play);
}

/// What a consumer finds in its struct after an error is nothing to release.
#[test]
fn an_error_leaves_a_released_struct() {
    let play = Play::new([]);
    let lost = || Some(Err(Error::new(libc::EIO, "lost")));
    let mut stream: Plain = raw(&play, counting(&play, 0, lost));
    let mut out = Array::from(vec![1_u8]).into_raw();
    // SAFETY: a stream that is ours, and a struct of which the consumer keeps a copy.
    unsafe {
        let kept = std::ptr::read(&out);
        assert_eq!(stream.get_next.unwrap()(&mut stream, &mut out), libc::EIO);
        assert!(out.is_released() && out.private_data.is_null());
        drop(Array::from_raw(kept));
    }
    Plain::release(&mut stream);
    expect_released(&play);
}

#[test]
fn null_arguments_are_errors() {
    null_arguments::<Plain>();
    null_arguments::<Device>();
}

rules! {
    rule_stream_result_end_is_released_array = ends_with_a_released_array::<Plain>;
    rule_device_stream_result_end_is_released_array = ends_with_a_released_array::<Device>;
    rule_stream_result_outlives_stream = results_outlive::<Plain>;
    rule_device_stream_result_outlives_stream = results_outlive::<Device>;
    rule_stream_result_schema_constant = schema_is_constant::<Plain>;
    rule_device_stream_result_schema_constant = schema_is_constant::<Device>;
    rule_stream_errno_codes = returns_errno_codes::<Plain>;
    rule_device_stream_errno_codes = returns_errno_codes::<Device>;
    rule_stream_error_text = says_why::<Plain>;
    rule_device_stream_error_text = says_why::<Device>;
    rule_stream_error_text_lifetime = text_stays_until_the_next_call::<Plain>;
    rule_device_stream_error_text_lifetime = text_stays_until_the_next_call::<Device>;
    rule_stream_release_like_array = releases_like_an_array::<Plain>;
    rule_device_stream_release_like_array = releases_like_an_array::<Device>;
}

// --- Device streams -----------------------------------------------------------------------------

fn schema() -> Schema {
    SchemaBuilder::new("i").build().unwrap()
}

fn on(device_type: ArrowDeviceType) -> DeviceArray {
    let mut raw = DeviceArray::from(Array::from(vec![1_i32])).into_raw();
    raw.device_type = device_type;
    // SAFETY: no code reads the buffers.
    unsafe { DeviceArray::from_raw(raw) }
}

fn stream_on(
    device_type: ArrowDeviceType,
    batches: Vec<DeviceArray>,
) -> Result<DeviceArrayStream, Error> {
    DeviceArrayStream::from_batches(schema(), device_type, batches.into_iter().map(Ok))
}

#[test]
fn rule_device_stream_device_type_set() {
    for device_type in [ArrowDeviceType::CUDA, ArrowDeviceType(9999)] {
        let stream = stream_on(device_type, vec![]).unwrap();
        assert_eq!(
            (stream.device_type(), stream.as_raw().device_type),
            (device_type, device_type)
        );
    }
    let error = stream_on(ArrowDeviceType(0), vec![]).unwrap_err();
    assert!(
        error
            .message()
            .ends_with("(rule device-stream.device-type-set)"),
        "{error}"
    );
}

#[test]
fn rule_device_stream_stream_per_device_type() {
    let batches = vec![
        on(ArrowDeviceType::CUDA),
        on(ArrowDeviceType::ROCM),
        on(ArrowDeviceType::CUDA),
    ];
    let mut stream = stream_on(ArrowDeviceType::CUDA, batches)
        .unwrap()
        .into_raw();
    assert!(Device::call_next(&mut stream).is_ok());
    assert_eq!(Device::call_next(&mut stream).unwrap_err(), libc::EINVAL);
    assert_eq!(Device::call_next(&mut stream).unwrap_err(), libc::EINVAL);
    Device::release(&mut stream);
}

#[test]
fn a_stream_of_a_reader_passes_its_errors_on() {
    let play = Play::new([Step::default(), fails(libc::ENOSPC)]);
    let stream = Plain::of(play.schema(), reader::<Plain>(&play)).unwrap();
    let mut again = stream.into_iter();
    assert_eq!(again.next().unwrap().unwrap().length(), 1);
    let error = again.next().unwrap().unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (libc::ENOSPC, "the foreign text")
    );
    drop(again);
    play.expect_clean();
}

/// The iterator panics when it is dropped, too.
#[test]
fn an_iterator_that_panics_on_drop_goes_no_further() {
    struct Bomb;
    impl Iterator for Bomb {
        type Item = Result<Array, Error>;
        fn next(&mut self) -> Option<Self::Item> {
            None
        }
    }
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let play = Play::new([]);
    let mut stream: Plain = raw(&play, Bomb);
    Plain::release(&mut stream);
    expect_released(&play);
}

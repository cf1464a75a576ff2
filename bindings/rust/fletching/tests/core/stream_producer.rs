// SPDX-License-Identifier: Apache-2.0

//! Streams of ours, through their C callbacks: the rules that they keep.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use fletching::abi::{ArrowArrayStream, ArrowDeviceArrayStream, ArrowDeviceType};
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, DeviceArray, DeviceArrayStream, Error, Node,
    Owner, Schema, SchemaBuilder,
};

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

/// A record batch of a list and of a dictionary.
fn nested() -> SchemaBuilder {
    let list = SchemaBuilder::new("+l").name("a");
    let words = SchemaBuilder::new("i").name("b");
    SchemaBuilder::new("+s")
        .child(list.child(SchemaBuilder::new("l").name("items")))
        .child(words.dictionary(SchemaBuilder::new("u")))
}

/// An array of the same shape, or without one of its parts.
fn shaped(children: usize, items: usize, dictionaries: usize, null_count: i64) -> Array {
    let capacity = ArrayCapacity {
        arrays: children + items + dictionaries,
        buffers: 0,
    };
    let mut builder = ArrayBuilder::new(capacity, ()).unwrap();
    let values = ArrayValues {
        null_count,
        ..ArrayValues::of(2)
    };
    let set = |builder: &mut ArrayBuilder<()>, node| {
        builder.set(node, ArrayValues::of(0), &[]);
    };
    builder.set(Node::ROOT, values, &[]);
    let first = builder.add_children(Node::ROOT, children);
    (0..children).for_each(|index| set(&mut builder, first.sibling(index)));
    if items > 0 {
        let first = builder.add_children(first, items);
        (0..items).for_each(|index| set(&mut builder, first.sibling(index)));
    }
    if dictionaries > 0 {
        let words = builder.add_dictionary(first.sibling(1));
        set(&mut builder, words);
    }
    builder.finish().unwrap()
}

fn refuses_another_type<S: Kind>() {
    let fits = || shaped(2, 1, 1, 0);
    let without_child = || {
        let mut batch = fits();
        drop(batch.take_child(1).unwrap());
        batch
    };
    for (schema, batch, why) in [
        (nested(), shaped(0, 0, 0, 0), "expected 2 children, got 0"),
        (nested(), shaped(3, 1, 1, 0), "expected 2 children, got 3"),
        (
            nested(),
            shaped(2, 0, 1, 0),
            r#"field "a": expected 1 children, got 0"#,
        ),
        (
            nested(),
            shaped(2, 1, 0, 0),
            r#"field "b": expected a dictionary, got none"#,
        ),
        (
            SchemaBuilder::new("+s")
                .child(SchemaBuilder::new("+l").child(SchemaBuilder::new("l")))
                .child(SchemaBuilder::new("i").name("b")),
            fits(),
            r#"field "b": expected no dictionary, got one"#,
        ),
        (
            nested(),
            without_child(),
            r#"field "b": released or moved out: expected a live struct"#,
        ),
    ] {
        // A union and a list may have null values, and not every producer has counted.
        let first = shaped(2, 1, 1, -1);
        let items = if why.contains("no dictionary") {
            vec![Ok(batch)]
        } else {
            vec![Ok(first), Ok(batch)]
        };
        let number = items.len() - 1;
        let stream = S::of(schema.build().unwrap(), items).unwrap();
        let mut reader = stream.into_iter();
        assert!(reader.by_ref().take(number).all(|batch| batch.is_ok()));
        let error = reader.next().unwrap().unwrap_err();
        let text = format!("batch {number}: {why}");
        assert_eq!((error.code(), error.message()), (libc::EINVAL, &*text));
    }
    let list = SchemaBuilder::new("+l").child(SchemaBuilder::new("l"));
    let mut builder = ArrayBuilder::new(
        ArrayCapacity {
            arrays: 1,
            buffers: 0,
        },
        (),
    )
    .unwrap();
    let null = ArrayValues {
        null_count: 1,
        ..ArrayValues::of(1)
    };
    builder.set(Node::ROOT, null, &[]);
    let items = builder.add_children(Node::ROOT, 1);
    builder.set(items, ArrayValues::of(0), &[]);
    let lists = [Ok(builder.finish().unwrap())].into_iter();
    let stream = S::of(list.build().unwrap(), lists).unwrap();
    assert!(stream.into_iter().next().unwrap().is_ok());
}

#[test]
fn batch_of_another_type_is_refused() {
    refuses_another_type::<Plain>();
    refuses_another_type::<Device>();
}

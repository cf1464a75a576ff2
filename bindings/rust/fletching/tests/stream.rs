// SPDX-License-Identifier: Apache-2.0

//! Streams: iterators in both directions, errors and their messages, and rejected streams.

use fletching::abi::{ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowSchema};
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayStream, ArrayValues, ArrowDeviceType, DeviceArray,
    DeviceArrayStream, Error, Node, Options, Schema, SchemaBuilder, StreamReader,
};
use std::ffi::{c_int, CStr};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex};

fn schema() -> Schema {
    SchemaBuilder::new("i").build().unwrap()
}

fn batch(length: i32) -> DeviceArray {
    Array::from((0..length).collect::<Vec<_>>()).into()
}

fn lengths(batches: impl Iterator<Item = Result<DeviceArray, Error>>) -> Vec<i64> {
    batches
        .map(|batch| batch.map_or_else(|error| -i64::from(error.code()), |b| b.length()))
        .collect()
}

#[test]
fn batches_arrive_in_order() {
    let batches = (1..4).map(|length| Ok(batch(length)));
    let stream = DeviceArrayStream::from_batches(schema(), ArrowDeviceType::CPU, batches).unwrap();
    let mut reader = stream.into_iter();
    assert_eq!(reader.schema().unwrap().format(), c"i");
    assert_eq!(lengths(reader.by_ref()), [1, 2, 3]);
    assert!(reader.next().is_none());
    assert_eq!(reader.schema().unwrap().format(), c"i");

    let arrays = vec![Array::from(vec![1u8]), Array::from(vec![1u8, 2])];
    let stream = ArrayStream::from_batches(schema(), arrays.into_iter().map(Ok)).unwrap();
    let lengths: Vec<_> = stream
        .into_iter()
        .map(|array| array.unwrap().length())
        .collect();
    assert_eq!(lengths, [1, 2]);
}

#[test]
fn error_is_last_item_and_persists() {
    let batches = [Ok(batch(1)), Err(Error::new(71, "lost\0it")), Ok(batch(2))];
    let stream = DeviceArrayStream::from_batches(schema(), ArrowDeviceType::CPU, batches).unwrap();
    let mut reader = stream.into_iter();
    assert_eq!(lengths(reader.by_ref().take(3)), [1, -71]);
    let error = reader.schema().unwrap_err();
    assert_eq!((error.code(), error.message()), (71, "lost\\x00it"));
}

#[test]
fn iterator_panic_becomes_error() {
    let batches = std::iter::from_fn(|| panic!("no batch {}", 1));
    let stream = DeviceArrayStream::from_batches(schema(), ArrowDeviceType::CPU, batches).unwrap();
    let error = stream.into_iter().next().unwrap().unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (libc::EIO, "panic: no batch 1")
    );
}

/// As a C consumer sees it. The iterator is called once.
#[test]
fn failed_stream_repeats_error() {
    let mut items = vec![Err(Error::new(71, "x".repeat(10_000)))].into_iter();
    let batches = std::iter::from_fn(move || Some(items.next().expect("one call")));
    let mut raw = ArrayStream::from_batches(schema(), batches)
        .unwrap()
        .into_raw();
    let (mut batch, mut schema) = (ArrowArray::zeroed(), Schema::default());
    let (next, text) = (raw.get_next.unwrap(), raw.get_last_error.unwrap());
    // SAFETY: the test owns the stream and the result structs.
    unsafe {
        assert!(text(&mut raw).is_null() && text(null_mut()).is_null());
        assert_eq!(next(&mut raw, null_mut()), libc::EINVAL);
        assert_eq!(next(null_mut(), &mut batch), libc::EINVAL);
        for _ in 0..2 {
            batch.length = 7; // from an earlier array
            assert_eq!(next(&mut raw, &mut batch), 71);
            assert!(batch.is_released() && batch.length == 0);
            // The message is truncated and ends with "...".
            assert_eq!(CStr::from_ptr(text(&mut raw)).count_bytes(), 4099);
        }
        assert_eq!(raw.get_schema.unwrap()(&mut raw, schema.out()), 0);
        assert!(text(&mut raw).is_null());
        drop(ArrayStream::from_raw(raw));
    }
}

/// A panic that crosses the release would abort the process.
#[test]
fn panic_in_iterator_drop_is_caught() {
    struct PanicOnDrop;
    impl Iterator for PanicOnDrop {
        type Item = Result<Array, Error>;
        fn next(&mut self) -> Option<Self::Item> {
            None
        }
    }
    impl Drop for PanicOnDrop {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    drop(ArrayStream::from_batches(schema(), PanicOnDrop).unwrap());
}

#[test]
fn panic_during_unwind_does_not_abort() {
    struct ReadOnDrop(Option<StreamReader<ArrowArrayStream>>);
    impl Drop for ReadOnDrop {
        fn drop(&mut self) {
            assert!(std::thread::panicking());
            assert!(self.0.take().unwrap().next().unwrap().is_err());
        }
    }
    let batches = std::iter::from_fn(|| panic!("inner"));
    let stream = ArrayStream::from_batches(schema(), batches).unwrap();
    let reads = ReadOnDrop(Some(stream.into_iter()));
    let outer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _reads = reads;
        panic!("outer");
    }));
    assert_eq!(*outer.unwrap_err().downcast::<&str>().unwrap(), "outer");
}

fn on(device_type: ArrowDeviceType, reserved: i64) -> DeviceArray {
    let mut raw: ArrowDeviceArray = batch(1).into_raw();
    raw.device_type = device_type;
    raw.reserved[1] = reserved;
    // SAFETY: the array is valid on any device, because it is not read.
    unsafe { DeviceArray::from_raw(raw) }
}

#[test]
fn rule_device_stream_one_device_type() {
    let on_cuda = |found: DeviceArray, options: Options| {
        // The producer's own check drops warnings.
        let stream =
            DeviceArrayStream::from_batches(schema(), ArrowDeviceType::CUDA, [Ok(found)]).unwrap();
        stream.reader(options).next().unwrap()
    };
    let error = on_cuda(on(ArrowDeviceType::CPU, 0), Options::default()).unwrap_err();
    assert_eq!(
        error.message(),
        "batch: device_type differs from the stream's: expected cuda, got cpu, memory that the \
         stream's devices may not access (rule device-stream-result.accessible)"
    );
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&warnings);
    let options = Options::on_warning(move |warning| kept.lock().unwrap().push(warning.rule));
    on_cuda(on(ArrowDeviceType::CUDA_MANAGED, 1), options).unwrap();
    assert_eq!(
        *warnings.lock().unwrap(),
        [
            "device-stream.one-device-type",
            "device-array.reserved-zero"
        ]
    );
    for (found, rule) in [
        (
            on(ArrowDeviceType::CUDA_MANAGED, 0),
            "device-stream.one-device-type",
        ),
        (on(ArrowDeviceType::CUDA, 1), "device-array.reserved-zero"),
    ] {
        let error = on_cuda(found, Options::strict()).unwrap_err();
        let rule = format!("(rule {rule})");
        assert!(error.message().ends_with(&rule), "{error}");
    }
}

#[test]
fn rule_device_stream_result_accessible() {
    use ArrowDeviceType as Device;
    for (of_stream, of_batch, is_accessible) in [
        (Device::CPU, Device::CUDA_HOST, true),
        (Device::CPU, Device::CUDA_MANAGED, true),
        (Device::CPU, Device::CUDA, false),
        (Device::CUDA_MANAGED, Device::CUDA, false),
        (Device::VPI, Device::CPU, false),
        (Device::CUDA, Device(9999), false),
        (Device(9999), Device::CPU, false),
        (Device(9999), Device(9999), true),
    ] {
        let batches = [Ok(on(of_batch, 0))];
        let stream = DeviceArrayStream::from_batches(schema(), of_stream, batches).unwrap();
        let batch = stream.into_iter().next().unwrap();
        assert_eq!(batch.is_ok(), is_accessible, "{of_stream}, {of_batch}");
    }
}

#[test]
fn from_batches_rejects_released_structs() {
    let none = || std::iter::empty::<Result<DeviceArray, Error>>();
    let cpu = ArrowDeviceType::CPU;
    assert!(DeviceArrayStream::from_batches(Schema::default(), cpu, none()).is_err());
    assert!(DeviceArrayStream::from_batches(schema(), ArrowDeviceType(0), none()).is_err());
    let released = DeviceArrayStream::from_batches(schema(), cpu, [Ok(DeviceArray::default())]);
    let error = released.unwrap().into_iter().next().unwrap().unwrap_err();
    assert!(
        error.message().starts_with("get_next: batch is released"),
        "{error}"
    );
    let error = ArrayStream::default()
        .into_iter()
        .next()
        .unwrap()
        .unwrap_err();
    assert_eq!(error.message(), "stream: released: expected a live stream");
}

#[test]
fn released_schema_from_producer_returns_error() {
    unsafe extern "C" fn leave_empty(_: *mut ArrowArrayStream, _: *mut ArrowSchema) -> c_int {
        0
    }
    let mut raw = ArrayStream::from_batches(schema(), std::iter::empty())
        .unwrap()
        .into_raw();
    raw.get_schema = Some(leave_empty);
    // SAFETY: the stream breaks a rule, which the reader must detect.
    let mut reader = unsafe { ArrayStream::from_raw(raw) }.into_iter();
    let text = "get_schema: released schema with return value 0: expected a live schema";
    assert_eq!(reader.schema().unwrap_err().message(), text);
    assert_eq!(reader.next().unwrap().unwrap_err().message(), text);
    assert!(reader.next().is_none());
}

#[test]
fn error_without_get_last_error_has_empty_message() {
    let failing = [Err(Error::new(71, "lost"))];
    let mut raw = ArrayStream::from_batches(schema(), failing)
        .unwrap()
        .into_raw();
    raw.get_last_error = None;
    // SAFETY: the stream breaks a rule, which the reader must detect.
    let mut reader = unsafe { ArrayStream::from_raw(raw) }.into_iter();
    let error = reader.next().unwrap().unwrap_err();
    assert_eq!((error.code(), error.message()), (71, ""));
}

#[test]
fn null_callback_returns_error() {
    let mut raw = ArrayStream::from_batches(schema(), std::iter::empty())
        .unwrap()
        .into_raw();
    raw.get_next = None;
    // SAFETY: the stream breaks a rule, which the reader must detect.
    let error = unsafe { ArrayStream::from_raw(raw) }
        .into_iter()
        .next()
        .unwrap()
        .unwrap_err();
    assert_eq!(
        error.message(),
        "ArrowArrayStream.get_next: NULL: expected a callback; hint: fix the producer (rule \
         stream.callbacks-set)"
    );
}

/// A record batch with a list and a dictionary.
fn nested() -> SchemaBuilder {
    let list = SchemaBuilder::new("+l").name("a");
    let words = SchemaBuilder::new("i").name("b");
    SchemaBuilder::new("+s")
        .child(list.child(SchemaBuilder::new("l").name("items")))
        .child(words.dictionary(SchemaBuilder::new("u")))
}

/// Makes an array of the same shape, or without one of its parts.
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

#[test]
fn batch_of_other_type_is_rejected() {
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
        // A union and a list may have null values, and producers need not count them.
        let first = shaped(2, 1, 1, -1);
        let items = if why.contains("no dictionary") {
            vec![Ok(batch)]
        } else {
            vec![Ok(first), Ok(batch)]
        };
        let number = items.len() - 1;
        let stream = ArrayStream::from_batches(schema.build().unwrap(), items).unwrap();
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
    let lists = [Ok(builder.finish().unwrap())];
    let stream = ArrayStream::from_batches(list.build().unwrap(), lists).unwrap();
    assert!(stream.into_iter().next().unwrap().is_ok());
}

// SPDX-License-Identifier: Apache-2.0

//! Streams: iterators both ways, errors and their messages, and what a stream refuses.

use fletching::abi::{ArrowArrayStream, ArrowDeviceArray};
use fletching::{
    Array, ArrayStream, ArrowDeviceType, DeviceArray, DeviceArrayStream, Error, Options, Schema,
    SchemaBuilder, StreamReader,
};
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
fn batches_arrive_in_their_order() {
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
fn an_error_is_the_last_item_and_stays() {
    let batches = [Ok(batch(1)), Err(Error::new(71, "lost\0it")), Ok(batch(2))];
    let stream = DeviceArrayStream::from_batches(schema(), ArrowDeviceType::CPU, batches).unwrap();
    let mut reader = stream.into_iter();
    assert_eq!(lengths(reader.by_ref()), [1, -71]);
    let error = reader.schema().unwrap_err();
    assert_eq!((error.code(), error.message()), (71, "lost\\x00it"));
}

#[test]
fn a_panic_is_an_error() {
    let batches = std::iter::from_fn(|| panic!("no batch {}", 1));
    let stream = DeviceArrayStream::from_batches(schema(), ArrowDeviceType::CPU, batches).unwrap();
    let error = stream.into_iter().next().unwrap().unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (libc::EIO, "panic: no batch 1")
    );
}

#[test]
fn a_panic_while_a_panic_unwinds_does_not_abort() {
    struct Reads(Option<StreamReader<ArrowArrayStream>>);
    impl Drop for Reads {
        fn drop(&mut self) {
            assert!(std::thread::panicking());
            assert!(self.0.take().unwrap().next().unwrap().is_err());
        }
    }
    let batches = std::iter::from_fn(|| panic!("inner"));
    let stream = ArrayStream::from_batches(schema(), batches).unwrap();
    let reads = Reads(Some(stream.into_iter()));
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
    // SAFETY: the array is sound on any device: it is not read.
    unsafe { DeviceArray::from_raw(raw) }
}

#[test]
fn a_batch_on_another_device_is_refused_or_warned_of() {
    let on_cuda = |found: DeviceArray, options: Options| {
        // The producer's own check would warn of nothing: it drops warnings.
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
fn what_a_stream_needs() {
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
fn a_callback_that_is_null_is_an_error() {
    let mut raw = ArrayStream::from_batches(schema(), std::iter::empty())
        .unwrap()
        .into_raw();
    raw.get_next = None;
    // SAFETY: a stream that breaks a rule, which the reader has to notice.
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

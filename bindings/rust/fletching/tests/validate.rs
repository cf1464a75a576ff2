// SPDX-License-Identifier: Apache-2.0

//! Arrays and streams in the validation layer of `libfletching`.

#![cfg(all(feature = "validate", feature = "async", not(miri)))]

use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fletching::validate::{
    check, report_live, validate_handler, validate_stream, Finding, Level, Stress, Validation,
};
use fletching::{
    Array, ArrowDeviceType, AsyncOptions, AsyncProducer, AsyncStream, DeviceArray,
    DeviceArrayStream, Owner, Schema, SchemaBuilder,
};
use fletching_testing::corpus::{each, Kind};
use fletching_testing::library;
use smol::stream::StreamExt;

/// Loads the library by path; the loader then finds it by name. Locks out other tests, because
/// `report_live` reports their structs too.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    library::open("fletching").expect("libfletching");
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn schema(format: &str) -> Schema {
    SchemaBuilder::new(format).build().unwrap()
}

fn rules(findings: &[Finding]) -> Vec<&str> {
    findings
        .iter()
        .map(|finding| finding.rule.as_str())
        .collect()
}

#[test]
fn check_corpus_array_finds_expected_rule() {
    let _alone = alone();
    // SAFETY: the buffers of the corpus are as long as its structs and offsets specify.
    let data = unsafe { Level::data() };
    each(Kind::Array, |case| {
        let (mut schema, mut array) = (Schema::default(), DeviceArray::default());
        // SAFETY: the slots belong to owners.
        unsafe {
            case.export_schema(schema.out());
            case.export_array(array.out());
        }
        let shape = check(&array, &schema, Level::SHAPE).unwrap();
        let is_found = !case.accepted && !case.needs_data();
        assert_eq!(!shape.is_empty(), is_found, "{:?}: {shape:?}", case.name);
        let all = check(&array, &schema, data).unwrap();
        let is_named = case.rule().is_empty() || rules(&all).contains(&case.rule().as_str());
        assert_eq!(all.is_empty(), case.accepted, "{:?}: {all:?}", case.name);
        assert!(is_named, "{:?}: {all:?}", case.name);
    });
}

#[test]
fn check_array_of_other_type_describes_finding() {
    let _alone = alone();
    let array = Array::from(vec![1i32, 2]);
    assert_eq!(check(&array, &schema("i"), Level::SHAPE).unwrap(), []);
    let findings = check(&array, &schema("u"), Level::SHAPE).unwrap();
    assert_eq!(rules(&findings), ["array.n-buffers-of-type"]);
    let finding = &findings[0];
    assert_eq!(
        [&finding.severity, &finding.party, &finding.path],
        ["error", "producer", "array"]
    );
    let text = "array: n_buffers is wrong: expected 3, got 2 (rule array.n-buffers-of-type)";
    assert_eq!(finding.to_string(), text);
}

#[test]
fn check_released_array_returns_finding() {
    let _alone = alone();
    let released = DeviceArray::default();
    let findings = check(&released, &schema("i"), Level::SHAPE).unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
}

type Found = Arc<Mutex<Vec<Finding>>>;

/// Returns a stream of one array of type "i" under validation, and the list of findings.
fn stream(format: &str, how: impl Into<Validation>) -> (DeviceArrayStream, Found) {
    let batches = [Ok(Array::from(vec![1i32]).into())];
    let stream =
        DeviceArrayStream::from_batches(schema(format), ArrowDeviceType::CPU, batches).unwrap();
    let found = Found::default();
    let report = Arc::clone(&found);
    let add = move |finding| report.lock().unwrap().push(finding);
    (validate_stream(stream, how, add).unwrap(), found)
}

#[test]
fn validate_stream_correct_use_reports_no_finding() {
    let _alone = alone();
    let stress = Stress::POISON | Stress::MOVE | Stress::PRIVATE_DATA | Stress::THREAD;
    for how in [
        Level::SHAPE.into(),
        Level::SHAPE.with(stress | Stress::DELAY),
    ] {
        let (stream, found) = stream("i", how);
        let mut reader = stream.into_iter();
        assert_eq!(reader.next().unwrap().unwrap().length(), 1);
        assert!(reader.next().is_none());
        drop(reader);
        assert_eq!(*found.lock().unwrap(), []);
    }
}

#[test]
fn validate_stream_poisons_released_batch() {
    let _alone = alone();
    for (how, is_poisoned) in [
        (Level::PROTOCOL.into(), false),
        (Level::PROTOCOL.with(Stress::POISON), true),
        (Level::PROTOCOL.with(Stress::POISON | Stress::DELAY), true),
    ] {
        let mut raw = stream("i", how)
            .0
            .into_iter()
            .next()
            .unwrap()
            .unwrap()
            .into_raw();
        // SAFETY: the array is alive, and this is its last use.
        unsafe { raw.array.release.unwrap()(&mut raw.array) };
        assert_eq!(raw.array.length != 1, is_poisoned);
    }
}

#[test]
fn validate_stream_reports_batch_of_other_type_at_shape_level() {
    let _alone = alone();
    for (level, count) in [(Level::PROTOCOL, 0), (Level::SHAPE, 1)] {
        let (stream, found) = stream("u", level);
        let mut reader = stream.into_iter();
        reader.schema().unwrap(); // the layer compares the batches with it
        drop(reader.next());
        let found = found.lock().unwrap();
        assert_eq!(found.len(), count, "{found:?}");
        assert!(found.iter().all(|one| one.history.contains("get_next")));
    }
}

#[test]
fn validate_stream_catches_panic_of_report() {
    let _alone = alone();
    let (inner, _) = stream("u", Level::PROTOCOL);
    let stream = validate_stream(inner, Level::SHAPE, |_| panic!("report")).unwrap();
    let mut reader = stream.into_iter();
    reader.schema().unwrap();
    assert!(reader.next().unwrap().is_ok());
}

#[test]
fn validate_released_stream_returns_einval() {
    let _alone = alone();
    let released: Owner<fletching::abi::ArrowArrayStream> = Owner::default();
    let kept = Arc::new(());
    let report = Arc::clone(&kept);
    let error = validate_stream(released, Level::SHAPE, move |_| drop(Arc::clone(&report)));
    assert_eq!(error.unwrap_err().code(), 22);
    assert_eq!(Arc::strong_count(&kept), 1);
}

/// Returns a consumer's handler under validation, its stream, and the list of findings.
fn handler() -> (fletching::AsyncHandler, AsyncStream, Found) {
    let (handler, stream) = AsyncStream::new(AsyncOptions::default());
    let found = Found::default();
    let report = Arc::clone(&found);
    let add = move |finding| report.lock().unwrap().push(finding);
    (
        validate_handler(handler, Level::SHAPE, add).unwrap(),
        stream,
        found,
    )
}

#[test]
fn validate_handler_correct_stream_reports_no_finding() {
    let _alone = alone();
    let (handler, mut stream, found) = handler();
    let batches = smol::stream::iter([Ok(DeviceArray::from(Array::from(vec![1i32])))]);
    let sending = AsyncProducer::new(schema("i"), ArrowDeviceType::CPU, batches).send(handler);
    smol::block_on(smol::future::zip(sending, async {
        assert_eq!(stream.next().await.unwrap().unwrap().length(), 1);
        assert!(stream.next().await.is_none());
    }))
    .0
    .unwrap();
    assert_eq!(*found.lock().unwrap(), []);
}

#[test]
fn validate_handler_reports_batch_before_schema() {
    let _alone = alone();
    let (handler, _stream, found) = handler();
    let raw = handler.as_ptr();
    // SAFETY: the layer accepts calls in any order.
    let code = unsafe { (*raw).on_next_task.unwrap()(raw, ptr::null_mut(), ptr::null()) };
    assert_eq!(code, 22);
    drop(handler);
    let found = found.lock().unwrap();
    assert!(
        rules(&found).contains(&"async-schema.first-and-once"),
        "{found:?}"
    );
}

#[test]
fn report_live_counts_batch_of_caller() {
    let _alone = alone();
    let [(first, _), (second, found)] = [(); 2].map(|()| stream("i", Level::PROTOCOL));
    let batches = [first, second].map(|stream| stream.into_iter().next());
    assert_eq!(report_live().unwrap(), 2);
    assert_eq!(found.lock().unwrap().len(), 1);
    drop(batches);
}

// SPDX-License-Identifier: Apache-2.0

//! The owners around what another library made: the reference producer, which counts what is alive
//! and compares what is returned with its catalogue.

use std::ffi::{c_char, c_int, CStr, CString};
use std::sync::{Arc, Mutex};

use fletching::abi::{ArrowDeviceArray, ArrowSchema};
use fletching::{DeviceArray, Schema};
use fletching_testing::library;

#[repr(C)]
struct Message([u8; 1024]);

#[repr(C)]
#[derive(Debug, Default, PartialEq)]
struct Counters {
    live_allocations: i64,
    live_schemas: i64,
    live_arrays: i64,
    live_streams: i64,
    exported: i64,
    released: i64,
    double_released: i64,
}

library! {
    /// What the tests call in the reference producer.
    pub struct Producer from "fletching_producer" {
        count = FletchingProducerCaseCount() -> i32;
        name = FletchingProducerCaseName(i32) -> *const c_char;
        export = FletchingProducerExportArray(*const c_char, *const c_char, *mut ArrowSchema, *mut ArrowDeviceArray, *mut Message) -> c_int;
        verify = FletchingProducerVerifyArray(*const c_char, *const c_char, *const ArrowSchema, *const ArrowDeviceArray, *mut Message) -> c_int;
        read = FletchingProducerReadCounters(*mut Counters);
        reset = FletchingProducerResetCounters();
    }
}

/// The counters are those of the process.
static COUNTERS: Mutex<()> = Mutex::new(());

struct Played<'a> {
    producer: &'a Producer,
    case: CString,
}

impl Played<'_> {
    #[track_caller]
    fn expect_whole(&self, schema: &Schema, array: &DeviceArray) {
        let mut message = Message([0; 1024]);
        // SAFETY: structs of the catalogue.
        let code = unsafe {
            (self.producer.verify)(
                c"cpu".as_ptr(),
                self.case.as_ptr(),
                schema.as_raw(),
                array.as_raw(),
                &mut message,
            )
        };
        let text = CStr::from_bytes_until_nul(&message.0).unwrap();
        assert_eq!((code, text), (0, c""), "{:?}", self.case);
    }

    fn live_arrays(&self) -> i64 {
        let mut counters = Counters::default();
        // SAFETY: the counters are there to be written.
        unsafe { (self.producer.read)(&mut counters) };
        assert_eq!(counters.double_released, 0, "{:?}", self.case);
        counters.live_arrays
    }
}

/// Calls `play` with the structs of each case; after it nothing may be left.
fn each(play: impl Fn(&Played<'_>, Schema, DeviceArray)) {
    let _one = COUNTERS
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let producer = Producer::load().unwrap();
    // SAFETY: the functions of the producer, with indices that it has.
    unsafe {
        let count = (producer.count)();
        assert!(count > 0);
        for index in 0..count {
            (producer.reset)();
            let case = CString::from(CStr::from_ptr((producer.name)(index)));
            let (mut schema, mut array) = (Schema::default(), DeviceArray::default());
            let message = std::ptr::null_mut();
            let name = case.as_ptr();
            let code = (producer.export)(c"cpu".as_ptr(), name, schema.out(), array.out(), message);
            assert_eq!(code, 0, "{case:?}");
            play(
                &Played {
                    producer: &producer,
                    case: case.clone(),
                },
                schema,
                array,
            );
            let mut counters = Counters::default();
            (producer.read)(&mut counters);
            let exported = counters.exported;
            let expected = Counters {
                exported,
                released: exported,
                ..Counters::default()
            };
            assert_eq!(counters, expected, "{case:?}");
        }
    }
}

#[test]
fn moves_keep_the_data() {
    each(|played, schema, array| {
        let (mut schema, mut array) = (schema.into_raw(), array.into_raw());
        // SAFETY: structs that are ours.
        let (schema, array) = unsafe {
            (
                Schema::move_from(&mut schema),
                DeviceArray::move_from(&mut array),
            )
        };
        played.expect_whole(&schema, &array);
    });
}

#[test]
fn views_have_the_data_and_keep_it() {
    each(|played, schema, array| {
        let (shared_schema, shared) = (schema.share().unwrap(), array.share().unwrap());
        let (schema, array) = (shared_schema.view().unwrap(), shared.view().unwrap());
        drop((shared_schema, shared));
        played.expect_whole(&schema, &array);
    });
}

#[test]
fn children_outlive_their_parent() {
    each(|played, mut schema, mut array| {
        let count = array.children().len();
        let take = |index| {
            (
                schema.take_child(index).unwrap(),
                array.take_child(index).unwrap(),
            )
        };
        let children: Vec<_> = (0..count).map(take).collect();
        drop((schema, array));
        for (schema, array) in &children {
            assert!(array.length() >= 0 && !schema.format().is_empty());
        }
        assert_eq!(played.live_arrays() == 0, count == 0);
    });
}

#[test]
fn an_object_is_attached() {
    each(|played, mut schema, mut array| {
        let object = Arc::new(());
        array.attach(Arc::clone(&object)).unwrap();
        schema.attach(Arc::clone(&object)).unwrap();
        played.expect_whole(&schema, &array);
        assert_eq!(Arc::strong_count(&object), 3);
        drop((array, schema));
        assert_eq!(Arc::strong_count(&object), 1);
    });
}

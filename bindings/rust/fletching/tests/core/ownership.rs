// SPDX-License-Identifier: Apache-2.0

//! Owners: moves, releases, accessors, attached objects.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use fletching::abi::{ArrowArray, ArrowDeviceArray};
use fletching::{Array, ArrayStream, ArrowDeviceType, DeviceArray, DeviceArrayStream, Schema};

use crate::foreign::{array, bare_schema, device_array, raw_device_array, Log, Note};

#[test]
fn owners_are_send() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Schema>();
    is_sync::<Schema>();
    is_send::<DeviceArray>();
    is_sync::<DeviceArray>();
    is_send::<ArrayStream>();
    is_send::<DeviceArrayStream>();
}

/// `true` if `T` is `Sync`: an inherent constant takes precedence over a trait's.
struct IsSync<T>(std::marker::PhantomData<T>);
trait NotSync {
    const VALUE: bool = false;
}
impl<T> NotSync for T {}
impl<T: Sync> IsSync<T> {
    const VALUE: bool = true;
}

#[test]
fn rule_stream_calls_serialized() {
    let found = [IsSync::<Array>::VALUE, IsSync::<ArrayStream>::VALUE];
    assert_eq!(found, [true, false]);
}

#[test]
fn rule_device_stream_calls_serialized() {
    let found = [
        IsSync::<DeviceArray>::VALUE,
        IsSync::<DeviceArrayStream>::VALUE,
    ];
    assert_eq!(found, [true, false]);
}

/// Whether the first 88 bytes of the struct, which contain no padding, are zero.
fn is_all_zero(raw: *const ArrowDeviceArray) -> bool {
    // SAFETY: the struct is valid and completely written.
    let bytes = unsafe { std::slice::from_raw_parts(raw.cast::<MaybeUninit<u8>>(), 88) };
    // SAFETY: the fields before byte 88 have no padding.
    bytes.iter().all(|byte| unsafe { byte.assume_init() } == 0)
}

#[test]
#[cfg(target_pointer_width = "64")]
fn out_releases_old_struct_and_returns_zeroed_slot() {
    let log = Log::default();
    let mut raw = raw_device_array(&log, "a", 0, false);
    raw.reserved[1] = 7;
    // SAFETY: the struct conforms to the specification, except for the reserved field.
    let mut owner = unsafe { DeviceArray::from_raw(raw) };
    let slot = owner.out();
    assert!(is_all_zero(slot));
    log.expect(&["a", "event"]);
    // SAFETY: the slot belongs to the owner.
    unsafe {
        assert_eq!(
            ((*slot).reserved, (*slot).sync_event),
            ([0; 3], ptr::null_mut())
        );
        slot.write(raw_device_array(&log, "b", 0, false));
    }
    assert!(!owner.is_released());
    drop(owner);
    log.expect(&["a", "event", "b", "event"]);
}

#[test]
fn assignment_releases_old_struct() {
    let log = Log::default();
    let mut owner = array(&log, "a", 0);
    assert_eq!(owner.length(), 1);
    owner = array(&log, "b", 0);
    log.expect(&["a"]);
    assert!(!owner.is_released());
    owner = Array::default();
    assert!(owner.is_released());
    log.expect(&["a", "b"]);
}

#[test]
fn released_struct_reads_as_empty() {
    let mut raw = ArrowDeviceArray::zeroed();
    raw.array.length = 5;
    raw.array.null_count = 6;
    raw.array.offset = 7;
    raw.array.n_buffers = 8;
    raw.array.n_children = 9;
    raw.device_type = ArrowDeviceType::CUDA;
    raw.device_id = 3;
    raw.sync_event = ptr::dangling_mut::<u64>().cast();
    // SAFETY: the struct is released.
    let mut array = unsafe { DeviceArray::from_raw(raw) };
    assert!(array.is_released());
    assert_eq!(
        (array.length(), array.null_count(), array.offset()),
        (0, 0, 0)
    );
    assert_eq!(
        (array.device_type(), array.device_id()),
        (ArrowDeviceType(0), -1)
    );
    assert!(array.sync_event().is_null() && array.buffers().is_empty());
    assert!(array.children().is_empty() && array.dictionary().is_none());
    assert!(array.take_child(0).is_err() && array.take_dictionary().is_err());
    assert!(array.attach(1).is_err());
    assert!(array.as_array().is_released());
    assert!(Array::try_from(array).unwrap().is_released());

    let schema = Schema::default();
    assert_eq!(
        (schema.format(), schema.name(), schema.flags()),
        (c"", c"", 0)
    );
    assert!(schema.metadata().unwrap().is_empty());
    assert_eq!(
        DeviceArrayStream::default().device_type(),
        ArrowDeviceType(0)
    );
    assert_eq!(ArrayStream::default().device_type(), ArrowDeviceType(0));
}

#[test]
fn accessors_return_fields() {
    let log = Log::default();
    let mut raw = raw_device_array(&log, "a", 2, true);
    raw.array.null_count = -1;
    raw.array.offset = 4;
    // SAFETY: the struct conforms to the specification.
    let array = unsafe { DeviceArray::from_raw(raw) };
    assert_eq!(
        (array.length(), array.null_count(), array.offset()),
        (1, -1, 4)
    );
    assert_eq!(
        (array.device_type(), array.device_id()),
        (ArrowDeviceType::CUDA, 3)
    );
    assert_eq!(array.sync_event(), array.as_raw().sync_event);
    assert_eq!(array.buffers().len(), 2);
    assert_eq!(
        (array.children().len(), array.as_array().children().len()),
        (2, 2)
    );
    assert!(ptr::eq(
        array.children()[1].unwrap().as_raw(),
        crate::foreign::child_of(&array, 1)
    ));
    assert!(ptr::eq(
        array.dictionary().unwrap().as_raw(),
        array.as_raw().array.dictionary
    ));
    assert!(
        format!("{array:?}").starts_with("Owner(ArrowDeviceArray"),
        "{array:?}"
    );

    let schema =
        bare_schema(|raw| (raw.format, raw.name, raw.flags) = (c"i".as_ptr(), c"n".as_ptr(), 6));
    assert_eq!(
        (schema.format(), schema.name(), schema.flags()),
        (c"i", c"n", 6)
    );
    let schema = bare_schema(|raw| raw.format = std::ptr::null());
    assert_eq!(
        (schema.format(), schema.name(), schema.flags()),
        (c"", c"", 0)
    );
    assert!(schema.metadata().unwrap().is_empty());
}

#[test]
fn malformed_child_lists_read_as_empty() {
    for count in [-1, i64::MIN, (1 << 22) + 1, i64::from(i32::MAX), i64::MAX] {
        let schema = bare_schema(|raw| {
            raw.n_children = count;
            raw.children = ptr::dangling_mut();
        });
        assert!(schema.children().is_empty(), "{count}");
    }
    let schema = bare_schema(|raw| raw.n_children = 1);
    assert!(schema.children().is_empty());
    let mut list = [ptr::null_mut()];
    let schema = bare_schema(|raw| (raw.n_children, raw.children) = (1, list.as_mut_ptr()));
    assert!(schema.children()[0].is_none());
}

#[test]
fn array_converts_to_device_array_and_back() {
    let log = Log::default();
    let device = DeviceArray::from(array(&log, "a", 0));
    assert_eq!(
        (device.device_type(), device.device_id()),
        (ArrowDeviceType::CPU, -1)
    );
    assert!(device.sync_event().is_null());
    let back = Array::try_from(device).unwrap();
    assert_eq!(back.length(), 1);
    log.expect(&[]);

    let mut with_event = DeviceArray::from(back).into_raw();
    with_event.sync_event = ptr::dangling_mut::<u64>().cast();
    // SAFETY: no code waits on the event.
    let with_event = unsafe { DeviceArray::from_raw(with_event) };
    crate::foreign::refused(
        Array::try_from(with_event),
        "Array::try_from: sync_event not NULL: expected none on cpu",
    );
    log.expect(&["a"]);
    crate::foreign::refused(
        Array::try_from(device_array(&log, "b", 0, false)),
        "Array::try_from: wrong device type: expected cpu, got cuda",
    );
    log.expect(&["a", "b", "event"]);
}

// --- Attached objects ---------------------------------------------------------------------------

#[test]
fn attached_objects_drop_in_order_after_release() {
    let log = Log::default();
    let mut array = device_array(&log, "a", 1, false);
    array.attach(Note(log.clone(), "first")).unwrap();
    array.attach(Note(log.clone(), "second")).unwrap();
    array.attach(Note(log.clone(), "third")).unwrap();
    let moved = array;
    drop(moved);
    log.expect(&["a0", "a", "event", "first", "second", "third"]);

    let object = Arc::new(());
    let mut schema = bare_schema(|_| ());
    schema.attach(Arc::clone(&object)).unwrap();
    assert_eq!(Arc::strong_count(&object), 2);
    drop(schema);
    assert_eq!(Arc::strong_count(&object), 1);
}

/// The number of repetitions that would overflow the stack in a recursion.
pub const MANY: usize = if cfg!(miri) { 300 } else { 1 << 17 };

#[test]
fn many_attached_objects_drop_without_recursion() {
    let object = Arc::new(());
    let mut array = Array::from(vec![1]);
    let mut schema = bare_schema(|_| ());
    for _ in 0..MANY {
        array.attach(Arc::clone(&object)).unwrap();
        schema.attach(Arc::clone(&object)).unwrap();
    }
    assert_eq!(Arc::strong_count(&object), 1 + 2 * MANY);
    drop(array);
    assert_eq!(Arc::strong_count(&object), 1 + MANY);
    drop(schema);
    assert_eq!(Arc::strong_count(&object), 1);
}

/// The release of a foreign array with an event is deferred once, even if objects are attached
/// between two children.
#[test]
fn alternating_children_and_objects_drop_without_recursion() {
    let log = Log::default();
    let object = Arc::new(());
    let mut array = device_array(&log, "a", 2, true);
    let mut children = Vec::new();
    for index in 0..2 {
        children.push(array.take_child(index).unwrap());
        for _ in 0..MANY / 2 {
            array.attach(Arc::clone(&object)).unwrap();
        }
    }
    children.push(array.take_dictionary().unwrap());
    array.attach(Note(log.clone(), "object")).unwrap();
    drop(array);
    log.expect(&["object"]);
    assert_eq!(Arc::strong_count(&object), 1);
    drop(children);
    log.expect(&["object", "a0", "a1", "ad", "a", "event"]);
}

#[test]
fn hook_marks_struct_if_release_does_not() {
    unsafe extern "C" fn forget(_: *mut ArrowArray) {}
    let mut raw = ArrowArray::zeroed();
    raw.release = Some(forget);
    // SAFETY: the array owns nothing.
    let mut array = unsafe { Array::from_raw(raw) };
    let object = Arc::new(());
    array.attach(Arc::clone(&object)).unwrap();
    let mut raw = array.into_raw();
    let release = raw.release.unwrap();
    // SAFETY: the array is owned by the test.
    unsafe { release(&mut raw) };
    assert!(raw.is_released());
    assert_eq!(Arc::strong_count(&object), 1);
    // A second call, which a consumer must not make, is harmless.
    // SAFETY: the callback checks for a released struct.
    unsafe { release(&mut raw) };
    assert_eq!(Arc::strong_count(&object), 1);
}

#[test]
fn panic_in_attached_object_drop_is_caught() {
    struct PanicOnDrop(Arc<AtomicUsize>);
    impl Drop for PanicOnDrop {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("dropped");
        }
    }
    let (log, drops) = (Log::default(), Arc::new(AtomicUsize::new(0)));
    let mut array = array(&log, "a", 0);
    array.attach(Note(log.clone(), "before")).unwrap();
    array.attach(PanicOnDrop(Arc::clone(&drops))).unwrap();
    array.attach(Note(log.clone(), "after")).unwrap();
    drop(array);
    log.expect(&["a", "before", "after"]);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

// --- Release callbacks that free their struct
// -----------------------------------------------------

/// The callback frees the original memory of its struct.
#[test]
fn release_callback_may_free_struct_memory() {
    unsafe extern "C" fn free(this: *mut ArrowArray) {
        // SAFETY: `private_data` is the address of the original struct; `this` is the copy moved
        // for the release.
        unsafe {
            (*this).release = None;
            drop(Box::from_raw((*this).private_data.cast::<ArrowArray>()));
        }
    }
    let place = Box::into_raw(Box::new(ArrowArray::zeroed()));
    // SAFETY: the struct was just allocated.
    unsafe {
        (*place).private_data = place.cast();
        (*place).release = Some(free);
        ArrowArray::release_once(place);
    }
}

#[test]
fn move_to_and_into_raw_transfer_ownership() {
    let log = Log::default();
    let mut target = ArrowArray::zeroed();
    // SAFETY: the target is valid.
    unsafe { array(&log, "a", 0).move_to(&mut target) };
    assert!(!target.is_released());
    log.expect(&[]);
    // SAFETY: the array was moved there.
    drop(unsafe { Array::move_from(&mut target) });
    log.expect(&["a"]);
    let mut raw = array(&log, "b", 0).into_raw();
    log.expect(&["a"]);
    // SAFETY: the array is owned by the test.
    unsafe { ArrowArray::release_once(&mut raw) };
    log.expect(&["a", "b"]);
}

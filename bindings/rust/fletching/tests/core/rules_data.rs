// SPDX-License-Identifier: Apache-2.0

//! The rules of the data and the device data interface: who owns what, who touches what, and what
//! an array of ours has.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

use fletching::abi::{ArrowArray, ArrowDeviceArray, ArrowSchema};
use fletching::{Array, ArrayStream, ArrowDeviceType, DeviceArray, Error, Schema, SchemaBuilder};

use crate::array_builder::{batch, batch_of, columns, cpu_batch};
use crate::foreign::{array, bare_schema, raw_device_array, Log};

thread_local! {
    /// What the release callbacks of this file were called with, on the thread of a test.
    static SEEN: Cell<(usize, *mut c_void, i64)> = const { Cell::new((0, ptr::null_mut(), 0)) };
}

/// Not an address: a read through it crashes.
pub fn nowhere() -> *mut c_void {
    ptr::without_provenance_mut(1)
}

unsafe extern "C" fn see(this: *mut ArrowArray) {
    // SAFETY: called with an array.
    let array = unsafe { &mut *this };
    SEEN.set((SEEN.get().0 + 1, array.private_data, array.length));
    array.release = None;
}

unsafe extern "C" fn see_and_forget(this: *mut ArrowArray) {
    // SAFETY: called with an array.
    unsafe { see(this) };
    // SAFETY: as above.
    unsafe { (*this).release = Some(see_and_forget) };
}

/// An array that owns nothing.
fn seen(change: impl FnOnce(&mut ArrowArray)) -> Array {
    let mut raw = ArrowArray::zeroed();
    raw.release = Some(see);
    change(&mut raw);
    // SAFETY: it points to nothing but what `change` has set.
    unsafe { Array::from_raw(raw) }
}

// --- Release ------------------------------------------------------------------------------------

#[test]
fn rule_release_once() {
    let log = Log::default();
    let mut raw = array(&log, "a", 0).into_raw();
    // SAFETY: the array is ours.
    unsafe {
        let first = Array::move_from(&mut raw);
        let second = Array::move_from(&mut raw);
        drop((first, second));
    }
    log.expect(&["a"]);
}

/// A producer that does not mark the struct is not called again.
#[test]
fn rule_release_marks_released() {
    drop(seen(|raw| raw.release = Some(see_and_forget)));
    assert_eq!(SEEN.get().0, 1);
    let mut ours = Array::from(vec![1_i32]).into_raw();
    let release = ours.release.unwrap();
    // SAFETY: the array is ours. The callback looks for a released struct.
    unsafe {
        release(&mut ours);
        assert!(ours.is_released());
        release(&mut ours);
    }
}

#[test]
fn rule_release_check_before_use() {
    let array = seen(|raw| {
        (raw.length, raw.n_children, raw.n_buffers) = (5, 1, 1);
        (raw.release, raw.children, raw.buffers) = (None, nowhere().cast(), nowhere().cast());
        raw.dictionary = nowhere().cast();
    });
    assert!(array.is_released() && array.children().is_empty() && array.buffers().is_empty());
    assert!(array.dictionary().is_none());
    assert_eq!(array.length(), 0);
}

#[test]
fn rule_release_not_on_children() {
    let log = Log::default();
    let mut parent = array(&log, "a", 2);
    let child = parent.take_child(0).unwrap();
    log.expect(&[]);
    assert!(parent.children()[0].unwrap().is_released());
    assert!(!parent.children()[1].unwrap().is_released());
    drop((child, parent));
    log.expect(&["a0", "a1", "a"]);
}

#[test]
fn rule_release_address_independent() {
    let log = Log::default();
    let mut raw = Box::new(batch(&log, 2).into_raw());
    let place = &raw mut *raw;
    let mut elsewhere = Box::new(MaybeUninit::<ArrowDeviceArray>::uninit());
    // SAFETY: a move as C does it; then garbage where the struct was.
    unsafe {
        ptr::copy_nonoverlapping(place, elsewhere.as_mut_ptr(), 1);
        ptr::write_bytes(place, 0, 1);
        (*place).array.private_data = nowhere();
        drop(DeviceArray::move_from(elsewhere.as_mut_ptr()));
    }
    log.expect(&["dropped"]);
}

#[test]
fn rule_release_walks_children() {
    let log = Log::default();
    let mut batch = cpu_batch(&log, 2);
    // The block, and the other child in it, lives on.
    let kept = batch.take_child(0).unwrap();
    let other = crate::foreign::child_of(&batch, 1);
    drop(batch);
    // SAFETY: the child is in the block.
    assert!(unsafe { (*other).is_released() });
    log.expect(&[]);
    drop(kept);
    log.expect(&["dropped"]);
}

#[test]
fn rule_release_frees_data() {
    let log = Log::default();
    drop(batch(&log, 2));
    log.expect(&["dropped"]);
}

#[test]
fn rule_device_array_release_frees_device_data() {
    let log = Log::default();
    drop(batch_of(columns(&log, 3), ArrowDeviceType::ROCM).unwrap());
    log.expect(&["dropped"]);
}

/// Everything that can be asked of an array whose release frees its lists and leaves garbage.
#[test]
fn rule_release_no_access_after() {
    unsafe extern "C" fn leave_garbage(this: *mut ArrowArray) {
        // SAFETY: the test made the array.
        unsafe {
            drop(Box::from_raw(
                (*this).children.cast::<[*mut ArrowArray; 1]>(),
            ));
            ptr::write_bytes(this.cast::<u8>(), 0xA5, size_of::<ArrowArray>() / 2);
            (*this).release = None;
        }
    }
    let list = Box::into_raw(Box::new([ptr::null_mut::<ArrowArray>()]));
    let mut raw = ArrowDeviceArray::zeroed();
    (raw.array.n_children, raw.array.children) = (1, list.cast());
    raw.array.release = Some(leave_garbage);
    // SAFETY: the array is ours.
    let mut array = unsafe {
        leave_garbage(&mut raw.array);
        DeviceArray::from_raw(raw)
    };
    assert_eq!((array.length(), array.null_count()), (0, 0));
    assert_eq!(array.device_type(), ArrowDeviceType(0));
    assert!(array.children().is_empty() && array.take_child(0).is_err());
    assert!(array.take_dictionary().is_err() && array.attach(1).is_err());
    assert!(array.share().is_err());
}

/// Where a consumer has room for a struct, full of what was there before.
fn dirty<T>() -> MaybeUninit<T> {
    let mut room = MaybeUninit::uninit();
    // SAFETY: the room is there.
    unsafe { ptr::write_bytes(room.as_mut_ptr(), 0xA5, 1) };
    room
}

#[test]
fn rule_release_base_allocated_by_consumer() {
    let batches = [Ok(Array::from(vec![1_i32, 2]))];
    let schema = SchemaBuilder::new("i").build().unwrap();
    let mut stream = ArrayStream::from_batches(schema, batches)
        .unwrap()
        .into_raw();
    let mut room = dirty::<ArrowSchema>();
    // SAFETY: a stream of ours, and a room for its result.
    unsafe {
        assert_eq!(
            stream.get_schema.unwrap()(&mut stream, room.as_mut_ptr()),
            0
        );
        let schema = Schema::from_raw(room.assume_init());
        assert_eq!((schema.format(), schema.as_raw().n_children), (c"i", 0));
        drop(ArrayStream::from_raw(stream));
    }
}

#[test]
fn rule_device_array_base_allocated_by_consumer() {
    let batches = [Ok::<_, Error>(DeviceArray::from(Array::from(vec![
        1_i32, 2,
    ])))];
    let schema = SchemaBuilder::new("i").build().unwrap();
    let stream = fletching::DeviceArrayStream::from_batches(schema, ArrowDeviceType::CPU, batches);
    let mut stream = stream.unwrap().into_raw();
    for length in [2, 0] {
        let mut room = dirty::<ArrowDeviceArray>();
        // SAFETY: a stream of ours, and a room for its result.
        unsafe {
            assert_eq!(stream.get_next.unwrap()(&mut stream, room.as_mut_ptr()), 0);
            let array = DeviceArray::from_raw(room.assume_init());
            assert_eq!((array.length(), array.is_released()), (length, length == 0));
            assert_eq!(array.as_raw().reserved, [0; 3]);
            assert!(array.as_raw().sync_event.is_null());
        }
    }
    // SAFETY: the stream is ours.
    drop(unsafe { fletching::DeviceArrayStream::from_raw(stream) });
}

#[test]
fn rule_release_members_owned_by_producer() {
    let mut name = String::from("a name that is longer than most");
    let schema = SchemaBuilder::new("i").name(&*name).build().unwrap();
    name.replace_range(.., "?");
    assert_eq!(schema.name(), c"a name that is longer than most");
    let owner: Arc<[i32]> = Arc::from([1, 2]);
    let array = Array::from_values::<i32>(Arc::clone(&owner));
    let moved = array;
    assert_eq!(
        (moved.buffers()[1], Arc::strong_count(&owner)),
        (owner.as_ptr().cast(), 2)
    );
    drop(moved);
    assert_eq!(Arc::strong_count(&owner), 1);
}

#[test]
fn rule_device_array_members_owned_by_producer() {
    let log = Log::default();
    let mut batch = batch(&log, 1);
    let event = batch.sync_event();
    let child = batch.take_child(0).unwrap();
    drop(batch);
    log.expect(&[]);
    assert_eq!(child.sync_event(), event);
    // SAFETY: the event of the batch.
    assert_eq!(unsafe { *event.cast::<u64>() }, 7);
    drop(child);
    log.expect(&["dropped"]);
}

/// What a consumer received is what it returns, and nothing below was touched.
#[test]
fn rule_release_consumer_frees_nothing() {
    let mut child = ArrowArray::zeroed();
    child.release = Some(see);
    let mut list = [&raw mut child];
    let mut buffers = [ptr::null(), nowhere().cast_const()];
    let raw = seen(|raw| {
        (raw.length, raw.n_buffers, raw.buffers) = (4, 2, buffers.as_mut_ptr());
        (raw.n_children, raw.children, raw.private_data) = (1, list.as_mut_ptr(), nowhere());
    });
    let moved = DeviceArray::from(raw);
    let shared = moved.share().unwrap();
    drop((shared.column(0).unwrap(), shared.view().unwrap()));
    assert_eq!(SEEN.get().0, 0);
    drop(shared);
    assert_eq!(SEEN.get(), (1, nowhere(), 4));
    assert!(!child.is_released() && list[0] == &raw mut child);
}

// --- What the callbacks of a producer find ------------------------------------------------------

#[test]
fn rule_array_private_data_untouched() {
    let mut state = 0_u8;
    let state = (&raw mut state).cast();
    let mut array = seen(|raw| raw.private_data = state);
    array.attach(Arc::new(())).unwrap();
    drop(array);
    assert_eq!(SEEN.get(), (1, state, 0));
}

#[test]
fn rule_schema_private_data_untouched() {
    unsafe extern "C" fn compare(this: *mut ArrowSchema) {
        // SAFETY: called with a schema.
        let schema = unsafe { &mut *this };
        SEEN.set((SEEN.get().0 + 1, schema.private_data, 0));
        schema.release = None;
    }
    let mut schema = bare_schema(|raw| {
        (raw.format, raw.private_data) = (c"i".as_ptr(), nowhere());
        raw.release = Some(compare);
    });
    schema.attach(Arc::new(())).unwrap();
    let shared = schema.share().unwrap();
    let view = shared.view().unwrap();
    drop(shared);
    assert_eq!((view.format(), SEEN.get().0), (c"i", 0));
    drop(view);
    assert_eq!(SEEN.get(), (1, nowhere(), 0));
}

/// The callback is that of the array inside, and gets it.
#[test]
fn rule_device_array_release_through_array() {
    let inside = seen(|raw| raw.length = 7);
    drop(DeviceArray::from(inside));
    assert_eq!(SEEN.get(), (1, ptr::null_mut(), 7));
}

#[test]
fn rule_device_array_released_like_array() {
    let mut raw = ArrowDeviceArray::zeroed();
    raw.device_type = ArrowDeviceType::CUDA;
    // SAFETY: a released struct.
    assert!(unsafe { DeviceArray::from_raw(raw) }.is_released());
}

#[test]
fn rule_schema_name_null_accepted() {
    assert_eq!(bare_schema(|_| ()).name(), c"");
    assert_eq!(bare_schema(|raw| raw.name = c"".as_ptr()).name(), c"");
}

#[test]
fn rule_array_null_count_unknown_accepted() {
    let array = seen(|raw| (raw.length, raw.null_count) = (3, -1));
    let shared = array.share().unwrap();
    assert_eq!(shared.view().unwrap().null_count(), -1);
}

#[test]
fn rule_array_buffers_null_accepted() {
    let mut buffers = [ptr::null(), ptr::null()];
    let array = seen(|raw| (raw.n_buffers, raw.buffers) = (2, buffers.as_mut_ptr()));
    let shared = array.share().unwrap();
    assert_eq!(shared.view().unwrap().buffers(), [ptr::null(); 2]);
    let none = seen(|_| ());
    assert!(none.buffers().is_empty());
}

#[test]
fn rule_sync_event_null_accepted() {
    let log = Log::default();
    let mut raw = raw_device_array(&log, "a", 1, false);
    raw.sync_event = ptr::null_mut();
    // SAFETY: as the texts ask.
    let mut array = unsafe { DeviceArray::from_raw(raw) };
    assert!(array.take_child(0).unwrap().sync_event().is_null());
}

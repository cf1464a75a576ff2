// SPDX-License-Identifier: Apache-2.0

//! Moves and releases: exactly once, at the right address, and not for a NULL or released struct.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use fletching_abi::{
    ArrowArray, ArrowArrayStream, ArrowAsyncDeviceStreamHandler, ArrowDeviceArray,
    ArrowDeviceArrayStream, ArrowSchema, DLManagedTensor, DLManagedTensorVersioned,
};

thread_local! {
    /// The calls of `count` and `free` in the test that runs on this thread.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Neither releases the struct nor marks it as released, like some producers.
unsafe extern "C" fn count<T>(_: *mut T) {
    CALLS.set(CALLS.get() + 1);
}

macro_rules! test_release_after_move {
    ($($test:ident: $struct:ident.$($callback:ident).+;)*) => {$(
        #[test]
        fn $test() {
            CALLS.set(0);
            let mut filled = $struct::zeroed();
            assert!(filled.is_released());
            filled.$($callback).+ = Some(count);
            assert!(!filled.is_released());

            let mut moved = filled.move_out();
            assert!(filled.is_released() && !moved.is_released());
            // SAFETY: NULL, a struct that was moved out, and a filled struct.
            unsafe {
                $struct::release_once(ptr::null_mut());
                $struct::release_once(&mut filled);
                assert_eq!(CALLS.get(), 0);
                $struct::release_once(&mut moved);
                $struct::release_once(&mut moved);
            }
            assert!(moved.is_released());
            assert_eq!(CALLS.get(), 1);
        }
    )*};
}

test_release_after_move! {
    release_moved_schema_once: ArrowSchema.release;
    release_moved_array_once: ArrowArray.release;
    release_moved_device_array_once: ArrowDeviceArray.array.release;
    release_moved_stream_once: ArrowArrayStream.release;
    release_moved_device_stream_once: ArrowDeviceArrayStream.release;
}

#[test]
fn move_out_copies_all_fields() {
    let mut source = ArrowDeviceArray::zeroed();
    source.array.length = 1;
    source.array.private_data = (&raw mut source).cast();
    source.device_id = 2;
    source.reserved = [3, 4, 5];
    let moved = source.move_out();
    assert_eq!(moved.array.length, 1);
    assert_eq!(moved.array.private_data, (&raw mut source).cast::<c_void>());
    assert_eq!((moved.device_id, moved.reserved), (2, [3, 4, 5]));
}

/// Frees the original memory of the struct, to which the private data points.
unsafe extern "C" fn free_original(array: *mut ArrowArray) {
    // SAFETY: the test stored the address.
    unsafe {
        let place = (*array).private_data.cast::<ArrowArray>();
        if array != place && (*place).is_released() {
            drop(Box::from_raw(place));
            CALLS.set(1);
        }
    }
}

#[test]
fn release_callback_may_free_struct_memory() {
    CALLS.set(0);
    let place = Box::into_raw(Box::new(ArrowArray::zeroed()));
    // SAFETY: the memory is valid until the callback frees it.
    unsafe {
        (*place).private_data = place.cast();
        (*place).release = Some(free_original);
        ArrowArray::release_once(place);
    }
    assert_eq!(CALLS.get(), 1, "the callback gets a moved struct");
}

unsafe extern "C" fn free<T>(this: *mut T) {
    // SAFETY: the test boxed the struct.
    unsafe { drop(Box::from_raw(this)) };
    CALLS.set(CALLS.get() + 1);
}

macro_rules! test_release_in_place {
    ($($test:ident: $struct:ident.$callback:ident;)*) => {$(
        #[test]
        fn $test() {
            CALLS.set(0);
            let filled = Box::into_raw(Box::new($struct::zeroed()));
            // SAFETY: NULL, a struct without a callback, and a struct that frees itself.
            unsafe {
                $struct::release_once(ptr::null_mut());
                $struct::release_once(filled);
                assert_eq!(CALLS.get(), 0);
                (*filled).$callback = Some(free);
                $struct::release_once(filled);
            }
            assert_eq!(CALLS.get(), 1);
        }
    )*};
}

test_release_in_place! {
    release_handler_in_place: ArrowAsyncDeviceStreamHandler.release;
    release_tensor_in_place: DLManagedTensor.deleter;
    release_versioned_tensor_in_place: DLManagedTensorVersioned.deleter;
}

#[test]
fn handler_is_released_without_callback() {
    let mut handler = ArrowAsyncDeviceStreamHandler::zeroed();
    assert!(handler.is_released());
    handler.release = Some(count);
    assert!(!handler.is_released());
}

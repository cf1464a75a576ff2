// SPDX-License-Identifier: Apache-2.0

//! Calls each callback through its function: checks the arguments and the result.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use fletching_abi::*;

/// Calls the callbacks of a struct: first without a function, then with one that records each
/// argument as an address and returns the expected result.
macro_rules! test_calls {
    ($($test:ident: $struct:ident {$(
        $call:ident, $callback:ident($($argument:ident: $type:ty = $value:expr),*)
            $(-> $result:ty = $expected:expr)?;
    )*})*) => {$(
        #[test]
        fn $test() {
            $({
                // Static, because a C callback has no captures.
                static mut SEEN: Vec<usize> = Vec::new();
                unsafe extern "C" fn callback(
                    this: *mut $struct $(, $argument: $type)*
                ) $(-> $result)? {
                    // SAFETY: only one thread of one test uses it.
                    unsafe { (*&raw mut SEEN).extend([this as usize $(, $argument as usize)*]) };
                    $($expected)?
                }
                let mut object = $struct::zeroed();
                let this = &raw mut object;
                // SAFETY: the struct is alive, and the callback dereferences no pointer.
                unsafe {
                    assert_eq!($struct::$call(this $(, $value)*), None);
                    (*this).$callback = Some(callback);
                    let result = $struct::$call(this $(, $value)*);
                    assert_eq!(result, Some(test_calls!(@result $($expected)?)));
                    let expected = [this as usize $(, $value as $type as usize)*];
                    assert_eq!(*&raw const SEEN, expected, stringify!($callback));
                }
            })*
        }
    )*};
    (@result $expected:expr) => { $expected };
    (@result) => { () };
}

test_calls! {
    call_stream_callbacks: ArrowArrayStream {
        call_get_schema, get_schema(out: *mut ArrowSchema = ptr::without_provenance_mut(8))
            -> c_int = 5;
        call_get_next, get_next(out: *mut ArrowArray = ptr::without_provenance_mut(8))
            -> c_int = -1;
        call_get_last_error, get_last_error() -> *const c_char = c"text".as_ptr();
    }
    call_device_stream_callbacks: ArrowDeviceArrayStream {
        call_get_schema, get_schema(out: *mut ArrowSchema = ptr::without_provenance_mut(8))
            -> c_int = 5;
        call_get_next, get_next(out: *mut ArrowDeviceArray = ptr::without_provenance_mut(8))
            -> c_int = -1;
        call_get_last_error, get_last_error() -> *const c_char = ptr::null();
    }
    call_task_callbacks: ArrowAsyncTask {
        call_extract_data, extract_data(out: *mut ArrowDeviceArray = ptr::null_mut())
            -> c_int = 22;
    }
    call_producer_callbacks: ArrowAsyncProducer {
        call_request, request(n: i64 = -3);
        call_cancel, cancel();
    }
    call_handler_callbacks: ArrowAsyncDeviceStreamHandler {
        call_on_schema, on_schema(schema: *mut ArrowSchema = ptr::without_provenance_mut(8))
            -> c_int = 5;
        call_on_next_task, on_next_task(
            task: *mut ArrowAsyncTask = ptr::without_provenance_mut(8),
            metadata: *const c_char = ptr::without_provenance(16)
        ) -> c_int = 5;
        call_on_error, on_error(
            code: c_int = 5,
            message: *const c_char = ptr::without_provenance(8),
            metadata: *const c_char = ptr::without_provenance(16)
        );
    }
}

unsafe extern "C" fn allocate(
    _: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_context: *mut c_void,
    set_error: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char)>,
) -> c_int {
    // SAFETY: the test passes a valid pointer for the result, and a function.
    unsafe {
        *out = ptr::without_provenance_mut(8);
        set_error.unwrap()(error_context, c"MemoryError".as_ptr(), c"full".as_ptr());
    }
    -1
}

unsafe extern "C" fn note_error(context: *mut c_void, kind: *const c_char, text: *const c_char) {
    // SAFETY: the test passes a valid pointer for the two strings.
    unsafe { *context.cast::<[*const c_char; 2]>() = [kind, text] };
}

unsafe extern "C" fn export(object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int {
    // SAFETY: the test passes a valid pointer for the result.
    unsafe { *out = object.cast() };
    1
}

unsafe extern "C" fn import(tensor: *mut DLManagedTensorVersioned, out: *mut *mut c_void) -> c_int {
    // SAFETY: the test passes a valid pointer for the result.
    unsafe { *out = tensor.cast() };
    2
}

unsafe extern "C" fn describe(object: *mut c_void, out: *mut DLTensor) -> c_int {
    // SAFETY: the test passes a valid pointer for the result.
    unsafe { (*out).data = object };
    3
}

unsafe extern "C" fn current_stream(device: DLDeviceType, id: i32, out: *mut *mut c_void) -> c_int {
    // SAFETY: the test passes a valid pointer for the result.
    unsafe { *out = ptr::without_provenance_mut((device.0 + id) as usize) };
    0
}

/// Checks that a static table compiles and can be used on any thread.
static TABLE: DLPackExchangeAPI = DLPackExchangeAPI {
    header: DLPackExchangeAPIHeader {
        version: DLPackVersion {
            major: DLPACK_MAJOR_VERSION,
            minor: DLPACK_MINOR_VERSION,
        },
        prev_api: ptr::null_mut(),
    },
    managed_tensor_allocator: Some(allocate),
    managed_tensor_from_py_object_no_sync: Some(export),
    managed_tensor_to_py_object_no_sync: Some(import),
    dltensor_from_py_object_no_sync: Some(describe),
    current_work_stream: Some(current_stream),
};

#[test]
fn static_exchange_table_can_be_called_from_another_thread() {
    std::thread::spawn(|| {
        let object = ptr::without_provenance_mut::<c_void>(8);
        let mut tensor = ptr::null_mut();
        let mut result = ptr::null_mut();
        let mut described = DLTensor::zeroed();
        let mut texts = [ptr::null::<c_char>(); 2];
        let context = (&raw mut texts).cast();
        // SAFETY: the functions are defined above.
        unsafe {
            let code = TABLE.call_managed_tensor_allocator(
                &mut described,
                &mut tensor,
                context,
                Some(note_error),
            );
            assert_eq!((code, tensor), (Some(-1), object.cast()));
            assert!(texts.iter().all(|text| !text.is_null()));
            let code = TABLE.call_managed_tensor_from_py_object_no_sync(object, &mut tensor);
            assert_eq!((code, tensor), (Some(1), object.cast()));
            let code = TABLE.call_managed_tensor_to_py_object_no_sync(tensor, &mut result);
            assert_eq!((code, result), (Some(2), object));
            let code = TABLE.call_dltensor_from_py_object_no_sync(object, &mut described);
            assert_eq!((code, described.data), (Some(3), object));
            let code = TABLE.call_current_work_stream(DLDeviceType(2), 3, &mut result);
            assert_eq!((code, result.addr()), (Some(0), 5));
        }
    })
    .join()
    .expect("the thread asserts nothing wrong");
}

#[test]
fn call_null_exchange_function_returns_none() {
    let table = DLPackExchangeAPI::zeroed();
    // SAFETY: the table has no functions.
    unsafe {
        let none = table.call_dltensor_from_py_object_no_sync(ptr::null_mut(), ptr::null_mut());
        assert_eq!(none, None);
    }
}

// SPDX-License-Identifier: Apache-2.0

//! arrow-rs as a subject of the conformance suite (`tests/conformance/README.md`).

use std::ffi::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{ffi, Array, ArrayReader, RecordBatch, RecordBatchIterator};
use arrow_data::ffi::FFI_ArrowArray;
use arrow_data::ArrayData;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};

const CPU: i32 = 1;
/// Checks schemas, formats, arrays and data; rebuilds arrays.
const PROMISES: u32 = 1 | 2 | 4 | 8 | 16;

/// `struct ArrowDeviceArray`
#[repr(C)]
pub struct DeviceArray {
    array: FFI_ArrowArray,
    device_id: i64,
    device_type: i32,
    sync_event: *mut c_void,
    reserved: [i64; 3],
}

/// `struct FletchingMessage`
#[repr(C)]
pub struct Message([u8; 1024]);

type Pass<In, Out> = unsafe extern "C" fn(*mut c_void, *mut In, *mut Out, *mut Message) -> c_int;

/// `struct FletchingSubject`, as far as the first version went.
#[repr(C)]
pub struct Subject {
    size: usize,
    name: *const c_char,
    context: *mut c_void,
    promises: u32,
    schema: Option<Pass<FFI_ArrowSchema, FFI_ArrowSchema>>,
    array: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut FFI_ArrowSchema,
            *mut DeviceArray,
            *mut FFI_ArrowSchema,
            *mut DeviceArray,
            *mut Message,
        ) -> c_int,
    >,
    child: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut FFI_ArrowSchema,
            *mut DeviceArray,
            i64,
            *mut DeviceArray,
            *mut Message,
        ) -> c_int,
    >,
    stream: Option<Pass<FFI_ArrowArrayStream, FFI_ArrowArrayStream>>,
    /// device_stream, tensor, legacy_tensor, receive, send
    missing: [*const c_void; 5],
}

// SAFETY: the table holds functions and literals.
unsafe impl Sync for Subject {}

/// The errno values that arrow-rs gives the consumer of a stream.
fn errno_of(error: &ArrowError) -> c_int {
    match error {
        ArrowError::NotYetImplemented(_) => libc::ENOSYS,
        ArrowError::MemoryError(_) => libc::ENOMEM,
        ArrowError::IoError(..) => libc::EIO,
        _ => libc::EINVAL,
    }
}

/// Runs `body`. A panic has a code that is wrong.
///
/// # Safety
///
/// `message` may be written.
unsafe fn finish(message: *mut Message, body: impl FnOnce() -> Result<(), ArrowError>) -> c_int {
    let (code, text) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => (0, String::new()),
        Ok(Err(error)) => (errno_of(&error), error.to_string()),
        Err(_) => (-1, String::new()),
    };
    // SAFETY: the caller vouches for the message.
    let bytes = unsafe { &mut (*message).0 };
    bytes.fill(0);
    let length = (0..bytes.len().min(text.len() + 1))
        .rev()
        .find(|&length| text.is_char_boundary(length));
    let length = length.unwrap_or(0);
    bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
    code
}

/// A field, which keeps the name and the metadata of a schema.
///
/// # Safety
///
/// The schema is one of the C data interface.
unsafe fn import_field(schema: *mut FFI_ArrowSchema) -> Result<Field, ArrowError> {
    // SAFETY: the caller vouches for the schema.
    let schema = unsafe { FFI_ArrowSchema::from_raw(schema) };
    Field::try_from(&schema)
}

/// # Safety
///
/// The array is one of the C device data interface.
unsafe fn import_array(field: &Field, from: *mut DeviceArray) -> Result<ArrayData, ArrowError> {
    // SAFETY: the caller vouches for the array.
    let from = unsafe { &mut *from };
    if from.device_type != CPU {
        let text = format!("device type {}", from.device_type);
        return Err(ArrowError::NotYetImplemented(text));
    }
    if from.array.is_released() {
        let text = "the array is released".to_string();
        return Err(ArrowError::CDataInterface(text));
    }
    let data_type = field.data_type().clone();
    // SAFETY: as above.
    let data = unsafe {
        let array = FFI_ArrowArray::from_raw(&mut from.array);
        ffi::from_ffi_and_data_type(array, data_type)?
    };
    data.validate_full()?;
    Ok(data)
}

fn export(data: &ArrayData) -> DeviceArray {
    DeviceArray {
        array: FFI_ArrowArray::new(data),
        device_id: -1,
        device_type: CPU,
        sync_event: ptr::null_mut(),
        reserved: [0; 3],
    }
}

unsafe extern "C" fn schema(
    _: *mut c_void,
    from: *mut FFI_ArrowSchema,
    to: *mut FFI_ArrowSchema,
    message: *mut Message,
) -> c_int {
    // SAFETY: the suite moves structs in, and passes slots for the results.
    unsafe {
        finish(message, || {
            to.write(FFI_ArrowSchema::try_from(&import_field(from)?)?);
            Ok(())
        })
    }
}

unsafe extern "C" fn array(
    _: *mut c_void,
    from_schema: *mut FFI_ArrowSchema,
    from: *mut DeviceArray,
    to_schema: *mut FFI_ArrowSchema,
    to: *mut DeviceArray,
    message: *mut Message,
) -> c_int {
    // SAFETY: as in `schema`.
    unsafe {
        finish(message, || {
            let field = import_field(from_schema)?;
            let data = import_array(&field, from)?;
            to_schema.write(FFI_ArrowSchema::try_from(&field)?);
            to.write(export(&data));
            Ok(())
        })
    }
}

unsafe extern "C" fn child(
    _: *mut c_void,
    from_schema: *mut FFI_ArrowSchema,
    from: *mut DeviceArray,
    index: i64,
    to: *mut DeviceArray,
    message: *mut Message,
) -> c_int {
    // SAFETY: as in `schema`.
    unsafe {
        finish(message, || {
            let data = import_array(&import_field(from_schema)?, from)?;
            let place = usize::try_from(index).unwrap_or(usize::MAX);
            let found = data.child_data().get(place).ok_or_else(|| {
                ArrowError::InvalidArgumentError(format!("there is no child {index}"))
            })?;
            to.write(export(found));
            Ok(())
        })
    }
}

/// Reads streams of every type; arrow-rs exports those of structs.
unsafe extern "C" fn stream(
    _: *mut c_void,
    from: *mut FFI_ArrowArrayStream,
    to: *mut FFI_ArrowArrayStream,
    message: *mut Message,
) -> c_int {
    // SAFETY: as in `schema`.
    unsafe {
        finish(message, || {
            let reader = ArrayStreamReader::from_raw(from)?;
            let field = reader.field().clone();
            let arrays = reader.collect::<Result<Vec<_>, _>>()?;
            let DataType::Struct(fields) = field.data_type() else {
                let text = "export of a stream that is not of structs".to_string();
                return Err(ArrowError::NotYetImplemented(text));
            };
            let schema = Schema::new_with_metadata(fields.clone(), field.metadata().clone());
            let batches = arrays.into_iter().map(|array| {
                array.to_data().validate_full()?;
                if array.null_count() > 0 {
                    let text = "a record batch has no nulls".to_string();
                    return Err(ArrowError::InvalidArgumentError(text));
                }
                Ok(RecordBatch::from(array.as_struct()))
            });
            let batches: Vec<_> = batches.collect();
            let batches = RecordBatchIterator::new(batches, Arc::new(schema));
            to.write(FFI_ArrowArrayStream::new(Box::new(batches)));
            Ok(())
        })
    }
}

/// The subject 0.
#[no_mangle]
pub extern "C" fn FletchingConformanceSubject(index: i32) -> *const Subject {
    static SUBJECT: Subject = Subject {
        size: size_of::<Subject>(),
        name: c"arrow-rs".as_ptr(),
        context: ptr::null_mut(),
        promises: PROMISES,
        schema: Some(schema),
        array: Some(array),
        child: Some(child),
        stream: Some(stream),
        missing: [ptr::null(); 5],
    };
    if index == 0 {
        &SUBJECT
    } else {
        ptr::null()
    }
}

// SPDX-License-Identifier: Apache-2.0

//! arrow-rs as a subject of the conformance suite (`tests/conformance/README.md`).

use std::ffi::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{ffi, Array, ArrayReader, ArrayRef, RecordBatch, RecordBatchIterator};
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

/// A function that takes structs and returns others, with the message last.
type Pass<From, To> = unsafe extern "C" fn(*mut c_void, *mut From, *mut To, *mut Message) -> c_int;
type PassBoth<Given, To> = unsafe extern "C" fn(
    *mut c_void,
    *mut FFI_ArrowSchema,
    *mut DeviceArray,
    Given,
    *mut To,
    *mut Message,
) -> c_int;

/// `struct FletchingSubject`, with the members of its first version.
#[repr(C)]
pub struct Subject {
    size: usize,
    name: *const c_char,
    context: *mut c_void,
    promises: u32,
    schema: Pass<FFI_ArrowSchema, FFI_ArrowSchema>,
    array: PassBoth<*mut FFI_ArrowSchema, DeviceArray>,
    child: PassBoth<i64, DeviceArray>,
    stream: Pass<FFI_ArrowArrayStream, FFI_ArrowArrayStream>,
    /// device_stream, tensor, legacy_tensor, receive, send
    missing: [*const c_void; 5],
}

// SAFETY: the table contains functions and literals.
unsafe impl Sync for Subject {}

/// The errno values that arrow-rs returns to the consumer of a stream.
fn errno_of(error: &ArrowError) -> c_int {
    match error {
        ArrowError::NotYetImplemented(_) => libc::ENOSYS,
        ArrowError::MemoryError(_) => libc::ENOMEM,
        ArrowError::IoError(..) => libc::EIO,
        _ => libc::EINVAL,
    }
}

/// Runs `body`. A panic returns an invalid code.
///
/// # Safety
///
/// `message` is valid for writes.
unsafe fn finish(message: *mut Message, body: impl FnOnce() -> Result<(), ArrowError>) -> c_int {
    let (code, text) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => (0, String::new()),
        Ok(Err(error)) => (errno_of(&error), error.to_string()),
        Err(_) => (-1, String::new()),
    };
    // SAFETY: the caller guarantees that `message` is valid.
    let bytes = unsafe { &mut (*message).0 };
    bytes.fill(0);
    let text = &text.as_bytes()[..text.len().min(bytes.len() - 1)];
    bytes[..text.len()].copy_from_slice(text);
    code
}

/// Imports a field, which keeps the name and the metadata of a schema.
///
/// # Safety
///
/// The schema conforms to the C data interface.
unsafe fn import_field(schema: *mut FFI_ArrowSchema) -> Result<Field, ArrowError> {
    // SAFETY: the caller guarantees that `schema` conforms.
    let schema = unsafe { FFI_ArrowSchema::from_raw(schema) };
    Field::try_from(&schema)
}

/// # Safety
///
/// The array conforms to the C device data interface.
unsafe fn import_array(field: &Field, from: *mut DeviceArray) -> Result<ArrayData, ArrowError> {
    // SAFETY: the caller guarantees that `from` is a valid array.
    let from = unsafe { &mut *from };
    if from.device_type != CPU {
        return Err(ArrowError::NotYetImplemented(format!(
            "device type {}",
            from.device_type
        )));
    }
    if from.array.is_released() {
        return Err(ArrowError::CDataInterface("the array is released".into()));
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

macro_rules! function {
    ($name:ident, |$($argument:ident: $type:ty),*| $body:expr) => {
        unsafe extern "C" fn $name(_: *mut c_void, $($argument: $type,)* message: *mut Message) -> c_int {
            // SAFETY: the suite moves structs in and passes slots for the results.
            unsafe { finish(message, || $body) }
        }
    };
}

function!(schema, |from: *mut FFI_ArrowSchema,
                   to: *mut FFI_ArrowSchema| {
    to.write(FFI_ArrowSchema::try_from(&import_field(from)?)?);
    Ok(())
});

function!(array, |from_schema: *mut FFI_ArrowSchema,
                  from: *mut DeviceArray,
                  to_schema: *mut FFI_ArrowSchema,
                  to: *mut DeviceArray| {
    let field = import_field(from_schema)?;
    let data = import_array(&field, from)?;
    to_schema.write(FFI_ArrowSchema::try_from(&field)?);
    to.write(export(&data));
    Ok(())
});

function!(child, |from_schema: *mut FFI_ArrowSchema,
                  from: *mut DeviceArray,
                  index: i64,
                  to: *mut DeviceArray| {
    let data = import_array(&import_field(from_schema)?, from)?;
    let place = usize::try_from(index).unwrap_or(usize::MAX);
    let missing = || ArrowError::InvalidArgumentError(format!("there is no child {index}"));
    to.write(export(data.child_data().get(place).ok_or_else(missing)?));
    Ok(())
});

// Reads streams of every type. arrow-rs exports only streams of structs.
function!(stream, |from: *mut FFI_ArrowArrayStream,
                   to: *mut FFI_ArrowArrayStream| {
    let reader = ArrayStreamReader::from_raw(from)?;
    let field = reader.field().clone();
    let arrays = reader.collect::<Result<Vec<_>, _>>()?;
    let DataType::Struct(fields) = field.data_type() else {
        return Err(ArrowError::NotYetImplemented(
            "export of a stream that is not of structs".into(),
        ));
    };
    let schema = Schema::new_with_metadata(fields.clone(), field.metadata().clone());
    let batches: Vec<_> = arrays.into_iter().map(batch_of).collect();
    let batches = RecordBatchIterator::new(batches, Arc::new(schema));
    to.write(FFI_ArrowArrayStream::new(Box::new(batches)));
    Ok(())
});

fn batch_of(array: ArrayRef) -> Result<RecordBatch, ArrowError> {
    array.to_data().validate_full()?;
    if array.null_count() > 0 {
        return Err(ArrowError::InvalidArgumentError(
            "a record batch has no nulls".into(),
        ));
    }
    Ok(RecordBatch::from(array.as_struct()))
}

/// Returns subject 0.
#[no_mangle]
pub extern "C" fn FletchingConformanceSubject(index: i32) -> *const Subject {
    static SUBJECT: Subject = Subject {
        size: size_of::<Subject>(),
        name: c"arrow-rs".as_ptr(),
        context: ptr::null_mut(),
        promises: PROMISES,
        schema,
        array,
        child,
        stream,
        missing: [ptr::null(); 5],
    };
    (index == 0)
        .then_some(&SUBJECT)
        .map_or(ptr::null(), ptr::from_ref)
}

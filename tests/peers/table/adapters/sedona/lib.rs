//! sedona-extension behind the functions of fletching/roles.h.

use std::os::raw::c_int;
use std::sync::Arc;
use std::thread;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use futures::executor::block_on;
use futures::{stream, StreamExt};
use sedona_extension::export_sendable_record_batch_stream::drive_stream_to_handler;
use sedona_extension::extension::FFI_ArrowAsyncDeviceStreamHandler;
use sedona_extension::import_sendable_record_batch_stream::ImportedAsyncDeviceStream;

fn batch() -> RecordBatch {
    let numbers = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])) as ArrayRef;
    let words = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")])) as ArrayRef;
    RecordBatch::try_from_iter([("a", numbers), ("b", words)]).unwrap()
}

/// # Safety
/// The caller gives the handler away.
#[no_mangle]
pub unsafe extern "C" fn export_async(handler: *mut FFI_ArrowAsyncDeviceStreamHandler) -> c_int {
    let batches = stream::iter([Ok(batch()), Ok(batch())]);
    let batches = RecordBatchStreamAdapter::new(batch().schema(), batches);
    let sending = drive_stream_to_handler(Box::pin(batches), handler);
    thread::spawn(|| block_on(sending));
    0
}

/// # Safety
/// `out` is writable.
#[no_mangle]
pub unsafe extern "C" fn import_async(out: *mut *mut FFI_ArrowAsyncDeviceStreamHandler) -> c_int {
    let (batches, handler) = ImportedAsyncDeviceStream::new(2);
    *out = handler.into_raw();
    thread::spawn(|| block_on(batches.for_each(|batch| async { drop(batch) })));
    0
}

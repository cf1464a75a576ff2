// SPDX-License-Identifier: Apache-2.0

//! Passes the handlers of async streams between `fletching` and `sedona-extension`, for `tests/`.

use std::future::Future;
use std::ptr::NonNull;

use datafusion::execution::SendableRecordBatchStream;
use fletching::AsyncHandler;
use sedona_extension::export_sendable_record_batch_stream::drive_stream_to_handler;
use sedona_extension::import_sendable_record_batch_stream::AsyncDeviceStreamHandler;

/// Moves a handler of sedona-extension to a producer of this crate.
pub fn from_sedona(handler: AsyncDeviceStreamHandler) -> AsyncHandler {
    let handler = NonNull::new(handler.into_raw()).expect("the handler is not NULL");
    // SAFETY: both types are the struct of the interface, and the handler is owned.
    unsafe { AsyncHandler::from_raw(handler.cast()) }
}

/// Sends a stream with the producer of sedona-extension.
pub fn send_with_sedona(
    stream: SendableRecordBatchStream,
    handler: AsyncHandler,
) -> impl Future<Output = ()> + Send {
    // SAFETY: as above.
    unsafe { drive_stream_to_handler(stream, handler.into_raw().cast()) }
}

// SPDX-License-Identifier: Apache-2.0

//! A task that a consumer has queued, and its extraction.

use std::ptr;

use crate::errno::EIO;
use fletching_abi::{ArrowAsyncTask, ArrowDeviceArray};

use super::task::explained;
use super::Promise;
use crate::error::{discard, Error};
use crate::owner::DeviceArray;

/// A batch and its metadata, or the error.
pub(super) type Extracted = Result<(DeviceArray, Vec<u8>), Error>;

/// Copies of the arguments of `on_next_task`. The task must be extracted exactly once.
pub(super) struct Queued {
    pub task: ArrowAsyncTask,
    pub metadata: Vec<u8>,
}

impl Queued {
    pub(super) fn drop_data(mut self) {
        // SAFETY: the task is extracted once, and was queued with a callback.
        let _ = unsafe { ArrowAsyncTask::call_extract_data(&raw mut self.task, ptr::null_mut()) };
    }

    /// Returns the batch, and whether the producer knows about the error.
    pub(super) fn extract(mut self, promise: &Promise) -> (Extracted, bool) {
        let mut raw = ArrowDeviceArray::zeroed();
        // SAFETY: the task is extracted once. After a failed extraction, `raw` is not released;
        // after a successful one, it conforms to the specification.
        unsafe {
            let (code, error) =
                explained(|| ArrowAsyncTask::call_extract_data(&raw mut self.task, &raw mut raw));
            if code == Some(0) {
                let batch = DeviceArray::new(raw);
                let checked = promise.check(&batch);
                return (checked.map(|()| (batch, self.metadata)), false);
            }
            let text = c"extract_data: failed without a message".as_ptr();
            let error = match error {
                Some(error) if code == Some(error.code()) => error,
                other => {
                    discard(other);
                    Error::foreign(code.unwrap_or(EIO), text)
                }
            };
            (Err(error), true)
        }
    }
}

/// A task that the application is taking. If release is called from inside the request for more
/// batches, it extracts this task.
pub(super) struct Taken {
    pub queued: Option<Queued>,
    pub result: Option<(Extracted, bool)>,
}

impl Taken {
    /// # Safety
    ///
    /// `this` is valid and used only by this thread.
    pub(super) unsafe fn extract_once(this: *mut Self, promise: &Promise) {
        // SAFETY: guaranteed by the caller. No reference is kept across the call.
        unsafe {
            if let Some(queued) = (*this).queued.take() {
                let result = queued.extract(promise);
                (*this).result = Some(result);
            }
        }
    }
}

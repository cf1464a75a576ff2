// SPDX-License-Identifier: Apache-2.0

//! A task that a consumer has queued, and its extraction.

use std::ptr;

use crate::errno::EIO;
use fletching_abi::{ArrowAsyncTask, ArrowDeviceArray};

use super::task::explained;
use super::Promise;
use crate::error::{discard, Error};
use crate::owner::DeviceArray;

/// A batch and its metadata, or why there is none.
pub(super) type Extracted = Result<(DeviceArray, Vec<u8>), Error>;

/// Copies of what `on_next_task` was called with, to be extracted once.
pub(super) struct Queued {
    pub task: ArrowAsyncTask,
    pub metadata: Vec<u8>,
}

impl Queued {
    pub(super) fn drop_data(mut self) {
        // SAFETY: the task is extracted once, and it was queued with a callback.
        let _ = unsafe { ArrowAsyncTask::call_extract_data(&raw mut self.task, ptr::null_mut()) };
    }

    /// The batch, and whether the producer knows of the error.
    pub(super) fn extract(mut self, promise: &Promise) -> (Extracted, bool) {
        let mut raw = ArrowDeviceArray::zeroed();
        // SAFETY: the task is extracted once. Of a failed extraction nothing is ours to release;
        // what the producer fills otherwise is as its text asks.
        unsafe {
            let (code, error) =
                explained(|| ArrowAsyncTask::call_extract_data(&raw mut self.task, &raw mut raw));
            if code == Some(0) {
                let batch = DeviceArray::from_raw(raw);
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

/// A task that the application is taking: a release from inside the request for more extracts it.
pub(super) struct Taken {
    pub queued: Option<Queued>,
    pub result: Option<(Extracted, bool)>,
}

impl Taken {
    /// # Safety
    ///
    /// `this` is valid, and used by this thread alone.
    pub(super) unsafe fn extract_once(this: *mut Self, promise: &Promise) {
        // SAFETY: the caller vouches for it. No reference is kept over the call.
        unsafe {
            if let Some(queued) = (*this).queued.take() {
                let result = queued.extract(promise);
                (*this).result = Some(result);
            }
        }
    }
}

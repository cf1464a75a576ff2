// SPDX-License-Identifier: Apache-2.0

//! A batch of a producer, from its source to the consumer's `extract_data`.

use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;
use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::atomic::{AtomicIsize, AtomicU8, Ordering};

use crate::errno::EINVAL;
use fletching_abi::{ArrowAsyncTask, ArrowDeviceArray};

use super::batch::{AsyncBatch, Data};
use super::producer_core::Core;
use crate::error::{discard, guarded, Error};
use crate::owner::DeviceArray;

const OPEN: u8 = 0;
/// The stream is over, and release waits for this task.
const COUNTED: u8 = 1;
/// The task was extracted, or rejected by the consumer.
const CLOSED: u8 = 2;

/// The `private_data` of a delivered task. A closed node is reused for another batch.
pub(super) struct Node {
    life: AtomicU8,
    core: *const Core,
    number: u64,
    data: UnsafeCell<Option<Data>>,
    metadata: Vec<u8>,
}

/// The open and closed nodes of a stream, oldest first.
#[derive(Default)]
pub(super) struct Nodes(VecDeque<*mut Node>);

// SAFETY: a node is used by the thread that extracts its task and, once it is closed, by the owner
// of the list. The transition is atomic.
unsafe impl Send for Nodes {}

/// The number of nodes that are kept in the long run. Above it, a closed node is freed when it is
/// the oldest.
const SPARE: usize = 64;

impl Nodes {
    /// Stores the batch in a closed node, or in a new one. Tasks are mostly extracted in order, so
    /// the oldest node is closed first; an open one moves to the back.
    fn fill(&mut self, core: *const Core, number: u64, batch: AsyncBatch) -> *mut Node {
        let fresh = Node {
            life: AtomicU8::new(OPEN),
            core,
            number,
            data: UnsafeCell::new(Some(batch.data)),
            metadata: batch.metadata,
        };
        for _ in 0..self.0.len().min(2) {
            let Some(node) = self.0.pop_front() else {
                break;
            };
            // SAFETY: a closed node is not in use. Its metadata is dropped.
            unsafe {
                if (*node).life.load(Ordering::Acquire) != CLOSED {
                    self.0.push_back(node);
                } else if self.0.len() >= SPARE {
                    drop(Box::from_raw(node));
                } else {
                    *node = fresh;
                    return node;
                }
            }
        }
        Box::into_raw(Box::new(fresh))
    }

    /// Passes the batch to `call`, the consumer's handler, and returns its result. If the handler
    /// rejects the batch and has not extracted it, the batch is dropped.
    pub(super) fn send(
        &mut self,
        core: *const Core,
        number: u64,
        batch: AsyncBatch,
        call: impl FnOnce(*mut ArrowAsyncTask, *const c_char) -> Option<c_int>,
    ) -> Option<c_int> {
        let node = self.fill(core, number, batch);
        let mut task = ArrowAsyncTask {
            extract_data: Some(extract_data),
            private_data: node.cast(),
        };
        self.0.push_back(node);
        // SAFETY: the node is in the list and only changes atomically while it is open.
        unsafe {
            let metadata = match &(*node).metadata {
                block if block.is_empty() => ptr::null(),
                block => block.as_ptr().cast(),
            };
            let code = call(&raw mut task, metadata);
            if code != Some(0) && (*node).change(CLOSED) {
                discard((*(*node).data.get()).take());
            }
            code
        }
    }

    /// Counts the open tasks after the end of the stream. The release waits for them, and each
    /// reports to its stream.
    pub(super) fn count_open(&self, open: &AtomicIsize) {
        for node in &self.0 {
            open.fetch_add(1, Ordering::AcqRel);
            // SAFETY: the node is in the list.
            if !unsafe { (**node).change(COUNTED) } {
                open.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in self.0.drain(..) {
            // SAFETY: the list is dropped after the release, which waits for all open tasks.
            drop(unsafe { Box::from_raw(node) });
        }
    }
}

impl Node {
    /// Changes the state from open. Returns false if the node is closed.
    fn change(&self, life: u8) -> bool {
        self.life
            .compare_exchange(OPEN, life, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

thread_local! {
    /// The destination of the error for the caller of `extract_data`. The C interface returns only
    /// the code.
    static EXPLAIN: Cell<*mut Option<Error>> = const { Cell::new(ptr::null_mut()) };
}

/// Runs `extract`, which extracts a task of any producer. Also returns the error if the task
/// belongs to this crate. `extract` must not panic.
pub(super) fn explained<T>(extract: impl FnOnce() -> T) -> (T, Option<Error>) {
    let mut error = None;
    let outer = EXPLAIN.replace(&raw mut error);
    let result = extract();
    EXPLAIN.set(outer);
    (result, error)
}

unsafe extern "C" fn extract_data(this: *mut ArrowAsyncTask, out: *mut ArrowDeviceArray) -> c_int {
    // SAFETY: the consumer passes a task, and a struct to fill or NULL. It extracts the task once,
    // so only this thread uses the data until the node is closed.
    unsafe {
        let node: *const Node = ptr::replace(&raw mut (*this).private_data, ptr::null_mut()).cast();
        if node.is_null() {
            return EINVAL;
        }
        let core = (*node).core;
        let made = match (*(*node).data.get()).take() {
            Some(Data::Ready(array)) => Ok(array),
            Some(Data::Made(make)) if !out.is_null() => guarded(|| {
                let array = make()?;
                (*core).check((*node).number, &array).map(|()| array)
            }),
            unused => {
                discard(unused);
                Ok(DeviceArray::default())
            }
        };
        let code = made.as_ref().map_or_else(Error::code, |_| 0);
        match made {
            Err(error) => {
                // The variable belongs to an `explained` in an outer call on this thread.
                if let Some(explain) = EXPLAIN.get().as_mut() {
                    discard(explain.replace(error.clone()));
                }
                (*core).lose(error);
            }
            Ok(array) if out.is_null() => discard(array),
            Ok(array) => out.write(array.detach()),
        }
        // Unless release waits for this task, the node and the stream may be freed after this step.
        if (*node).life.swap(CLOSED, Ordering::AcqRel) == COUNTED {
            Core::close_counted(core);
        }
        code
    }
}

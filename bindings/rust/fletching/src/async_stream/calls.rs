// SPDX-License-Identifier: Apache-2.0

//! Which calls of a consumer to its producer are running, and on which thread.
//!
//! A call is counted when it begins, with the lock that its caller has in any case, and by an atomic
//! addition when it ends. The release of the handler reads and marks the sum of the ends in one
//! step; a call that ends later finds the mark and takes the lock to be counted.

use std::cell::Cell;
use std::ptr;

use super::consumer_core::Taken;

/// How a call of `extract_data` is counted.
pub(super) const TASK: u64 = 2;
/// How a call of `request` or `cancel` is counted: in the upper half.
pub(super) const PRODUCER: u64 = 1 << 32;
/// Set in the sum of the ends by the release. All counts are even.
pub(super) const MARK: u64 = 1;

/// A call that is running on this thread.
pub(super) struct Frame {
    pub stream: *const (),
    pub weight: u64,
    /// The task that the application is taking, or NULL.
    pub taken: *mut Taken,
    outer: *const Frame,
}

thread_local! {
    static INNERMOST: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// Runs `body` as a call.
pub(super) fn within<T>(
    stream: *const (),
    weight: u64,
    taken: *mut Taken,
    body: impl FnOnce() -> T,
) -> T {
    struct Restore(*const Frame);
    impl Drop for Restore {
        fn drop(&mut self) {
            INNERMOST.set(self.0);
        }
    }
    let frame = Frame {
        stream,
        weight,
        taken,
        outer: INNERMOST.get(),
    };
    let _restore = Restore(frame.outer);
    INNERMOST.set(&raw const frame);
    body()
}

/// Visits the calls of `stream` that run on this thread.
pub(super) fn each_here(stream: *const (), mut visit: impl FnMut(&Frame)) {
    let mut next = INNERMOST.get();
    // SAFETY: a frame is in the list while its `within` runs, further out on this thread.
    while let Some(frame) = unsafe { next.as_ref() } {
        if ptr::eq(frame.stream, stream) {
            visit(frame);
        }
        next = frame.outer;
    }
}

/// How many calls run on this thread, as they are counted.
pub(super) fn here(stream: *const ()) -> u64 {
    let mut sum = 0;
    each_here(stream, |frame| sum += frame.weight);
    sum
}

/// The counts that the lock protects. They may wrap: only differences mean anything.
#[derive(Default)]
pub(super) struct Counts {
    begun: u64,
    /// The ends before the mark, once it is set.
    before_mark: Option<u64>,
    after_mark: u64,
}

impl Counts {
    pub(super) fn begin(&mut self, weight: u64) {
        self.begun = self.begun.wrapping_add(weight);
    }

    pub(super) fn mark(&mut self, ended: u64) {
        self.before_mark = Some(ended);
    }

    pub(super) fn end_after_mark(&mut self, weight: u64) {
        self.after_mark = self.after_mark.wrapping_add(weight);
    }

    /// The calls that are running. `ended` counts until the mark.
    pub(super) fn running(&self, ended: u64) -> u64 {
        let ended = self.before_mark.unwrap_or(ended);
        self.begun.wrapping_sub(ended.wrapping_add(self.after_mark))
    }
}

// SPDX-License-Identifier: Apache-2.0

//! The calls of a consumer to its producer that are running on this thread.

use std::cell::Cell;
use std::ptr;

use super::queued::Taken;

/// The weight of a call of `extract_data`.
pub(super) const TASK: u64 = 2;
/// The weight of a call of `request` or `cancel`: counted in the upper half.
pub(super) const PRODUCER: u64 = 1 << 32;
/// A bit that the release sets in the sum of the ended calls. All weights are even.
pub(super) const MARK: u64 = 1;

/// A running call on this thread.
pub(super) struct Frame {
    pub stream: *const (),
    pub weight: u64,
    /// The task that the application is taking, or NULL.
    pub taken: *mut Taken,
    pub outer: *const Frame,
}

thread_local! {
    static INNERMOST: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// Runs `body` as a call. `body` does not panic: it only calls the producer.
pub(super) fn within<T>(mut frame: Frame, body: impl FnOnce() -> T) -> T {
    frame.outer = INNERMOST.get();
    INNERMOST.set(&raw const frame);
    let result = body();
    INNERMOST.set(frame.outer);
    result
}

/// Visits the running calls of `stream` on this thread. Returns the sum of their weights.
pub(super) fn each_here(stream: *const (), mut visit: impl FnMut(&Frame)) -> u64 {
    let (mut next, mut sum) = (INNERMOST.get(), 0);
    // SAFETY: a frame is in the list while its `within` runs, in an outer call on this thread.
    while let Some(frame) = unsafe { next.as_ref() } {
        if ptr::eq(frame.stream, stream) {
            sum += frame.weight;
            visit(frame);
        }
        next = frame.outer;
    }
    sum
}

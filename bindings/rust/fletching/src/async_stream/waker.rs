// SPDX-License-Identifier: Apache-2.0

//! The waker of a future that waits. To clone, wake and drop it runs the user's code, which happens
//! without a lock: it may poll, drop and wake whatever is shared with it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::error::guarded;

/// Where a future leaves its waker.
#[derive(Default)]
pub(super) struct WakerSlot(Mutex<Option<Waker>>);

impl WakerSlot {
    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For the one future that waits. It must look at its condition afterwards.
    pub(super) fn register(&self, waker: &Waker) {
        let is_known = |kept: &Waker| kept.will_wake(waker);
        if self.lock().as_ref().is_some_and(is_known) {
            return;
        }
        let new = waker.clone();
        let old = self.lock().replace(new);
        drop(old);
    }

    /// For [`wake`], after the condition has changed.
    pub(super) fn take(&self) -> Option<Waker> {
        self.lock().take()
    }
}

/// Wakes a future. A panic goes no further. The future may run here, to its end and its drop: call
/// it with no reference to what they free.
pub(super) fn wake(waker: Option<Waker>) {
    let Some(waker) = waker else { return };
    let _ = guarded(|| {
        waker.wake();
        Ok(())
    });
}

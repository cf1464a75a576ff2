// SPDX-License-Identifier: Apache-2.0

//! The waker of a waiting future. To clone, wake or drop a waker runs the user's code, which may poll
//! and drop futures: no lock is held then.

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

/// Wakes a future. A panic goes no further. The future may run and be dropped before this returns, so
/// the caller keeps no reference to its memory.
pub(super) fn wake(waker: Option<Waker>) {
    let Some(waker) = waker else { return };
    let _ = guarded(|| {
        waker.wake();
        Ok(())
    });
}

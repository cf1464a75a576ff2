// SPDX-License-Identifier: Apache-2.0

//! The waker of a waiting future. Cloning, waking or dropping a waker runs user code, which may
//! poll and drop futures, so no lock is held meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::error::guarded;

/// The slot in which a future stores its waker.
#[derive(Default)]
pub(super) struct WakerSlot(Mutex<Option<Waker>>);

impl WakerSlot {
    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the waker of the only waiting future, which must then check its condition again.
    pub(super) fn register(&self, waker: &Waker) {
        let is_known = |kept: &Waker| kept.will_wake(waker);
        if self.lock().as_ref().is_some_and(is_known) {
            return;
        }
        let new = waker.clone();
        let old = self.lock().replace(new);
        drop(old);
    }

    /// Takes the waker for [`wake`], after the condition has changed.
    pub(super) fn take(&self) -> Option<Waker> {
        self.lock().take()
    }
}

/// Wakes a future. Panics are caught. The future may run and be dropped before this function
/// returns, so the caller must not keep a reference to its memory.
pub(super) fn wake(waker: Option<Waker>) {
    let Some(waker) = waker else { return };
    let _ = guarded(|| {
        waker.wake();
        Ok(())
    });
}

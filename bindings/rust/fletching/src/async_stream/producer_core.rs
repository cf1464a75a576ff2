// SPDX-License-Identifier: Apache-2.0

//! The state that a producer shares with its consumer: the demand, the end, and the open tasks.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use fletching_abi::{ArrowAsyncProducer, ArrowDeviceType};

use super::waker::{wake, WakerSlot};
use super::{not_positive, Promise};
use crate::error::{discard, Error};
use crate::owner::DeviceArray;

/// The reason why a stream stops. Only the first reason counts.
#[derive(Debug)]
pub(super) enum Stop {
    Running,
    Cancelled,
    Failed(Error),
    /// The end was sent, or the consumer rejected a call.
    Over,
}

/// A handler that waits for its release, and the tasks that it waits for. Dropped in this order.
type Orphan = Box<dyn Send>;

pub(super) struct Core {
    raw: UnsafeCell<ArrowAsyncProducer>,
    /// Encoded; the consumer may read it until the release.
    metadata: Vec<u8>,
    /// The sum of all requests. It saturates at a number that no stream reaches.
    pub requested: AtomicU64,
    pub stopped: AtomicBool,
    stop: Mutex<Stop>,
    /// The first reason why a batch could not be made, also after the end of the stream.
    lost: Mutex<Option<Error>>,
    pub waker: WakerSlot,
    pub promise: OnceLock<Promise>,
    /// The open tasks that the release waits for, counted after the end of the stream.
    open: AtomicIsize,
    orphan: Mutex<Option<Orphan>>,
}

// SAFETY: the consumer's struct is not written after the consumer receives it; all other fields are
// atomic or locked.
unsafe impl Send for Core {}
// SAFETY: as above.
unsafe impl Sync for Core {}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Core {
    pub(super) fn new(device_type: ArrowDeviceType, metadata: Vec<u8>) -> Arc<Self> {
        let core = Arc::new(Self {
            raw: UnsafeCell::default(),
            metadata,
            requested: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            stop: Mutex::new(Stop::Running),
            lost: Mutex::new(None),
            waker: WakerSlot::default(),
            promise: OnceLock::new(),
            open: AtomicIsize::new(0),
            orphan: Mutex::new(None),
        });
        let mut raw = ArrowAsyncProducer {
            device_type,
            request: Some(request),
            cancel: Some(cancel),
            private_data: Arc::as_ptr(&core).cast_mut().cast(),
            ..ArrowAsyncProducer::zeroed()
        };
        if !core.metadata.is_empty() {
            raw.additional_metadata = core.metadata.as_ptr().cast();
        }
        // SAFETY: no other code has the struct yet.
        unsafe { core.raw.get().write(raw) }
        core
    }

    pub(super) fn raw(&self) -> *mut ArrowAsyncProducer {
        self.raw.get()
    }

    /// Stops the stream, unless it has already stopped. Returns the waker to wake.
    #[must_use]
    pub(super) fn stop(&self, reason: Stop) -> Option<Waker> {
        let mut stop = locked(&self.stop);
        if !matches!(*stop, Stop::Running) {
            drop(stop);
            discard(reason);
            return None;
        }
        *stop = reason;
        self.stopped.store(true, Ordering::Release);
        drop(stop);
        self.waker.take()
    }

    /// Records that a batch could not be made, and stops the stream.
    pub(super) fn lose(&self, error: Error) {
        locked(&self.lost).get_or_insert_with(|| error.clone());
        wake(self.stop(Stop::Failed(error)));
    }

    /// Returns the reason why a batch could not be made.
    pub(super) fn lost(&self) -> Option<Error> {
        locked(&self.lost).clone()
    }

    /// Returns the reason why the stream stopped. Later reasons are ignored.
    pub(super) fn take_stop(&self) -> Stop {
        self.stopped.store(true, Ordering::Release);
        std::mem::replace(&mut *locked(&self.stop), Stop::Over)
    }

    pub(super) fn check(&self, number: u64, batch: &DeviceArray) -> Result<(), Error> {
        let promise = self.promise.get();
        promise.map_or(Ok(()), |promise| promise.check_sent(number, batch))
    }

    // --- Open tasks -----------------------------------------------------------------------------

    /// Counts the open tasks with `count`. They hold one reference to the stream, which the last of
    /// them drops.
    pub(super) fn count_open(self: &Arc<Self>, count: impl FnOnce(&AtomicIsize)) {
        self.open.store(1, Ordering::Relaxed);
        count(&self.open);
        let share = Arc::into_raw(Arc::clone(self));
        // SAFETY: the reference was just taken from this stream.
        unsafe { Self::close_counted(share) }
    }

    /// Whether no tasks are open.
    pub(super) fn is_settled(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    /// # Safety
    ///
    /// `this` is alive, because the task is counted and was open.
    pub(super) unsafe fn close_counted(this: *const Self) {
        // SAFETY: the caller guarantees that `this` is alive; the last task takes over the
        // reference counted for the open tasks.
        unsafe {
            if (*this).open.fetch_sub(1, Ordering::AcqRel) != 1 {
                return;
            }
            let core = Arc::from_raw(this);
            let orphan = locked(&core.orphan).take();
            match orphan {
                None => wake(core.waker.take()),
                Some(orphan) => release_elsewhere(orphan),
            }
            discard(core);
        }
    }

    /// Makes the last extraction release the handler, because the future is no longer polled.
    pub(super) fn release_later(&self, waiting: Orphan) {
        let mut orphan = locked(&self.orphan);
        *orphan = Some(waiting);
        if self.is_settled() {
            let settled = orphan.take();
            drop(orphan);
            drop(settled);
        }
    }
}

/// Releases the handler on a new thread, because `extract_data` must not call handlers. If no
/// thread can be started, the handler is never released.
fn release_elsewhere(orphan: Orphan) {
    let orphan = ManuallyDrop::new(orphan);
    let release = move || drop(ManuallyDrop::into_inner(orphan));
    let _ = std::thread::Builder::new().spawn(release);
}

unsafe extern "C" fn request(this: *mut ArrowAsyncProducer, n: i64) {
    // SAFETY: the consumer passes the struct, which is valid until the release, so until the future
    // is woken.
    let core = unsafe { &*(*this).private_data.cast::<Core>() };
    let Some(more) = u64::try_from(n).ok().filter(|n| *n > 0) else {
        return wake(core.stop(Stop::Failed(not_positive(n))));
    };
    let add = |sum: u64| Some(sum.saturating_add(more));
    let _ = core
        .requested
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, add);
    wake(core.waker.take());
}

unsafe extern "C" fn cancel(this: *mut ArrowAsyncProducer) {
    // SAFETY: as in request.
    let core = unsafe { &*(*this).private_data.cast::<Core>() };
    wake(core.stop(Stop::Cancelled));
}

// SPDX-License-Identifier: Apache-2.0

//! A thread that asks whether the work that reads an array has passed, and threads that call the
//! release callbacks, so that a slow one delays no other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::event::Recorded;
use crate::{DeviceArray, Error};

const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
/// The longest while a release waits for a thread.
const WHILE_BEHIND: Duration = Duration::from_micros(500);
/// Rest: so many times as long as the last query of every entry took.
const REST: u32 = 50;
const LONGEST_REST: Duration = Duration::from_millis(100);
/// After so many refusals in a row, every 16th time is often enough.
const MOST_REFUSALS: u32 = 4;
const MOST_IDLE: usize = 2;
/// Callbacks that all wait for one lock need no more.
const MOST_WORKERS: usize = 64;

/// Whether the process exits: what has not begun is left alone.
static EXITING: AtomicBool = AtomicBool::new(false);

extern "C" fn note_exit() {
    EXITING.store(true, Relaxed);
}

/// An array that is released when its event has passed. The event is dropped first.
struct Deferred {
    recorded: Recorded,
    array: DeviceArray,
    /// How often in a row the runtime has refused to answer, as far as it matters, and how often
    /// not to ask from now on.
    refusals: u32,
    skips: u32,
}

#[derive(Default)]
struct Queues {
    incoming: Vec<Deferred>,
    ready: VecDeque<Deferred>,
    last_refusal: String,
    taken: u64, // of `ready`, in all
    seen: u64,  // `taken` when the reaper looked last
    workers: usize,
    idle: usize,
}

/// One for the process. It is never dropped and its threads are never joined: what the device has
/// not finished when the process exits is left alone. In a child of fork there is no such thread.
pub(super) struct Reaper {
    process: u32,
    queues: Mutex<Queues>,
    wake: Condvar,
    work: Condvar,
    pending: AtomicI64,
    refused: AtomicI64,
}

/// Counts of the arrays that [`DeviceArray::release_after`] has taken, and of events in a child of
/// fork.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingReleases {
    /// Arrays whose stream has not reached their point yet.
    pub pending: i64,
    /// Of these, those that the driver last said nothing about.
    pub refused: i64,
    /// Its newest error; empty when there was none.
    pub last_refusal: String,
    /// Events that a release in a child of fork has left alone.
    pub inherited_events: i64,
}

static REAPER: Mutex<Option<&'static Reaper>> = Mutex::new(None);

impl Reaper {
    /// With its thread, which the first call starts.
    ///
    /// Errors: EAGAIN when there can be no thread, ECHILD in a child of fork.
    pub(super) fn instance() -> Result<&'static Self, Error> {
        let mut started = REAPER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reaper) = *started {
            if reaper.process == std::process::id() {
                return Ok(reaper);
            }
            return Err(Error::new(
                libc::ECHILD,
                "release_after: called in a child of fork, which has no thread that releases \
                 arrays; hint: start processes with exec (spawn), or use release_after in one of \
                 parent and child only",
            ));
        }
        let reaper: &'static Self = Box::leak(Box::new(Self {
            process: std::process::id(),
            queues: Mutex::default(),
            wake: Condvar::new(),
            work: Condvar::new(),
            pending: AtomicI64::new(0),
            refused: AtomicI64::new(0),
        }));
        spawn(move || reaper.run()).map_err(|error| {
            Error::with_source(libc::EAGAIN, "release_after: no thread", error)
        })?;
        // SAFETY: the function may be called at any time.
        unsafe { libc::atexit(note_exit) };
        *started = Some(reaper);
        Ok(reaper)
    }

    pub(super) fn counts() -> PendingReleases {
        let mut counts = PendingReleases::default();
        let started = *REAPER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reaper) = started.filter(|reaper| reaper.process == std::process::id()) {
            counts.pending = reaper.pending.load(Relaxed);
            counts.refused = reaper.refused.load(Relaxed);
            counts.last_refusal.clone_from(&reaper.queues().last_refusal);
        }
        counts
    }

    pub(super) fn add(&self, recorded: Recorded, array: DeviceArray) {
        self.pending.fetch_add(1, Relaxed);
        self.queues().incoming.push(Deferred {
            recorded,
            array,
            refusals: 0,
            skips: 0,
        });
        self.wake.notify_one();
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks about new entries at once, and about every entry when that is due: often while things
    /// happen, then ever more rarely, and never for more than a fiftieth of the time.
    fn run(&'static self) {
        let mut pending = Vec::new();
        let (mut is_behind, mut rest, mut pause) = (false, Duration::ZERO, SHORTEST_PAUSE);
        let mut due = Instant::now();
        while !EXITING.load(Relaxed) {
            let first_new = self.collect(&mut pending, due, is_behind);
            let begin = Instant::now();
            let is_due = begin >= due;
            let is_busy = first_new < pending.len();
            let from = if is_due { 0 } else { first_new };
            let has_passed = self.hand_over_what_has_passed(&mut pending, from);
            let end = Instant::now();
            if is_due {
                pause = (pause * 2).min(LONGEST_PAUSE);
                rest = ((end - begin) * REST).min(LONGEST_REST);
            }
            if is_busy || has_passed {
                pause = SHORTEST_PAUSE;
            }
            let next = end + pause.max(rest);
            due = if is_due { next } else { due.min(next) };
            is_behind = self.keep_up();
        }
    }

    /// Sleeps until there is something to do. Returns the index of the first entry that is new.
    fn collect(&self, pending: &mut Vec<Deferred>, due: Instant, is_behind: bool) -> usize {
        let mut queues = self.queues();
        let until = if is_behind {
            due.min(Instant::now() + WHILE_BEHIND)
        } else {
            due
        };
        while queues.incoming.is_empty() {
            queues = if pending.is_empty() && !is_behind {
                self.wake.wait(queues).unwrap_or_else(PoisonError::into_inner)
            } else {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let waited = self.wake.wait_timeout(queues, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
        }
        let first_new = pending.len();
        pending.append(&mut queues.incoming);
        first_new
    }

    fn hand_over_what_has_passed(&self, pending: &mut Vec<Deferred>, from: usize) -> bool {
        let mut passed = VecDeque::new();
        let mut index = from;
        while index < pending.len() {
            if self.has_passed(&mut pending[index]) {
                passed.push_back(pending.remove(index));
            } else {
                index += 1;
            }
        }
        if passed.is_empty() {
            return false;
        }
        self.pending.fetch_sub(passed.len() as i64, Relaxed);
        self.queues().ready.append(&mut passed);
        self.work.notify_one();
        true
    }

    /// An error from a query says nothing about the work: however often it is returned, the array
    /// stays as it is, and is asked for again, ever more rarely.
    fn has_passed(&self, entry: &mut Deferred) -> bool {
        if entry.skips > 0 {
            entry.skips -= 1;
            return false;
        }
        match entry.recorded.events().has_passed(&entry.recorded) {
            Ok(has_passed) => {
                if std::mem::take(&mut entry.refusals) > 0 {
                    self.refused.fetch_sub(1, Relaxed);
                }
                has_passed
            }
            Err(error) => {
                if entry.refusals == 0 {
                    self.refused.fetch_add(1, Relaxed);
                }
                entry.refusals = (entry.refusals + 1).min(MOST_REFUSALS);
                entry.skips = (1 << entry.refusals) - 1;
                self.queues().last_refusal = error.to_string();
                false
            }
        }
    }

    /// One worker is enough while callbacks are quick. When entries wait and no worker has taken
    /// one since the last call, another one is started. False when nothing waits.
    fn keep_up(&'static self) -> bool {
        let mut queues = self.queues();
        if queues.ready.is_empty() {
            return false;
        }
        if queues.seen != queues.taken {
            queues.seen = queues.taken;
        } else if queues.idle > 0 {
            self.work.notify_one();
        } else if queues.workers < MOST_WORKERS && spawn(move || self.release()).is_ok() {
            queues.workers += 1;
        } else if queues.workers == 0 {
            drop(self.release_first(queues)); // there can be no thread at all
        }
        true
    }

    /// A worker. Of those that have nothing to do `MOST_IDLE` stay, asleep.
    fn release(&self) {
        let mut queues = self.queues();
        loop {
            while !queues.ready.is_empty() {
                if EXITING.load(Relaxed) {
                    return;
                }
                queues = self.release_first(queues);
            }
            if queues.idle >= MOST_IDLE {
                break;
            }
            queues.idle += 1;
            while queues.ready.is_empty() {
                queues = self.work.wait(queues).unwrap_or_else(PoisonError::into_inner);
            }
            queues.idle -= 1;
        }
        queues.workers -= 1;
    }

    fn release_first<'a>(&'a self, mut queues: MutexGuard<'a, Queues>) -> MutexGuard<'a, Queues> {
        let mut first = queues.ready.pop_front();
        queues.taken += 1;
        drop(queues);
        if let Some(events) = first.as_ref().map(|entry| entry.recorded.events()) {
            // The callback may well free memory, which another thread's capture would refuse.
            events.run_relaxed(&mut || drop(first.take()));
        }
        self.queues()
    }
}

fn spawn(body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let builder = thread::Builder::new().name("fletching-release".into());
    builder.spawn(body).map(drop)
}

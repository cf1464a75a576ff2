// SPDX-License-Identifier: Apache-2.0

//! A thread that asks whether the work that reads an array has passed, and threads that call the
//! release callbacks, so that a slow one delays no other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::event::{Recorded, INHERITED_EVENTS};
use crate::{DeviceArray, Error};

const SHORTEST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
const REST: u32 = 50; // times the duration of a query of every entry
const LONGEST_REST: Duration = Duration::from_millis(100);
const MOST_REFUSALS: u32 = 4; // then every 16th time is often enough
const MOST_IDLE: usize = 2;
const MOST_WORKERS: usize = 64; // callbacks that all wait for one lock need no more

/// Whether the process exits: what has not begun is left alone.
static EXITING: AtomicBool = AtomicBool::new(false);

extern "C" fn note_exit() {
    EXITING.store(true, Relaxed);
}

/// An array that is released when its event has passed. The event is dropped first.
struct Deferred {
    recorded: Recorded,
    _array: DeviceArray,
    /// How often in a row the runtime has refused to answer, as far as it matters, and how often
    /// not to ask from now on.
    refusals: u32,
    skips: u32,
}

#[derive(Default)]
struct Queues {
    incoming: Vec<Deferred>,
    ready: VecDeque<Deferred>,
    pending: i64,
    refused: i64,
    last_refusal: String,
    workers: usize,
    idle: usize,
}

/// One for the process. It is never dropped and its threads are never joined: what the device has
/// not finished when the process exits is left alone. In a child of fork there is no such thread.
#[derive(Default)]
pub(super) struct Reaper {
    process: u32,
    queues: Mutex<Queues>,
    wake: Condvar,
    work: Condvar,
}

/// Counts of the arrays that [`DeviceArray::release_after`] has taken, see [`pending_releases`].
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

/// The counts as of now, in this process. Does not start a thread.
#[must_use]
pub fn pending_releases() -> PendingReleases {
    let mut counts = PendingReleases {
        inherited_events: INHERITED_EVENTS.load(Relaxed),
        ..PendingReleases::default()
    };
    let here = |reaper: &&Reaper| reaper.process == std::process::id();
    if let Some(reaper) = REAPER.get().filter(here) {
        let queues = lock(&reaper.queues);
        (counts.pending, counts.refused) = (queues.pending, queues.refused);
        counts.last_refusal.clone_from(&queues.last_refusal);
    }
    counts
}

static REAPER: OnceLock<Reaper> = OnceLock::new();
static STARTED: Mutex<bool> = Mutex::new(false);

/// No code that may panic runs with a lock held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition
        .wait(guard)
        .unwrap_or_else(PoisonError::into_inner)
}

fn spawn(body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let builder = thread::Builder::new().name("fletching-release".into());
    builder.spawn(body).map(drop)
}

impl Reaper {
    /// With its thread, which the first call starts.
    ///
    /// Errors: EAGAIN when there can be no thread, ECHILD in a child of fork.
    pub(super) fn instance() -> Result<&'static Self, Error> {
        let process = std::process::id();
        let reaper = REAPER.get_or_init(|| Self {
            process,
            ..Self::default()
        });
        if reaper.process != process {
            return Err(Error::new(
                crate::errno::ECHILD,
                "release_after: called in a child of fork, which has no thread that releases \
                 arrays; hint: start processes with exec (spawn), or use release_after in one of \
                 parent and child only",
            ));
        }
        let mut is_started = lock(&STARTED);
        if !*is_started {
            spawn(|| reaper.run()).map_err(|error| {
                Error::with_source(crate::errno::EAGAIN, "release_after: no thread", error)
            })?;
            // SAFETY: the function may be called at any time.
            unsafe { libc::atexit(note_exit) };
            *is_started = true;
        }
        Ok(reaper)
    }

    pub(super) fn add(&self, recorded: Recorded, array: DeviceArray) {
        let mut queues = lock(&self.queues);
        queues.pending += 1;
        queues.incoming.push(Deferred {
            recorded,
            _array: array,
            refusals: 0,
            skips: 0,
        });
        self.wake.notify_one();
    }

    /// Asks about new entries at once, and about every entry when that is due: often while things
    /// happen, then ever more rarely, and never for more than a fiftieth of the time.
    fn run(&'static self) {
        let mut pending = Vec::new();
        let (mut rest, mut pause) = (Duration::ZERO, SHORTEST_PAUSE);
        let mut due = Instant::now();
        while !EXITING.load(Relaxed) {
            let first_new = self.collect(&mut pending, due);
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
        }
    }

    /// Sleeps until there is something to do. Returns the index of the first entry that is new.
    fn collect(&self, pending: &mut Vec<Deferred>, due: Instant) -> usize {
        let mut queues = lock(&self.queues);
        while queues.incoming.is_empty() {
            if pending.is_empty() {
                queues = wait(&self.wake, queues);
                continue;
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.wake.wait_timeout(queues, left);
            queues = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let first_new = pending.len();
        pending.append(&mut queues.incoming);
        first_new
    }

    fn hand_over_what_has_passed(&'static self, pending: &mut Vec<Deferred>, from: usize) -> bool {
        let (mut passed, mut left) = (VecDeque::new(), Vec::new());
        for mut entry in pending.drain(from..) {
            match self.has_passed(&mut entry) {
                true => passed.push_back(entry),
                false => left.push(entry),
            }
        }
        pending.append(&mut left);
        if passed.is_empty() {
            return false;
        }
        let mut queues = lock(&self.queues);
        queues.pending -= passed.len() as i64;
        queues.ready.append(&mut passed);
        self.call_worker(&mut queues);
        if queues.workers == 0 {
            drop(self.release_ready(queues)); // there can be no thread at all
        }
        true
    }

    /// An error from a query says nothing about the work: however often it is returned, the array
    /// stays as it is, and is asked for again, ever more rarely.
    fn has_passed(&self, entry: &mut Deferred) -> bool {
        if entry.skips > 0 {
            entry.skips -= 1;
            return false;
        }
        let answer = entry.recorded.events.has_passed(&entry.recorded);
        let mut queues = lock(&self.queues);
        queues.refused -= i64::from(entry.refusals > 0);
        let error = match answer {
            Ok(has_passed) => {
                entry.refusals = 0;
                return has_passed;
            }
            Err(error) => error,
        };
        queues.refused += 1;
        queues.last_refusal = error.to_string();
        entry.refusals = (entry.refusals + 1).min(MOST_REFUSALS);
        entry.skips = (1 << entry.refusals) - 1;
        false
    }

    /// With something ready: lets a worker take it, a new one when none is idle.
    fn call_worker(&'static self, queues: &mut Queues) {
        if queues.idle > 0 {
            self.work.notify_one();
        } else if queues.workers < MOST_WORKERS && spawn(|| self.work()).is_ok() {
            queues.workers += 1;
        }
    }

    /// A worker. Of those that have nothing to do `MOST_IDLE` stay, asleep.
    fn work(&'static self) {
        let mut queues = self.release_ready(lock(&self.queues));
        while queues.idle < MOST_IDLE {
            queues.idle += 1;
            while queues.ready.is_empty() {
                queues = wait(&self.work, queues);
            }
            queues.idle -= 1;
            queues = self.release_ready(queues);
        }
        queues.workers -= 1;
    }

    fn release_ready<'a>(
        &'static self,
        mut queues: MutexGuard<'a, Queues>,
    ) -> MutexGuard<'a, Queues> {
        while let Some(first) = queues.ready.pop_front() {
            // Its callback may be slow, and what is behind it does not wait for it.
            if !queues.ready.is_empty() {
                self.call_worker(&mut queues);
            }
            drop(queues);
            // The callback may well free memory, which another thread's capture would refuse.
            let (events, mut first) = (first.recorded.events, Some(first));
            match EXITING.load(Relaxed) {
                true => std::mem::forget(first),
                false => events.run_relaxed(&mut || drop(first.take())),
            }
            queues = lock(&self.queues);
        }
        queues
    }
}

// SPDX-License-Identifier: Apache-2.0
//
// A thread that queries whether the work that reads an array is done.
#ifndef FLETCHING_CORE_REAPER_H
#define FLETCHING_CORE_REAPER_H

#include "releaser.h"

// The process-wide reaper, whose thread is never joined. Pending entries are not released at
// process exit. A child of fork has no such thread and may call only is_of_parent().
static struct {
  lock_type lock;
  condition_type wake;
  struct release_list incoming;          // guarded by the lock
  struct FletchingMessage last_refusal;  // also guarded by the lock
  struct release_list pending;           // used by the thread
  _Atomic int64_t process;               // owner of the thread; 0 before it is started
  _Atomic int64_t pending_count;         // entries whose event is not known to have passed
  _Atomic int64_t refused_count;         // entries whose last query failed
} reaper = {.lock = LOCK_INIT};

static const int64_t MICROSECOND = 1000;

enum {
  SHORTEST_PAUSE_US = 20,
  LONGEST_PAUSE_US = 20000,
  PAUSE_WHILE_BEHIND_US = 500,  // the maximum while a release waits for a thread
  REST_FACTOR = 50,             // times the duration of a query of all streams
  LONGEST_REST_US = 100000,
  MOST_REFUSALS = 4,  // then every 16th round queries the entry
};

static _Atomic int64_t records;  // counts the starts and ends of records

static bool is_of_parent(void) {
  const int64_t process = atomic_load(&reaper.process);
  return process != 0 && process != process_number();
}

// If the stream was captured, records the event once the capture has ended. Until then, the origin
// is the rejected recording's.
static bool ask_entry(struct FletchingRelease* entry, struct failure* failure) {
  const struct runtime* runtime = entry->recorded.runtime;
  if (entry->recorded.event != NULL) return runtime->has_passed(runtime, &entry->recorded, failure);
  const struct origin origin = entry->recorded.origin;
  if (runtime->is_gone(runtime, &origin)) return true;
  if (record_event(&entry->recorded, runtime, &entry->stream, FLETCHING_CAPTURE_REFUSE, failure)) {
    entry->record_ended = atomic_fetch_add(&records, 1);
    return false;
  }
  entry->recorded.origin = origin;
  if (failure->code == EBUSY) {
    no_failure(failure);
    return false;
  }
  return runtime->is_lost(runtime, &entry->stream);
}

// A failed query does not show whether the work is done. The array is kept and queried again at
// increasing intervals.
static bool has_passed(struct FletchingRelease* entry) {
  if (entry->skips > 0) {
    --entry->skips;
    return false;
  }
  struct failure failure;
  no_failure(&failure);
  const bool passed = ask_entry(entry, &failure);
  const bool is_refused = !passed && failure.code != 0;
  if (is_refused && entry->refusals == 0) atomic_fetch_add(&reaper.refused_count, 1);
  if (!is_refused && entry->refusals > 0) atomic_fetch_sub(&reaper.refused_count, 1);
  if (!is_refused) {
    entry->refusals = 0;
    return passed;
  }
  if (entry->refusals < MOST_REFUSALS) ++entry->refusals;
  entry->skips = (1 << entry->refusals) - 1;
  lock(&reaper.lock);
  reaper.last_refusal = failure.message;
  unlock(&reaper.lock);
  return false;
}

// --- Queues: only the first pending entry of a stream is queried ---

// Whether the new entry `later` can only pass after `entry`. One handle can denote the default
// streams of several contexts, devices and threads. Overlapping records may have either order.
static bool comes_after(const struct FletchingRelease* later,
                        const struct FletchingRelease* entry) {
  const struct FletchingRecordedEvent* a = &later->recorded;
  const struct FletchingRecordedEvent* b = &entry->recorded;
  return b->event != NULL && later->record_began > entry->record_ended &&
         a->runtime == b->runtime && later->stream.handle == entry->stream.handle &&
         later->thread == entry->thread && a->origin.context == b->origin.context &&
         a->origin.device == b->origin.device;
}

// Returns the link to the first new queue.
static struct FletchingRelease** add_to_queues(struct FletchingRelease* entry) {
  struct FletchingRelease** first_new = end_of(&reaper.pending);
  while (entry != NULL) {
    struct FletchingRelease* next = entry->next;
    // An entry without an event follows no other entry.
    struct FletchingRelease* head = entry->recorded.event != NULL ? reaper.pending.first : NULL;
    while (head != NULL && !comes_after(entry, head)) head = head->next;
    entry->next = NULL;
    append_entry(head != NULL ? &head->followers : &reaper.pending, entry);
    entry = next;
  }
  return first_new;
}

// Makes the first follower the next head.
static void split_queue(struct FletchingRelease* head) {
  struct FletchingRelease* follower = head->followers.first;
  if (follower == NULL) return;
  if (follower->next != NULL) {
    follower->followers = (struct release_list){follower->next, head->followers.end};
  }
  head->followers = (struct release_list){NULL, NULL};
  follower->next = head->next;
  head->next = follower;
}

// Starts the releases of finished entries, beginning at *place. Returns whether there were any.
static bool hand_over(struct FletchingRelease** place) {
  bool any = false;
  while (*place != NULL) {
    struct FletchingRelease* entry = *place;
    const bool is_done = has_passed(entry);
    // An entry whose query failed does not delay others.
    if (is_done || entry->refusals > 0) split_queue(entry);
    if (!is_done) {
      place = &entry->next;
      continue;
    }
    *place = entry->next;
    entry->next = NULL;
    any = true;
    // Before the other count decreases, so that the entry is always counted.
    atomic_fetch_add(&releaser.running_count, 1);
    atomic_fetch_sub(&reaper.pending_count, 1);
    start_release(entry);
  }
  reaper.pending.end = place;
  return any;
}

// Sleeps until there is work. Returns the first new entry, or NULL.
static struct FletchingRelease* collect(int64_t due, bool is_behind) {
  lock(&reaper.lock);
  if (is_behind && due > now_ns() + PAUSE_WHILE_BEHIND_US * MICROSECOND) {
    due = now_ns() + PAUSE_WHILE_BEHIND_US * MICROSECOND;
  }
  if (reaper.pending.first == NULL && !is_behind) due = INT64_MAX;
  while (reaper.incoming.first == NULL && (due == INT64_MAX || now_ns() < due)) {
    wait_until(&reaper.wake, &reaper.lock, due);
  }
  struct FletchingRelease* first = reaper.incoming.first;
  reaper.incoming = (struct release_list){NULL, NULL};
  unlock(&reaper.lock);
  return first;
}

static int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

// Queries new streams at once and all streams when due: at short intervals while there is activity,
// then at increasing ones. A round that takes up to 2 ms uses at most a fiftieth of the time.
static void run_reaper(void* unused) {
  (void)unused;
  bool is_behind = false;
  int64_t rest = 0;
  int64_t pause = SHORTEST_PAUSE_US * MICROSECOND;
  int64_t due = now_ns();
  while (!atomic_load(&is_exiting)) {
    struct FletchingRelease* incoming = collect(due, is_behind);
    struct FletchingRelease** first_new = add_to_queues(incoming);
    const int64_t begin = now_ns();
    const bool is_due = begin >= due;
    const bool is_busy = incoming != NULL;
    const bool any = hand_over(is_due ? &reaper.pending.first : first_new);
    const int64_t end = now_ns();
    if (is_due) {
      pause = at_most(pause * 2, LONGEST_PAUSE_US * MICROSECOND);
      rest = at_most((end - begin) * REST_FACTOR, LONGEST_REST_US * MICROSECOND);
    }
    if (is_busy || any) pause = SHORTEST_PAUSE_US * MICROSECOND;
    const int64_t next = end + at_least(pause, rest);
    due = is_due ? next : at_most(due, next);
    is_behind = keep_up();
  }
}

static lock_type starting = LOCK_INIT;

static bool start_reaper(void) {
  static int64_t ready_in;  // a child of fork inherits conditions with lost waiters
  if (ready_in != process_number()) {
    if (!init_condition(&reaper.wake) || !init_condition(&releaser.changed)) return false;
    pin_this_library();
    ready_in = process_number();
  }
  return start_thread(run_reaper, NULL);
}

// Returns false if no thread can be started.
static bool has_reaper(struct failure* failure) {
  if (atomic_load(&reaper.process) != 0) return true;
  lock(&starting);
  if (atomic_load(&reaper.process) == 0 && start_reaper()) {
    atomic_store(&reaper.process, process_number());
  }
  unlock(&starting);
  return atomic_load(&reaper.process) != 0 || fail(failure, EAGAIN, "no thread can be started");
}

static void add_to_reaper(struct FletchingRelease* entry) {
  atomic_fetch_add(&reaper.pending_count, 1);
  lock(&reaper.lock);
  append_entry(&reaper.incoming, entry);
  unlock(&reaper.lock);
  notify(&reaper.wake);
}

#endif  // FLETCHING_CORE_REAPER_H

// SPDX-License-Identifier: Apache-2.0
//
// Threads that call release callbacks, so that a slow callback does not delay others.
#ifndef FLETCHING_CORE_RELEASER_H
#define FLETCHING_CORE_RELEASER_H

#include "streams.h"

struct release_list {
  struct FletchingRelease* first;
  struct FletchingRelease** end;  // link after the last entry; NULL if the list is new
};

// An array to release after its event has passed.
struct FletchingRelease {
  struct ArrowDeviceArray array;
  struct FletchingRecordedEvent recorded;  // has no event if the stream is captured
  struct FletchingStream stream;
  // Counter values at the start and end of the event's record.
  int64_t record_began;
  int64_t record_ended;
  int64_t thread;  // if it is a per-thread default stream, its thread; otherwise 0
  // Consecutive failed queries, up to MOST_REFUSALS, and the number of rounds to skip.
  int refusals;
  int skips;
  struct release_list followers;  // later entries of the same stream
  struct FletchingRelease* next;
};

static struct FletchingRelease** end_of(struct release_list* list) {
  return list->end != NULL ? list->end : &list->first;
}

static void append_entry(struct release_list* list, struct FletchingRelease* entry) {
  *end_of(list) = entry;
  list->end = &entry->next;
}

// Set at process exit: no further release starts.
static atomic_bool is_exiting;
static void note_exit(void) { atomic_store(&is_exiting, true); }

// Must be called after the first use of the runtime, so that note_exit runs before the runtime's
// exit handlers.
static void watch_exit(int32_t runtime) {
  static _Atomic uint32_t watched;
  const uint32_t bit = UINT32_C(1) << runtime;
  if ((atomic_fetch_or(&watched, bit) & bit) == 0) (void)atexit(note_exit);
}

// Worker threads for release callbacks. A new thread starts if entries wait and none was taken
// since the last keep_up, up to MOST_WORKERS. At most MOST_IDLE idle threads sleep. The threads are
// never joined.
enum {
  MOST_IDLE = 2,
  MOST_WORKERS = 64,  // enough even if all callbacks wait for one lock
};

static struct {
  lock_type lock;
  condition_type changed;
  struct release_list ready;  // the lock guards this and the next four
  uint64_t taken;             // total
  uint64_t seen;              // `taken` at the last keep_up
  int workers;
  int idle;
  _Atomic int64_t running_count;  // passed entries whose callback has not returned
} releaser = {.lock = LOCK_INIT};

// --- One release ---

// Moves a live struct to the stack and releases it there: the callback may free the struct's memory
// and may forget to set release to NULL.
static void release_array(struct ArrowArray* array) {
  struct ArrowArray moved = *array;
  array->release = NULL;
  moved.release(&moved);
}

static void run_release(void* data) {
  struct FletchingRelease* entry = data;
  end_recorded(&entry->recorded);
  release_array(&entry->array.array);
}

void FletchingReleaseRun(struct FletchingRelease* release) {
  if (atomic_load(&is_exiting)) return;
  const struct FletchingRecordedEvent* recorded = &release->recorded;
  recorded->runtime->settle(recorded->runtime, recorded);
  recorded->runtime->run_at_origin(recorded->runtime, recorded, run_release, release);
  free(release);
  atomic_fetch_sub(&releaser.running_count, 1);
}

// --- Threads ---

// Called with the lock, which it releases during the callback.
static void release_first(void) {
  struct FletchingRelease* entry = releaser.ready.first;
  releaser.ready.first = entry->next;
  if (entry->next == NULL) releaser.ready.end = NULL;
  ++releaser.taken;
  unlock(&releaser.lock);
  FletchingReleaseRun(entry);
  lock(&releaser.lock);
}

static void run_worker(void* unused) {
  (void)unused;
  lock(&releaser.lock);
  for (;;) {
    while (releaser.ready.first != NULL && !atomic_load(&is_exiting)) release_first();
    if (releaser.idle >= MOST_IDLE || atomic_load(&is_exiting)) break;
    ++releaser.idle;
    while (releaser.ready.first == NULL) {
      wait_until(&releaser.changed, &releaser.lock, INT64_MAX);
    }
    --releaser.idle;
  }
  --releaser.workers;
  unlock(&releaser.lock);
}

// Must be called periodically by one thread until it returns false, which means that no entry
// waits.
static bool keep_up(void) {
  lock(&releaser.lock);
  const bool waits = releaser.ready.first != NULL;
  const bool is_moving = releaser.seen != releaser.taken;
  releaser.seen = releaser.taken;
  if (waits && !is_moving) {
    if (releaser.idle > 0) {
      notify(&releaser.changed);
    } else if (releaser.workers < MOST_WORKERS && start_thread(run_worker, NULL)) {
      ++releaser.workers;
    } else if (releaser.workers == 0) {
      release_first();  // no thread could be started
    }
  }
  unlock(&releaser.lock);
  return waits;
}

static int (*_Atomic starter)(struct FletchingRelease* release);

void FletchingSetReleaseStarter(int (*start)(struct FletchingRelease* release)) {
  atomic_store(&starter, start);
}

static void start_release(struct FletchingRelease* entry) {
  int (*start)(struct FletchingRelease*) = atomic_load(&starter);
  if (start != NULL && start(entry) == 0) return;
  lock(&releaser.lock);
  append_entry(&releaser.ready, entry);
  unlock(&releaser.lock);
  notify(&releaser.changed);
}

#endif  // FLETCHING_CORE_RELEASER_H

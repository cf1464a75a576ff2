// SPDX-License-Identifier: Apache-2.0
//
// Releases arrays after the work that reads them on a stream. Never releases an array early.
#ifndef FLETCHING_CORE_RELEASE_AFTER_H
#define FLETCHING_CORE_RELEASE_AFTER_H

#include "reaper.h"

static _Atomic int64_t leaked_arrays;

static void* const PER_THREAD_STREAM = (void*)2;  // for CUDA and HIP

// The address of a thread-local variable would not do: a later thread may reuse it.
static int64_t thread_number(void) {
  static _Atomic int64_t threads;
  static _Thread_local int64_t own;
  if (own == 0) own = atomic_fetch_add(&threads, 1) + 1;
  return own;
}

// Takes the array. Errors: see FletchingDeviceArrayReleaseAfter; the array is then unchanged.
static bool defer_release(struct ArrowDeviceArray* array, struct FletchingStream* stream,
                          int on_capture, struct failure* failure) {
  const struct runtime* runtime = recorder_for(array->device_type, stream->runtime, failure);
  if (runtime == NULL) return false;
  if (is_of_parent()) {
    return fail(failure, ECHILD,
                "called in a child of fork, which has no thread that releases arrays; hint: start "
                "processes with exec (spawn), or release arrays in the parent or the child only");
  }
  if (!has_reaper(failure)) return false;
  struct FletchingRelease* entry = calloc(1, sizeof *entry);
  if (entry == NULL) return fail(failure, ENOMEM, "no memory");
  entry->stream = *stream;
  if (runtime->graph != NULL && stream->handle == PER_THREAD_STREAM) {
    entry->thread = thread_number();
  }
  entry->record_began = atomic_fetch_add(&records, 1);
  bool is_taken =
      record_event(&entry->recorded, runtime, stream, FLETCHING_CAPTURE_REFUSE, failure);
  if (!is_taken && failure->code == EBUSY && on_capture == FLETCHING_CAPTURE_KEEP) {
    no_failure(failure);
    is_taken = runtime->resolve(runtime, &entry->stream, failure);
  }
  entry->record_ended = atomic_fetch_add(&records, 1);
  if (!is_taken) {
    free(entry);
    return false;
  }
  watch_exit(stream->runtime);
  entry->array = *array;
  array->array.release = NULL;
  add_to_reaper(entry);
  return true;
}

// Fallback that waits for the stream. Not after EBUSY, where the wait could break a capture, nor
// after ECHILD, where the runtime did not survive the fork.
static bool wait_and_release(struct ArrowDeviceArray* array, const struct FletchingStream* stream,
                             int code) {
  struct failure failure;
  no_failure(&failure);
  if (code == EBUSY || code == ECHILD || !finish_stream(stream, &failure)) return false;
  release_array(&array->array);
  return true;
}

static void leak(struct ArrowDeviceArray* array) {
  array->array.release = NULL;
  if (atomic_fetch_add(&leaked_arrays, 1) != 0) return;
  write_to_stderr(
      "fletching: warning: an array is leaked, because its release can neither be "
      "deferred nor wait for the stream; the error says why (printed once, and counted)\n");
}

static void take_array(struct ArrowDeviceArray* array, struct FletchingStream stream,
                       int on_capture, struct failure* failure) {
  const int32_t own = device_runtime(array->device_type);
  if (!complete_stream(&stream, array->device_type, array->device_id, failure)) {
    // The stream's order does not cover the work on this memory.
    if (own != FLETCHING_RUNTIME_NONE) {
      leak(array);
      return;
    }
    no_failure(failure);  // work of any runtime may read host memory
  }
  if (stream.runtime == FLETCHING_RUNTIME_NONE && stream.handle == NULL) {
    release_array(&array->array);  // no stream, no pending work
    return;
  }
  if (defer_release(array, &stream, on_capture, failure)) return;
  if (wait_and_release(array, &stream, failure->code)) {
    no_failure(failure);
    return;
  }
  leak(array);
  if (failure->code == EBUSY) {
    add_hint(failure,
             "keep the array until the graph is destroyed, and release it after the stream of its "
             "last launch");
  }
}

int FletchingDeviceArrayReleaseAfter(struct ArrowDeviceArray* array, struct FletchingStream stream,
                                     int on_capture, struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (array == NULL) {
    fail(&failure, EINVAL, "array: NULL: expected a device array");
  } else if (array->array.release == NULL) {
    fail(&failure, EINVAL, "array is released: expected a live array");
  } else {
    take_array(array, stream, on_capture, &failure);
  }
  return report(&failure, message);
}

void FletchingPendingReleases(struct FletchingReleaseCounts* counts,
                              struct FletchingMessage* last_refusal) {
  *counts = (struct FletchingReleaseCounts){.leaked = atomic_load(&leaked_arrays),
                                            .inherited_events = atomic_load(&inherited_events)};
  if (last_refusal != NULL) last_refusal->text[0] = '\0';
  if (atomic_load(&reaper.process) != process_number()) return;
  // In the order in which hand_over() changes them, so that each entry is counted.
  counts->pending = atomic_load(&reaper.pending_count);
  counts->running = atomic_load(&releaser.running_count);
  counts->refused = atomic_load(&reaper.refused_count);
  if (last_refusal == NULL) return;
  lock(&reaper.lock);
  *last_refusal = reaper.last_refusal;
  unlock(&reaper.lock);
}

#endif  // FLETCHING_CORE_RELEASE_AFTER_H

// SPDX-License-Identifier: Apache-2.0
//
// Records events for arrays, and keeps them alive with hooks until the last struct of an array is
// released.
#ifndef FLETCHING_CORE_EXPORT_EVENT_H
#define FLETCHING_CORE_EXPORT_EVENT_H

#include "events.h"

static _Atomic int64_t inherited_events;

static void count_inherited(void) {
  if (atomic_fetch_add(&inherited_events, 1) != 0) return;
  write_to_stderr(
      "fletching: warning: release in a child of fork: the event is not destroyed, because the "
      "vendor's runtime does not survive a fork (printed once, and counted)\n");
}

// Ignores errors, because no caller can receive them.
static void end_recorded(const struct FletchingRecordedEvent* recorded) {
  if (recorded->event == NULL) return;
  if (recorded->process != process_number()) {
    count_inherited();  // the parent owns it, and the runtime does not survive a fork
    return;
  }
  recorded->runtime->destroy(recorded->runtime, recorded);
}

// Returns the runtime of a stream, or NULL with the failure.
static const struct runtime* recorder_of(int32_t number, struct failure* failure) {
  const struct runtime* runtime = numbered_runtime(number);
  if (runtime != NULL && runtime->record != NULL) return runtime;
  (void)fail(failure, ENOTSUP, "%s", runtime != NULL ? runtime->no_record : "no such runtime");
  return NULL;
}

// Like recorder_of, for an array of a device type.
static const struct runtime* recorder_for(ArrowDeviceType type, int32_t number,
                                          struct failure* failure) {
  struct failure reason;
  no_failure(&reason);
  const struct runtime* runtime = recorder_of(number, &reason);
  if (runtime == NULL) {
    (void)fail(failure, reason.code, "device type %s: %s", label_of(type).text,
               reason.message.text);
  }
  return runtime;
}

static bool record_event(struct FletchingRecordedEvent* recorded, const struct runtime* runtime,
                         const struct FletchingStream* stream, int on_capture,
                         struct failure* failure) {
  *recorded = (struct FletchingRecordedEvent){.runtime = runtime, .process = process_number()};
  if (runtime->record(runtime, recorded, stream, on_capture, failure)) return true;
  end_recorded(recorded);
  recorded->event = NULL;
  return false;
}

int FletchingStreamRecord(struct FletchingStream stream, int on_capture,
                          struct FletchingRecordedEvent** recorded,
                          struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (!check_result(recorded, &failure)) return report(&failure, message);
  *recorded = NULL;
  const struct runtime* runtime = recorder_of(stream.runtime, &failure);
  struct FletchingRecordedEvent* made = runtime != NULL ? malloc(sizeof *made) : NULL;
  if (runtime != NULL && made == NULL) fail(&failure, ENOMEM, "no memory");
  if (made != NULL && record_event(made, runtime, &stream, on_capture, &failure)) {
    *recorded = made;
  } else {
    free(made);
  }
  return report(&failure, message);
}

void* FletchingRecordedEventAddress(struct FletchingRecordedEvent* recorded) {
  return &recorded->event;
}

void FletchingRecordedEventDestroy(struct FletchingRecordedEvent* recorded) {
  if (recorded == NULL) return;
  end_recorded(recorded);
  free(recorded);
}

// --- Hooks ---

// An event and the number of its users: the structs of an array, each of which a consumer may move
// out.
struct event_share {
  struct FletchingRecordedEvent recorded;
  atomic_size_t users;
};

// Original callback of a struct.
struct event_hook {
  void (*release)(struct ArrowArray*);
  void* private_data;
  struct event_share* share;
  struct event_hook* next;  // links the hooks until they are set
  struct ArrowArray* target;
};

static void leave_share(struct event_share* share) {
  if (atomic_fetch_sub(&share->users, 1) != 1) return;
  end_recorded(&share->recorded);
  free(share);
}

static void run_event_hook(struct ArrowArray* array) {
  if (array->release == NULL) return;
  struct event_hook* hook = array->private_data;
  array->release = hook->release;
  array->private_data = hook->private_data;
  // The callback may free the struct's memory and may forget to set release to NULL.
  struct ArrowArray moved = *array;
  array->release = NULL;
  moved.release(&moved);
  leave_share(hook->share);
  free(hook);
}

static void free_hooks(struct event_hook* first) {
  while (first != NULL) {
    struct event_hook* next = first->next;
    free(first);
    first = next;
  }
}

#define MOST_LEVELS 256
#define MOST_STRUCTS ((int64_t)1 << 22)

static bool malformed(const char* what, struct failure* failure) {
  return fail(failure, EINVAL, "array: %s", what);
}

// Makes a hook for every live struct of the array, without setting it. Skips the descendants of a
// released struct, which may belong to another owner or be freed. `n_structs` is the total.
static bool make_hooks(struct ArrowArray* array, int level, int64_t* n_structs,
                       struct event_hook** first, struct failure* failure) {
  if (level > MOST_LEVELS) {
    return malformed("nested deeper than 256 levels", failure);
  }
  if (array->release == NULL) return true;
  if (array->n_children < 0 || array->n_children > MOST_STRUCTS - *n_structs) {
    return malformed("n_children: expected 0 to 4194304 structs in all", failure);
  }
  *n_structs += array->n_children + (array->dictionary != NULL ? 1 : 0);
  if (array->n_children > 0 && array->children == NULL) {
    return malformed("children: NULL: expected a list", failure);
  }
  struct event_hook* hook = malloc(sizeof *hook);
  if (hook == NULL) return fail(failure, ENOMEM, "no memory");
  *hook = (struct event_hook){.target = array, .next = *first};
  *first = hook;
  for (int64_t i = 0; i < array->n_children; ++i) {
    if (array->children[i] == NULL) {
      return malformed("a child is NULL: expected an array", failure);
    }
    if (!make_hooks(array->children[i], level + 1, n_structs, first, failure)) {
      return false;
    }
  }
  return array->dictionary == NULL ||
         make_hooks(array->dictionary, level + 1, n_structs, first, failure);
}

static void set_hooks(struct event_hook* first, struct event_share* share) {
  for (struct event_hook* hook = first; hook != NULL; hook = hook->next) {
    hook->share = share;
    hook->release = hook->target->release;
    hook->private_data = hook->target->private_data;
    hook->target->release = run_event_hook;
    hook->target->private_data = hook;
    hook->target = NULL;  // may be in memory that a language moves or reuses
    atomic_fetch_add(&share->users, 1);
  }
}

static bool export_event(struct ArrowDeviceArray* array, struct FletchingStream stream,
                         int on_capture, struct failure* failure) {
  struct FletchingEvent event = {0};
  if (!event_of(array, &event, failure)) return false;
  if (event.sync_event != NULL) {
    return fail(failure, EINVAL, "sync_event is set: expected NULL");
  }
  const int32_t number = device_runtime(event.device_type);
  const struct runtime* runtime = recorder_for(event.device_type, number, failure);
  if (runtime == NULL || !complete_stream(&stream, event.device_type, event.device_id, failure)) {
    return false;
  }
  // Do everything that can fail before changing the array.
  struct event_hook* hooks = NULL;
  int64_t n_structs = 0;
  struct event_share* share = calloc(1, sizeof *share);
  bool is_recorded = share != NULL || fail(failure, ENOMEM, "no memory");
  is_recorded = is_recorded && make_hooks(&array->array, 0, &n_structs, &hooks, failure) &&
                record_event(&share->recorded, runtime, &stream, on_capture, failure);
  if (!is_recorded) {
    free_hooks(hooks);
    free(share);
    return false;
  }
  set_hooks(hooks, share);
  array->sync_event = &share->recorded.event;
  return true;
}

static bool export_event_with_hint(struct ArrowDeviceArray* array, struct FletchingStream stream,
                                   int on_capture, struct failure* failure) {
  if (export_event(array, stream, on_capture, failure)) return true;
  if (failure->code == EBUSY) {
    add_hint(failure,
             "export before the capture begins, or pass FLETCHING_CAPTURE_EXTERNAL_EVENT for an "
             "event that each launch of the graph records");
  }
  return false;
}

int FletchingDeviceArrayExportWithEvent(struct ArrowDeviceArray* array,
                                        struct FletchingStream stream, int on_capture,
                                        struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  (void)export_event_with_hint(array, stream, on_capture, &failure);
  return report(&failure, message);
}

#endif  // FLETCHING_CORE_EXPORT_EVENT_H

// SPDX-License-Identifier: Apache-2.0
//
// Registered waiters by device type, and the operations that use them.
#ifndef FLETCHING_CORE_WAITER_H
#define FLETCHING_CORE_WAITER_H

#include "runtimes.h"

struct waiter_entry {
  ArrowDeviceType type;
  struct FletchingWaiter waiter;
  struct waiter_entry* next;
};

// A short list. Waiters are not freed at process exit, because they may be used until then.
static struct waiter_entry* first_waiter;
static lock_type waiter_lock = LOCK_INIT;

// Returns the link to the device type's entry, or the NULL link at the end. Requires the lock.
static struct waiter_entry** find_waiter(ArrowDeviceType type) {
  struct waiter_entry** place = &first_waiter;
  while (*place != NULL && (*place)->type != type) place = &(*place)->next;
  return place;
}

// The list changes in one store, so that a child of fork sees it before or after the change.
static bool add_waiter(ArrowDeviceType type, const struct FletchingWaiter* waiter) {
  struct waiter_entry* made = malloc(sizeof *made);
  if (made == NULL) return false;
  lock(&waiter_lock);
  struct waiter_entry** place = find_waiter(type);
  struct waiter_entry* replaced = *place;
  struct waiter_entry* next = replaced != NULL ? replaced->next : NULL;
  *made = (struct waiter_entry){.type = type, .waiter = *waiter, .next = next};
  atomic_signal_fence(memory_order_release);
  *place = made;
  unlock(&waiter_lock);
  free(replaced);
  return true;
}

int FletchingRegisterWaiter(ArrowDeviceType device_type, const struct FletchingWaiter* waiter,
                            struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  const struct device_label device = label_of(device_type);
  if (waiter == NULL) {
    fail(&failure, EINVAL,
         "waiter: NULL: expected a FletchingWaiter; hint: unregister a waiter to remove it");
  } else if (has_own_waits(device_type)) {
    fail(&failure, EINVAL,
         "%s needs no waiter: expected a device type without a runtime in Fletching", device.text);
  } else if (waiter->synchronize == NULL && waiter->wait_on == NULL && waiter->ready == NULL) {
    fail(&failure, EINVAL,
         "the waiter for %s has no function: expected at least one; hint: unregister the waiter to "
         "remove it",
         device.text);
  } else if (!add_waiter(device_type, waiter)) {
    fail(&failure, ENOMEM, "no memory");
  }
  return report(&failure, message);
}

int FletchingUnregisterWaiter(ArrowDeviceType device_type) {
  lock(&waiter_lock);
  struct waiter_entry** place = find_waiter(device_type);
  struct waiter_entry* entry = *place;
  if (entry != NULL) *place = entry->next;
  unlock(&waiter_lock);
  free(entry);
  return entry != NULL;
}

int FletchingHasWaiter(ArrowDeviceType device_type) {
  lock(&waiter_lock);
  const bool is_there = *find_waiter(device_type) != NULL;
  unlock(&waiter_lock);
  return is_there;
}

// Finds the waiter of the event's device type, or fails with a hint.
static bool get_waiter(const struct FletchingEvent* event, struct FletchingWaiter* waiter,
                       struct failure* failure) {
  lock(&waiter_lock);
  const struct waiter_entry* entry = *find_waiter(event->device_type);
  if (entry != NULL) *waiter = entry->waiter;
  unlock(&waiter_lock);
  if (entry != NULL) return true;
  const char* instead = runtime_of(event->device_type)->instead_of_wait;
  if (instead != NULL) return fail(failure, ENOTSUP, "%s", instead);
  return fail(
      failure, ENOTSUP, "no way to wait on an event of %s%s", label_of(event->device_type).text,
      device_has_no_event(event->device_type) ? ": expected sync_event NULL on this device type"
                                              : "; hint: register a waiter for this device type");
}

static bool not_in_waiter(const struct FletchingEvent* event, struct failure* failure) {
  return fail(failure, ENOTSUP, "event of %s: not supported by the registered waiter",
              label_of(event->device_type).text);
}

static bool from_waiter(const struct FletchingEvent* event, int code,
                        struct FletchingMessage* message, struct failure* failure) {
  char text[sizeof message->text];
  if (code == 0) return true;
  message->text[sizeof message->text - 1] = '\0';
  copy_printable(text, sizeof text, message->text);
  return fail(failure, code, "event of %s: %s", label_of(event->device_type).text,
              text[0] != '\0' ? text : "waiter failed without a message");
}

static bool waiter_synchronize(const struct FletchingEvent* event, struct failure* failure) {
  struct FletchingWaiter waiter;
  struct FletchingMessage message = {""};
  if (!get_waiter(event, &waiter, failure)) return false;
  if (waiter.synchronize == NULL) return not_in_waiter(event, failure);
  const int code =
      waiter.synchronize(waiter.context, event->sync_event, event->device_id, &message);
  return from_waiter(event, code, &message, failure);
}

static bool waiter_wait_on(const struct FletchingEvent* event, void* stream,
                           struct failure* failure) {
  struct FletchingWaiter waiter;
  struct FletchingMessage message = {""};
  if (!get_waiter(event, &waiter, failure)) return false;
  if (waiter.wait_on == NULL) return not_in_waiter(event, failure);
  const int code =
      waiter.wait_on(waiter.context, event->sync_event, event->device_id, stream, &message);
  return from_waiter(event, code, &message, failure);
}

static bool waiter_ready(const struct FletchingEvent* event, bool* is_done,
                         struct failure* failure) {
  struct FletchingWaiter waiter;
  struct FletchingMessage message = {""};
  int ready = 0;
  if (!get_waiter(event, &waiter, failure)) return false;
  if (waiter.ready == NULL) return not_in_waiter(event, failure);
  const int code =
      waiter.ready(waiter.context, event->sync_event, event->device_id, &ready, &message);
  *is_done = ready != 0;
  return from_waiter(event, code, &message, failure);
}

#endif  // FLETCHING_CORE_WAITER_H

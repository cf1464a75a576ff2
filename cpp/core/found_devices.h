// SPDX-License-Identifier: Apache-2.0
//
// Devices of a runtime on this machine. Creates no context.
#ifndef FLETCHING_CORE_FOUND_DEVICES_H
#define FLETCHING_CORE_FOUND_DEVICES_H

#include "library.h"

enum { MOST_NAME = 256, MOST_DEVICES = 65536 };

struct found_device {
  int64_t id;
  bool has_managed_memory;  // CUDA
  char name[MOST_NAME];
};

struct found_devices {
  const char* library;  // the loaded name; NULL if it was not loaded
  char version[MOST_NAME];
  struct failure failure;  // the reason for an empty list
  struct found_device* devices;
  int64_t n_devices;
};

static bool no_memory(struct failure* failure) {
  return fail(failure, ENOMEM, "device report: no memory");
}

// Makes room for more devices at the end.
static bool make_room(struct found_devices* found, int64_t more) {
  if (more <= 0) return true;
  if (more > MOST_DEVICES) {
    return fail(&found->failure, EIO, "device report: %lld devices: expected at most %d",
                (long long)more, MOST_DEVICES);
  }
  const size_t count = (size_t)(found->n_devices + more);
  struct found_device* devices = calloc(count, sizeof *devices);
  if (devices == NULL) return no_memory(&found->failure);
  if (found->n_devices > 0) {
    memcpy(devices, found->devices, (size_t)found->n_devices * sizeof *devices);
  }
  free(found->devices);
  found->devices = devices;
  return true;
}

// Sets a name or version from the runtime, or the error in parentheses.
static void set_text(char text[MOST_NAME], const char* given, const struct failure* failure) {
  if (failure->code == 0) {
    copy_printable(text, MOST_NAME, given);
    return;
  }
  (void)snprintf(text, MOST_NAME - 1, "(%.*s", MOST_NAME - 3, failure->message.text);
  end_at_character(text);
  strcat(text, ")");
}

#endif  // FLETCHING_CORE_FOUND_DEVICES_H

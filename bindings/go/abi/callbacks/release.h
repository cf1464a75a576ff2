/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLETCHING_GO_CALLBACKS_RELEASE_H
#define FLETCHING_GO_CALLBACKS_RELEASE_H

#include <stdint.h>
#include <string.h>

/* Maximum size of a struct with a release callback, asserted in calls.go. */
enum { kFletchingGoMovedSize = 256 };

/* Moves the struct to the stack and releases it there. `offset` is the offset of its release
 * callback. */
static inline void release_moved(uint8_t* self, size_t size, size_t offset) {
  uint64_t moved[kFletchingGoMovedSize / sizeof(uint64_t)];
  void (*release)(void*);
  memcpy(moved, self, size);
  memcpy(&release, self + offset, sizeof(release));
  memset(self + offset, 0, sizeof(release));
  release(moved);
}

#endif /* FLETCHING_GO_CALLBACKS_RELEASE_H */

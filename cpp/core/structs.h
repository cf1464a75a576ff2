// SPDX-License-Identifier: Apache-2.0
//
// Init, move and release of the five structs.
#ifndef FLETCHING_CORE_STRUCTS_H
#define FLETCHING_CORE_STRUCTS_H

#include <string.h>

#include "failure.h"
#include "fletching/layout.h"
#include "fletching/structs.h"
#include "fletching/version.h"

// Defines the functions of one struct. BASE is the path to the release callback's struct, or empty.
#define STRUCT_FUNCTIONS(NAME, TYPE, BASE_TYPE, BASE)                              \
  void Fletching##NAME##Init(struct TYPE* self) { memset(self, 0, sizeof *self); } \
  void Fletching##NAME##Move(struct TYPE* source, struct TYPE* target) {           \
    if (source == target) return;                                                  \
    *target = *source;                                                             \
    source->BASE release = NULL;                                                   \
  }                                                                                \
  int Fletching##NAME##IsReleased(const struct TYPE* self) {                       \
    return self == NULL || self->BASE release == NULL;                             \
  }                                                                                \
  /* The callback may free the memory of the struct, and may forget to mark it. */ \
  void Fletching##NAME##Release(struct TYPE* self) {                               \
    if (Fletching##NAME##IsReleased(self)) return;                                 \
    struct TYPE moved = *self;                                                     \
    self->BASE release = NULL;                                                     \
    moved.BASE release((struct BASE_TYPE*)(void*)&moved);                          \
  }

STRUCT_FUNCTIONS(Schema, ArrowSchema, ArrowSchema, )
STRUCT_FUNCTIONS(Array, ArrowArray, ArrowArray, )
STRUCT_FUNCTIONS(DeviceArray, ArrowDeviceArray, ArrowArray, array.)
STRUCT_FUNCTIONS(ArrayStream, ArrowArrayStream, ArrowArrayStream, )
STRUCT_FUNCTIONS(DeviceArrayStream, ArrowDeviceArrayStream, ArrowDeviceArrayStream, )

const char* FletchingVersion(void) { return FLETCHING_VERSION; }

int FletchingCheckLayout(uint64_t layout, struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (layout != FLETCHING_LAYOUT) {
    (void)fail(&failure, EINVAL,
               "layout: expected the structs of version %s, got others; hint: compile with the "
               "headers of the library that is loaded",
               FLETCHING_VERSION);
  }
  return report(&failure, message);
}

#endif  // FLETCHING_CORE_STRUCTS_H

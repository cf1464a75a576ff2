/* SPDX-License-Identifier: Apache-2.0 */
#include "native.h"

#include <stdlib.h>

#include "_cgo_export.h"
#include "tensor.h"

struct Leaf {
  struct ArrowArray array;
  const void* buffers[2];
  uintptr_t owner;
};

void floor_release(struct ArrowArray* array) { array->release(array); }

static void release_leaf(struct ArrowArray* self) {
  struct Leaf* leaf = self->private_data;
  self->release = NULL;
  floor_go_unpin(leaf->owner);
  free(leaf);
}

struct ArrowArray* floor_new(int64_t length, uintptr_t values, uintptr_t owner) {
  struct Leaf* leaf = malloc(sizeof *leaf);
  if (leaf == NULL) return NULL;
  leaf->buffers[0] = NULL;
  leaf->buffers[1] = (const void*)values;
  leaf->owner = owner;
  leaf->array = (struct ArrowArray){.length = length,
                                    .n_buffers = 2,
                                    .buffers = leaf->buffers,
                                    .release = release_leaf,
                                    .private_data = leaf};
  return &leaf->array;
}

uintptr_t floor_to_dlpack(struct ArrowDeviceArray* array) {
  return (uintptr_t)hand_to_dlpack(array);
}

void floor_from_dlpack(uintptr_t tensor, struct ArrowSchema* schema,
                       struct ArrowDeviceArray* array) {
  hand_from_dlpack((DLManagedTensorVersioned*)tensor, schema, array);
}

void floor_release_schema(struct ArrowSchema* schema) { schema->release(schema); }

// SPDX-License-Identifier: Apache-2.0
//
// Hand-written conversion of an int64 column to a tensor and back: one dimension, no options. Only
// the type is checked.
#ifndef FLETCHING_BENCHMARKS_TENSOR_H
#define FLETCHING_BENCHMARKS_TENSOR_H

#include <stdint.h>
#include <stdlib.h>

#include "fletching/abi.h"
#include "fletching/dlpack.h"

struct hand_tensor {
  DLManagedTensorVersioned managed;
  struct ArrowDeviceArray array;
  int64_t extents[2];
};

static void delete_hand_tensor(DLManagedTensorVersioned* self) {
  struct hand_tensor* tensor = self->manager_ctx;
  if (tensor->array.array.release != NULL) tensor->array.array.release(&tensor->array.array);
  free(tensor);
}

static DLManagedTensorVersioned* hand_to_dlpack(struct ArrowDeviceArray* array) {
  struct hand_tensor* tensor = malloc(sizeof *tensor);
  if (tensor == NULL) abort();
  const uintptr_t first =
      (uintptr_t)array->array.buffers[1] + (uintptr_t)array->array.offset * sizeof(int64_t);
  tensor->extents[0] = array->array.length;
  tensor->extents[1] = 1;
  tensor->managed =
      (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                 .manager_ctx = tensor,
                                 .deleter = delete_hand_tensor,
                                 .flags = DLPACK_FLAG_BITMASK_READ_ONLY,
                                 .dl_tensor = {.data = (void*)first,
                                               .device = {kDLCPU, 0},
                                               .ndim = 1,
                                               .dtype = {kDLInt, 64, 1},
                                               .shape = &tensor->extents[0],
                                               .strides = &tensor->extents[1]}};
  tensor->array = *array;
  array->array.release = NULL;
  return &tensor->managed;
}

static void release_hand_schema(struct ArrowSchema* self) {
  free(self->private_data);
  self->release = NULL;
}

struct hand_array {
  DLManagedTensorVersioned* tensor;
  const void* buffers[2];
};

static void release_hand_array(struct ArrowArray* self) {
  struct hand_array* array = self->private_data;
  if (array->tensor->deleter != NULL) array->tensor->deleter(array->tensor);
  free(array);
  self->release = NULL;
}

static void hand_from_dlpack(DLManagedTensorVersioned* tensor, struct ArrowSchema* schema,
                             struct ArrowDeviceArray* out) {
  const DLTensor* read = &tensor->dl_tensor;
  if (read->ndim != 1 || read->dtype.code != kDLInt || read->dtype.bits != 64) abort();
  struct hand_array* array = malloc(sizeof *array);
  char* format = malloc(2);
  if (array == NULL || format == NULL) abort();
  array->tensor = tensor;
  array->buffers[0] = NULL;
  array->buffers[1] = (const char*)read->data + read->byte_offset;
  format[0] = 'l';
  format[1] = '\0';
  *schema = (struct ArrowSchema){.format = format,
                                 .name = "",
                                 .flags = ARROW_FLAG_NULLABLE,
                                 .release = release_hand_schema,
                                 .private_data = format};
  *out = (struct ArrowDeviceArray){.array = {.length = read->shape[0],
                                             .n_buffers = 2,
                                             .buffers = array->buffers,
                                             .release = release_hand_array,
                                             .private_data = array},
                                   .device_id = -1,
                                   .device_type = ARROW_DEVICE_CPU};
}

#endif  // FLETCHING_BENCHMARKS_TENSOR_H

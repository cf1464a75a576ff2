/* A library that is tested with `fletching validate`: it counts to three. test_validate.py compiles
 * it in variants: correct by default, BROKEN breaks three rules, CRASHES, HANGS and LEAKS. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fletching/abi.h"
#include "fletching/dlpack.h"

enum { kBatches = 3 };

/* --- Schemas and arrays: a column of three int32 --- */

static void ReleaseSchema(struct ArrowSchema* schema) { schema->release = NULL; }

int count_schema(struct ArrowSchema* out) {
  *out = (struct ArrowSchema){.format = "i", .name = "count", .release = ReleaseSchema};
  return 0;
}

struct Column {
  const void* buffers[2];
  int32_t values[3];
};

static void ReleaseArray(struct ArrowArray* array) {
#ifdef LEAKS
  array->private_data = NULL;
#endif
  free(array->private_data);
#ifndef BROKEN
  array->release = NULL;
#endif
}

int count_array(struct ArrowSchema* schema, struct ArrowArray* out) {
  struct Column* column = malloc(sizeof *column);
  if (column == NULL) return ENOMEM;
  *column = (struct Column){.buffers = {NULL, column->values}, .values = {1, 2, 3}};
  *out = (struct ArrowArray){.length = 3,
                             .n_buffers = 2,
                             .buffers = column->buffers,
                             .release = ReleaseArray,
                             .private_data = column};
#ifdef BROKEN
  out->null_count = 1;
#endif
  return count_schema(schema);
}

int count_device_array(struct ArrowSchema* schema, struct ArrowDeviceArray* out) {
  out->device_type = ARROW_DEVICE_CPU;
#ifdef BROKEN
  out->reserved[0] = 1;
#endif
  out->device_id = -1;
  return count_array(schema, &out->array);
}

/* --- Streams of three arrays --- */

struct Source {
  int returned;
};

static int GetSchema(struct ArrowArrayStream* stream, struct ArrowSchema* out) {
  (void)stream;
  return count_schema(out);
}

static int GetNext(struct ArrowArrayStream* stream, struct ArrowArray* out) {
  struct Source* source = stream->private_data;
#ifdef CRASHES
  if (source->returned == 2) abort();
#endif
#ifdef HANGS
  while (source->returned == 2) pause();
#endif
#ifdef BROKEN
  if (source->returned == 2) return -EIO;
#endif
  out->release = NULL;
  if (source->returned == kBatches) return 0;
  ++source->returned;
  struct ArrowSchema schema;
  return count_array(&schema, out);
}

static const char* GetLastError(struct ArrowArrayStream* stream) {
  (void)stream;
  return "the counter is broken";
}

static void ReleaseStream(struct ArrowArrayStream* stream) {
  free(stream->private_data);
  stream->release = NULL;
}

int count_stream(struct ArrowArrayStream* out) {
  struct Source* source = calloc(1, sizeof *source);
  if (source == NULL) return ENOMEM;
  *out = (struct ArrowArrayStream){GetSchema, GetNext, GetLastError, ReleaseStream, source};
  return 0;
}

/* --- Tensors --- */

struct Tensor {
  DLManagedTensorVersioned managed;
  int64_t shape;
  int64_t stride;
  int32_t values[3];
};

static void DeleteTensor(DLManagedTensorVersioned* tensor) { free(tensor->manager_ctx); }

int count_tensor(DLManagedTensorVersioned** out) {
  struct Tensor* tensor = malloc(sizeof *tensor);
  if (tensor == NULL) return ENOMEM;
  *tensor = (struct Tensor){.shape = 3, .stride = 1, .values = {1, 2, 3}};
  tensor->managed =
      (DLManagedTensorVersioned){.version = {1, 3}, .manager_ctx = tensor, .deleter = DeleteTensor};
  tensor->managed.dl_tensor = (DLTensor){.data = tensor->values,
                                         .device = {kDLCPU, 0},
                                         .ndim = 1,
                                         .dtype = {kDLInt, 32, 1},
                                         .shape = &tensor->shape,
                                         .strides = &tensor->stride};
#ifdef BROKEN
  tensor->managed.dl_tensor.strides = NULL;
#endif
  *out = &tensor->managed;
  return 0;
}

/* --- Consumers --- */

static void Release(struct ArrowSchema* schema, struct ArrowArray* array) {
  if (schema->release != NULL) schema->release(schema);
#ifdef LEAKS
  array->release = NULL;
#endif
  if (array->release != NULL) array->release(array);
}

/* Accepts an array of int32. */
int sum_array(struct ArrowSchema* schema, struct ArrowArray* array) {
  const int is_live = schema->release != NULL && array->release != NULL;
  const int is_int32 = is_live && schema->format != NULL && strcmp(schema->format, "i") == 0;
  const int is_sound = is_int32 && array->n_buffers == 2 && array->buffers != NULL &&
                       array->length >= 0 && array->offset >= 0 && array->n_children == 0 &&
                       schema->n_children == 0;
#ifdef CRASHES
  if (is_live && array->length < 0) abort();
#endif
  Release(schema, array);
  return is_sound ? 0 : is_live && !is_int32 ? ENOTSUP : EINVAL;
}

int sum_device_array(struct ArrowSchema* schema, struct ArrowDeviceArray* array) {
  return sum_array(schema, &array->array);
}

int sum_stream(struct ArrowArrayStream* stream) {
  if (stream->release == NULL) return EINVAL;
  int code = stream->get_next == NULL || stream->get_schema == NULL ? EINVAL : 0;
  while (code == 0) {
    struct ArrowArray array = {.release = NULL};
    code = stream->get_next(stream, &array);
    if (code != 0 || array.release == NULL) break;
    array.release(&array);
#ifdef BROKEN
    stream->get_last_error(stream);
#endif
  }
  stream->release(stream);
  return code < 0 ? EINVAL : code;
}

int sum_tensor(DLManagedTensorVersioned* tensor) {
  const int is_sound = tensor->version.major == 1 && tensor->dl_tensor.ndim == 1;
#ifndef LEAKS
  if (tensor->deleter != NULL) tensor->deleter(tensor);
#endif
  return is_sound ? 0 : ENOTSUP;
}

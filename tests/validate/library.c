/* A library that is tested with `fletching validate`: it counts to three. test_validate.py compiles
 * it in variants: correct by default, BROKEN breaks three rules, CRASHES, HANGS and LEAKS. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fletching/conformance.h"
#include "fletching/roles.h"

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

#ifdef CORRECT
int count_array(struct ArrowSchema* schema, struct ArrowArray* array);

/* Fills a cache during its first 300 calls. */
int count_array_cached(struct ArrowSchema* schema, struct ArrowArray* array) {
  static void* cache[300];
  static size_t used;
  if (used < 300) cache[used++] = malloc(64);
  return cache[used - 1] == NULL ? ENOMEM : count_array(schema, array);
}

/* Keeps a block on every sixteenth call, as a just-in-time compiler might. */
int count_array_grows(struct ArrowSchema* schema, struct ArrowArray* array) {
  static void* kept[1 << 12];
  static int calls;
  if (++calls % 16 == 0) kept[calls / 16] = malloc(300);
  return calls >= 16 && kept[calls / 16] == NULL ? ENOMEM : count_array(schema, array);
}
#endif

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
#ifdef BROKEN
  if (is_sound) return 0;
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
#ifdef BROKEN
    if (code != 0 && array.release != NULL) array.release(&array);
#endif
    if (code != 0 || array.release == NULL) break;
    array.release(&array);
#ifdef BROKEN
    stream->get_last_error(stream);
#endif
  }
  stream->release(stream);
  return code < 0 ? EINVAL : code;
}

#ifdef CRASHES
/* Calls get_last_error without a check. */
int read_error(struct ArrowArrayStream* stream) {
  struct ArrowArray array = {.release = NULL};
  if (stream->get_next(stream, &array) != 0) stream->get_last_error(stream);
  if (array.release != NULL) array.release(&array);
  stream->release(stream);
  return 0;
}
#endif

int sum_tensor(DLManagedTensorVersioned* tensor) {
  const int is_sound = tensor->version.major == 1 && tensor->dl_tensor.ndim == 1;
#ifndef LEAKS
  if (tensor->deleter != NULL) tensor->deleter(tensor);
#endif
  return is_sound ? 0 : ENOTSUP;
}

int sum_legacy_tensor(DLManagedTensor* tensor) {
  const int is_sound = tensor->dl_tensor.ndim == 1;
#ifndef LEAKS
  if (tensor->deleter != NULL) tensor->deleter(tensor);
#endif
  return is_sound ? 0 : ENOTSUP;
}

/* --- An async stream without batches --- */

struct Sender {
  struct ArrowAsyncProducer base;
  struct ArrowAsyncDeviceStreamHandler* handler;
  int is_cancelled; /* atomic, and so is the next */
  int is_invalid;
};

static void Request(struct ArrowAsyncProducer* self, int64_t n) {
  struct Sender* sender = self->private_data;
  if (n <= 0) __atomic_store_n(&sender->is_invalid, 1, __ATOMIC_SEQ_CST);
}

static void Cancel(struct ArrowAsyncProducer* self) {
  struct Sender* sender = self->private_data;
  __atomic_store_n(&sender->is_cancelled, 1, __ATOMIC_SEQ_CST);
}

static void* Send(void* argument) {
  struct Sender* sender = argument;
  struct ArrowAsyncDeviceStreamHandler* handler = sender->handler;
  struct ArrowSchema schema;
  count_schema(&schema);
#ifdef BROKEN
  handler->on_next_task(handler, NULL, NULL);
#endif
  const int code = handler->on_schema(handler, &schema);
  if (schema.release != NULL) schema.release(&schema);
  const int is_over = code != 0 || __atomic_load_n(&sender->is_cancelled, __ATOMIC_SEQ_CST);
  if (!is_over && __atomic_load_n(&sender->is_invalid, __ATOMIC_SEQ_CST)) {
    handler->on_error(handler, EINVAL, "expected a positive number of batches", NULL);
  } else if (!is_over) {
    handler->on_next_task(handler, NULL, NULL);
  }
  handler->release(handler);
  free(sender);
  return NULL;
}

int count_async(struct ArrowAsyncDeviceStreamHandler* handler) {
  struct Sender* sender = calloc(1, sizeof *sender);
  if (sender == NULL) return ENOMEM;
  sender->base = (struct ArrowAsyncProducer){
      .device_type = ARROW_DEVICE_CPU, .request = Request, .cancel = Cancel};
  sender->base.private_data = sender;
  sender->handler = handler;
  handler->producer = &sender->base;
  pthread_t thread;
  const int code = pthread_create(&thread, NULL, Send, sender);
  if (code == 0) return pthread_detach(thread);
  free(sender);
  return code;
}

/* --- A handler that takes every batch --- */

static int OnSchema(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowSchema* schema) {
  if (schema == NULL || schema->release == NULL) return EINVAL;
  schema->release(schema);
  if (self->producer == NULL || self->producer->request == NULL) return EINVAL;
  self->producer->request(self->producer, 1);
  return 0;
}

static int OnTask(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowAsyncTask* task,
                  const char* metadata) {
  (void)metadata;
  if (task == NULL) return 0;
  if (task->extract_data == NULL) return EINVAL;
#ifndef LEAKS
  struct ArrowDeviceArray array = {.reserved = {0}};
  if (task->extract_data(task, &array) == 0 && array.array.release != NULL) {
    array.array.release(&array.array);
  }
#endif
  self->producer->request(self->producer, 1);
  return 0;
}

static void OnError(struct ArrowAsyncDeviceStreamHandler* self, int code, const char* message,
                    const char* metadata) {
  (void)self, (void)code, (void)message, (void)metadata;
}

static void ReleaseHandler(struct ArrowAsyncDeviceStreamHandler* self) { free(self); }

int sum_async(struct ArrowAsyncDeviceStreamHandler** out) {
  struct ArrowAsyncDeviceStreamHandler* handler = calloc(1, sizeof *handler);
  if (handler == NULL) return ENOMEM;
  handler->on_schema = OnSchema;
  handler->on_next_task = OnTask;
  handler->on_error = OnError;
  handler->release = ReleaseHandler;
  *out = handler;
  return 0;
}

/* --- The same library as a subject --- */

static int PassSchema(void* context, struct ArrowSchema* in, struct ArrowSchema* out,
                      struct FletchingMessage* message) {
  (void)context;
  if (in->release == NULL) {
    strcpy(message->text, "schema: expected a live one, got a released one");
    return EINVAL;
  }
  *out = *in;
#ifdef BROKEN
  out->flags = 0;
#endif
  in->release = NULL;
  return 0;
}

FLETCHING_CONFORMANCE_EXPORT const struct FletchingSubject* FletchingConformanceSubject(
    int32_t index) {
  static const struct FletchingSubject kSubject = {
      .size = sizeof kSubject, .name = "counter", .schema = PassSchema};
  return index == 0 ? &kSubject : NULL;
}

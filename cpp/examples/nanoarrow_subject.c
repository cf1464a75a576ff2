// SPDX-License-Identifier: Apache-2.0
//
// nanoarrow's C library as a subject of the conformance suite (tests/conformance/README.md). It
// reads schemas and arrays with nanoarrow's views, copies a schema, and collects a stream.
#include <errno.h>
#include <nanoarrow/nanoarrow.h>
#include <stdlib.h>
#include <string.h>

#include "fletching/conformance.h"

static int finish(int code, const struct ArrowError* error, struct FletchingMessage* message) {
  const char* text = error->message[0] != '\0' ? error->message : "nanoarrow gives no text";
  strncpy(message->text, code == 0 ? "" : text, sizeof message->text - 1);
  message->text[sizeof message->text - 1] = '\0';
  return code;
}

static int schema(void* context, struct ArrowSchema* in, struct ArrowSchema* out,
                  struct FletchingMessage* message) {
  (void)context;
  struct ArrowError error = {{0}};
  struct ArrowArrayView view; /* reads the schema and all below it */
  ArrowArrayViewInitFromType(&view, NANOARROW_TYPE_UNINITIALIZED);
  int code = ArrowArrayViewInitFromSchema(&view, in, &error);
  ArrowArrayViewReset(&view);
  if (code == 0) code = ArrowSchemaDeepCopy(in, out);
  return finish(code, &error, message);
}

/* Reads all values of an array on the CPU. */
static int read_array(const struct ArrowSchema* schema, const struct ArrowArray* array,
                      struct ArrowError* error) {
  struct ArrowArrayView view;
  ArrowArrayViewInitFromType(&view, NANOARROW_TYPE_UNINITIALIZED);
  int code = ArrowArrayViewInitFromSchema(&view, schema, error);
  if (code == 0) code = ArrowArrayViewSetArray(&view, array, error);
  if (code == 0) code = ArrowArrayViewValidate(&view, NANOARROW_VALIDATION_LEVEL_FULL, error);
  ArrowArrayViewReset(&view);
  return code;
}

static int array(void* context, struct ArrowSchema* in_schema, struct ArrowDeviceArray* in,
                 struct ArrowSchema* out_schema, struct ArrowDeviceArray* out,
                 struct FletchingMessage* message) {
  (void)context;
  struct ArrowError error = {{0}};
  if (in->array.release == NULL) {
    ArrowErrorSet(&error, "the array is released");
    return finish(EINVAL, &error, message);
  }
  int code = 0;
  if (in->device_type == ARROW_DEVICE_CPU) code = read_array(in_schema, &in->array, &error);
  if (code == 0) code = ArrowSchemaDeepCopy(in_schema, out_schema);
  if (code != 0) return finish(code, &error, message);
  *out = *in;
  in->array.release = NULL;
  return 0;
}

/* The arrays of a stream, in a growing list. */
struct Arrays {
  struct ArrowArray* list;
  int64_t count;
};

static int collect(struct ArrowArrayStream* in, struct Arrays* arrays, struct ArrowError* error) {
  for (;;) {
    struct ArrowArray next = {0};
    const int code = ArrowArrayStreamGetNext(in, &next, error);
    if (code != 0 || next.release == NULL) return code;
    struct ArrowArray* longer =
        realloc(arrays->list, (size_t)(arrays->count + 1) * sizeof *arrays->list);
    if (longer == NULL) {
      ArrowArrayRelease(&next);
      return ENOMEM;
    }
    arrays->list = longer;
    arrays->list[arrays->count++] = next;
  }
}

static int stream(void* context, struct ArrowArrayStream* in, struct ArrowArrayStream* out,
                  struct FletchingMessage* message) {
  (void)context;
  struct ArrowError error = {{0}};
  struct ArrowSchema read = {0};
  struct Arrays arrays = {NULL, 0};
  if (in->release == NULL) {
    ArrowErrorSet(&error, "the stream is released");
    return finish(EINVAL, &error, message);
  }
  int code = ArrowArrayStreamGetSchema(in, &read, &error);
  if (code != 0) read.release = NULL;
  if (code == 0) code = collect(in, &arrays, &error);
  if (code == 0) code = ArrowBasicArrayStreamInit(out, &read, arrays.count);
  for (int64_t i = 0; i < arrays.count; ++i) {
    if (code == 0) ArrowBasicArrayStreamSetArray(out, i, &arrays.list[i]);
    if (code != 0) ArrowArrayRelease(&arrays.list[i]);
  }
  free(arrays.list);
  if (read.release != NULL) ArrowSchemaRelease(&read);
  return finish(code, &error, message);
}

FLETCHING_CONFORMANCE_EXPORT const struct FletchingSubject* FletchingConformanceSubject(
    int32_t index) {
  static const struct FletchingSubject subject = {
      .size = sizeof(struct FletchingSubject),
      .name = "nanoarrow",
      .promises = FLETCHING_SUBJECT_CHECKS_SCHEMAS | FLETCHING_SUBJECT_CHECKS_FORMATS |
                  FLETCHING_SUBJECT_CHECKS_ARRAYS | FLETCHING_SUBJECT_CHECKS_DATA |
                  FLETCHING_SUBJECT_REBUILDS,
      .schema = schema,
      .array = array,
      .stream = stream,
  };
  return index == 0 ? &subject : NULL;
}

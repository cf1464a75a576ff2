/* The functions of libfletching_producer, out of a library that is opened at run time. Each is
 * declared here as fletching_go_producer_NAME. */
#ifndef FLETCHING_GO_PRODUCER_LIBRARY_H
#define FLETCHING_GO_PRODUCER_LIBRARY_H

#include "producer.h"

typedef struct ArrowSchema Schema;
typedef struct ArrowDeviceArray Array;
typedef struct ArrowDeviceArrayStream Stream;
typedef struct FletchingMessage Message;

/* X(result, name, parameters, arguments) */
#define FLETCHING_GO_PRODUCER_FUNCTIONS(X)                                                    \
  X(int32_t, CaseCount, (void), ())                                                           \
  X(const char*, CaseName, (int32_t index), (index))                                          \
  X(const char*, Describe, (const char* name), (name))                                        \
  X(int, ExportArray,                                                                         \
    (const char* backend, const char* name, Schema* schema, Array* array, Message* message),  \
    (backend, name, schema, array, message))                                                  \
  X(int, ExportStream,                                                                        \
    (const char* backend, const char* name, int64_t batches, int64_t fail_at, Stream* stream, \
     Message* message),                                                                       \
    (backend, name, batches, fail_at, stream, message))                                       \
  X(int, VerifyArray,                                                                         \
    (const char* backend, const char* name, const Schema* schema, const Array* array,         \
     Message* message),                                                                       \
    (backend, name, schema, array, message))                                                  \
  X(int, VerifyStream,                                                                        \
    (const char* backend, const char* name, int64_t batches, int64_t fail_at, Stream* stream, \
     Message* message),                                                                       \
    (backend, name, batches, fail_at, stream, message))                                       \
  X(void, ReadCounters, (struct FletchingProducerCounters * counters), (counters))            \
  X(void, ResetCounters, (void), ())

#define FLETCHING_GO_PRODUCER_DECLARE(result, name, parameters, arguments) \
  result fletching_go_producer_##name parameters;
FLETCHING_GO_PRODUCER_FUNCTIONS(FLETCHING_GO_PRODUCER_DECLARE)

/* Returns NULL, or why the library cannot be used; the text lives until the next call. */
const char* fletching_go_producer_open(const char* path);

#endif /* FLETCHING_GO_PRODUCER_LIBRARY_H */

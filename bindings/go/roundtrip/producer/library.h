/* The functions of libfletching_producer, out of a library that is opened at run time. Each is
 * declared here as fletching_go_producer_NAME. */
#ifndef FLETCHING_GO_PRODUCER_LIBRARY_H
#define FLETCHING_GO_PRODUCER_LIBRARY_H

#include "ext_dev.h"
#include "gate.h"
#include "producer.h"
#include "vulkan_handles.h"

typedef struct ArrowSchema Schema;
typedef struct ArrowDeviceArray Array;
typedef struct ArrowDeviceArrayStream Stream;
typedef struct ArrowAsyncDeviceStreamHandler Handler;
typedef struct FletchingMessage Message;
typedef struct FletchingProducerGate Gate;
typedef struct FletchingProducerQueue Queue;

/* X(result, name, parameters, arguments) */
#define FLETCHING_GO_PRODUCER_FUNCTIONS(X)                                                      \
  X(int32_t, BackendCount, (void), ())                                                          \
  X(const char*, BackendName, (int32_t index), (index))                                         \
  X(int32_t, CaseCount, (void), ())                                                             \
  X(const char*, CaseName, (int32_t index), (index))                                            \
  X(int, VerifyDump, (const char* dump, int64_t* asserted, Message* message),                   \
    (dump, asserted, message))                                                                  \
  X(int, ExportArray,                                                                           \
    (const char* backend, const char* name, Schema* schema, Array* array, Message* message),    \
    (backend, name, schema, array, message))                                                    \
  X(int, ExportStream,                                                                          \
    (const char* backend, const char* name, int64_t batches, int64_t fail_at, Stream* stream,   \
     Message* message),                                                                         \
    (backend, name, batches, fail_at, stream, message))                                         \
  X(int, VerifyArray,                                                                           \
    (const char* backend, const char* name, const Schema* schema, const Array* array,           \
     Message* message),                                                                         \
    (backend, name, schema, array, message))                                                    \
  X(int, VerifyStream,                                                                          \
    (const char* backend, const char* name, int64_t batches, int64_t fail_at, Stream* stream,   \
     Message* message),                                                                         \
    (backend, name, batches, fail_at, stream, message))                                         \
  X(void, ReadCounters, (struct FletchingProducerCounters * counters), (counters))              \
  X(void, ResetCounters, (void), ())                                                            \
  X(int, BackendPresence, (const char* backend, int32_t* presence, Message* description),       \
    (backend, presence, description))                                                           \
  X(int, VulkanHandles, (struct FletchingProducerVulkan * handles, Message * message),          \
    (handles, message))                                                                         \
  X(int, GateCreate, (const char* backend, Gate** gate, Message* message),                      \
    (backend, gate, message))                                                                   \
  X(int, GateOpen, (Gate * gate, Message * message), (gate, message))                           \
  X(int, GateDestroy, (Gate * gate, Message * message), (gate, message))                        \
  X(int, ExportArrayBehind,                                                                     \
    (Gate * gate, const char* name, Schema* schema, Array* array, Message* message),            \
    (gate, name, schema, array, message))                                                       \
  X(int, ExportStreamBehind,                                                                    \
    (Gate * gate, const char* name, int64_t batches, int64_t fail_at, Stream* stream,           \
     Message* message),                                                                         \
    (gate, name, batches, fail_at, stream, message))                                            \
  X(int, RunAsync,                                                                              \
    (const char* backend, Gate* gate, const char* name, int64_t batches, int64_t fail_at,       \
     Handler* handler, Message* message),                                                       \
    (backend, gate, name, batches, fail_at, handler, message))                                  \
  X(void, AwaitAsync, (void), ())                                                               \
  X(int, QueueCreate, (const char* backend, Queue** queue, Message* message),                   \
    (backend, queue, message))                                                                  \
  X(void*, QueueHandle, (Queue * queue), (queue))                                               \
  X(int, QueueRead, (Queue * queue, const char* name, const Array* array, Message* message),    \
    (queue, name, array, message))                                                              \
  X(int, QueueIsIdle, (Queue * queue, int32_t* idle, Message* message), (queue, idle, message)) \
  X(int, QueueVerify, (Queue * queue, int32_t expected, int64_t* asserted, Message* message),   \
    (queue, expected, asserted, message))                                                       \
  X(int, QueueDestroy, (Queue * queue, Message * message), (queue, message))

#define FLETCHING_GO_PRODUCER_DECLARE(result, name, parameters, arguments) \
  result fletching_go_producer_##name parameters;
FLETCHING_GO_PRODUCER_FUNCTIONS(FLETCHING_GO_PRODUCER_DECLARE)

/* Returns NULL, or why the library cannot be used; the text lives until the next call. */
const char* fletching_go_producer_open(const char* path);

/* The methods of an event of ext_dev: 0 or an errno value, and for a query whether it has happened.
 */
int fletching_go_producer_ext_dev_query(uintptr_t event);
void fletching_go_producer_ext_dev_synchronize(uintptr_t event);
int fletching_go_producer_ext_dev_wait_on(uintptr_t event, uintptr_t queue);

#endif /* FLETCHING_GO_PRODUCER_LIBRARY_H */

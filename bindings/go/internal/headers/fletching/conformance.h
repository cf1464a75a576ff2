// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite: passes valid and invalid structs of the Arrow C interfaces and of DLPack
// to a library, and checks the structs and errors that it returns. C99 and C++.
//
// The library under test is a subject: a table of functions. Each function imports structs and
// returns the same data as the library exports it. Missing functions are NULL.
//
// Threads: one run at a time in a process. The suite calls a subject from one thread. It calls the
// structs that a subject exports from other threads too, as the interfaces allow.
#ifndef FLETCHING_CONFORMANCE_H
#define FLETCHING_CONFORMANCE_H

#include <stddef.h>
#include <stdint.h>

#include "fletching/abi.h"
#include "fletching/dlpack.h"
#include "fletching/message.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define FLETCHING_CONFORMANCE_EXPORT __declspec(dllexport)
#else
#define FLETCHING_CONFORMANCE_EXPORT __attribute__((visibility("default")))
#endif

struct FletchingWaiter; /* fletching/waiter.h */

/* --- The subject --- */

/** The subject checks the structs of a schema on import, and rejects invalid ones. */
#define FLETCHING_SUBJECT_CHECKS_SCHEMAS 1u
/** The subject reads formats, and rejects unknown ones. */
#define FLETCHING_SUBJECT_CHECKS_FORMATS 2u
/** The subject compares an array's struct with the schema, and rejects mismatches. */
#define FLETCHING_SUBJECT_CHECKS_ARRAYS 4u
/** The subject reads the buffers of a CPU array, and rejects invalid content. */
#define FLETCHING_SUBJECT_CHECKS_DATA 8u
/* Not a promise: the subject converts arrays to those of another library. It may count nulls, omit
 * a bitmap without nulls, relocate empty buffers, buffers at odd addresses and the sizes of
 * variadic buffers, omit ",128" of a decimal, sort metadata, lose the flags of a dictionary's own
 * schema, read a stream to its end before it exports it, and change the errno value of a producer's
 * error. */
#define FLETCHING_SUBJECT_REBUILDS 16u

/** Passes the handler to a producer, which releases it. Returns 0, or an errno value if no producer
 * has it. */
typedef int (*FletchingSubjectConnect)(void* context,
                                       struct ArrowAsyncDeviceStreamHandler* handler);

/* The two sides of the async stream, for the traces (tests/conformance/README.md). The suite sets
 * the size of a table and zeroes the rest; the subject fills it. The functions are called from
 * several threads, and from inside calls that the stream makes. Missing functions are NULL, and the
 * traces that need them are not supported. */

/** An async producer. The suite is its source and its consumer, and decides when it makes calls. */
struct FletchingSubjectProducer {
  size_t size; /* sizeof(struct FletchingSubjectProducer) */
  void* self;  /* passed to every function */
  /** Takes ownership of the schema. This and the next two may reject their struct. */
  void (*schema)(void* self, struct ArrowSchema* schema);
  /** Takes ownership of a batch. */
  void (*batch)(void* self, struct ArrowDeviceArray* batch);
  /** Takes ownership of a batch whose extraction fails with the errno value. May be NULL. */
  void (*failing_batch)(void* self, struct ArrowDeviceArray* batch, int code);
  void (*end)(void* self);
  void (*fail)(void* self, int code);
  /** Runs the producer's oldest job, with at most one handler call, on any thread. Returns 1, or 0
   * if no job is left or one is running. The producer makes no other calls. */
  int (*run)(void* self);
  /** The number of the state in docs/reference/async.md; -1 if it is unknown at the moment. May be
   * NULL. */
  int32_t (*state)(void* self);
  /** Frees the producer, which makes no calls afterwards. */
  void (*release)(void* self);
};

/** Reports a notification of a consumer's application to the suite, inside the handler call:
 * "schema", "task", "end", or "error" with its code. The code is 0 otherwise. */
typedef void (*FletchingSubjectNotify)(void* context, const char* what, int code);

/** An async consumer. The suite is its application and its producer. */
struct FletchingSubjectConsumer {
  size_t size; /* sizeof(struct FletchingSubjectConsumer) */
  void* self;  /* passed to every function */
  /** The suite releases it once. */
  struct ArrowAsyncDeviceStreamHandler* handler;
  void (*request)(void* self, int64_t n);
  /** Extracts the oldest queued task and releases its batch. Returns 0 or an errno value. */
  int (*take)(void* self);
  /** Discards the oldest queued task. Returns an errno value if none is queued. May be NULL. */
  int (*drop)(void* self);
  void (*cancel)(void* self);
  /** Makes the application reject the next schema or task with the errno value. May be NULL. */
  void (*refuse_next)(void* self, int code);
  /** The number of the state in docs/reference/async.md. May be NULL. */
  int32_t (*state)(void* self);
  /** Frees the consumer after its handler is released. */
  void (*release)(void* self);
};

/** A library under test. Zero the struct before you fill it, so that members of later versions are
 * zero.
 *
 * Every function returns 0, or a positive errno value with an error in `message`: ENOTSUP or ENOSYS
 * for a valid struct of a kind that the library does not support. Input structs are moved in. On an
 * error the subject must have released a struct or left it whole; the suite releases the rest.
 * `out` structs are zeroed before the call and filled on success; then the suite owns them. */
struct FletchingSubject {
  size_t size;       /* sizeof(struct FletchingSubject) */
  const char* name;  /* in the results */
  void* context;     /* passed to every function */
  uint32_t promises; /* FLETCHING_SUBJECT_... */

  int (*schema)(void* context, struct ArrowSchema* schema, struct ArrowSchema* out,
                struct FletchingMessage* message);
  int (*array)(void* context, struct ArrowSchema* schema, struct ArrowDeviceArray* array,
               struct ArrowSchema* out_schema, struct ArrowDeviceArray* out,
               struct FletchingMessage* message);
  /** Exports one child alone. It must stay valid when everything else is released. */
  int (*child)(void* context, struct ArrowSchema* schema, struct ArrowDeviceArray* array,
               int64_t index, struct ArrowDeviceArray* out, struct FletchingMessage* message);
  int (*stream)(void* context, struct ArrowArrayStream* stream, struct ArrowArrayStream* out,
                struct FletchingMessage* message);
  int (*device_stream)(void* context, struct ArrowDeviceArrayStream* stream,
                       struct ArrowDeviceArrayStream* out, struct FletchingMessage* message);
  int (*tensor)(void* context, DLManagedTensorVersioned* tensor, DLManagedTensorVersioned** out,
                struct FletchingMessage* message);
  int (*legacy_tensor)(void* context, DLManagedTensor* tensor, DLManagedTensor** out,
                       struct FletchingMessage* message);
  /** Makes an async consumer, calls `connect` once with its handler, waits for the schema, and
   * exports the batches as a stream. Releasing the stream before its end cancels. */
  int (*receive)(void* context, FletchingSubjectConnect connect, void* connect_context,
                 struct ArrowDeviceArrayStream* out, struct FletchingMessage* message);
  /** Starts an async producer that sends the stream to the handler, and returns. On an error the
   * suite keeps the handler. */
  int (*send)(void* context, struct ArrowDeviceArrayStream* stream,
              struct ArrowAsyncDeviceStreamHandler* handler, struct FletchingMessage* message);

  /* Functions for arrays with an event, on any device. The suite keeps the array: a subject that
   * must own it moves it in and back. `stream` is a handle on the array's device: CUstream,
   * hipStream_t, cl_command_queue. */

  /** Waits for the event on the calling thread. */
  int (*synchronize)(void* context, struct ArrowDeviceArray* array,
                     struct FletchingMessage* message);
  /** Writes 1 to *ready if the event has completed, and 0 otherwise. Does not wait. */
  int (*is_ready)(void* context, struct ArrowDeviceArray* array, int32_t* ready,
                  struct FletchingMessage* message);
  /** Makes later work on the stream wait for the event. Does not block. */
  int (*wait_on)(void* context, struct ArrowDeviceArray* array, void* stream,
                 struct FletchingMessage* message);
  /** Gives the array an event that completes after all earlier work on the stream. */
  int (*export_with_event)(void* context, struct ArrowDeviceArray* array, void* stream,
                           struct FletchingMessage* message);
  /** Takes ownership of the array, and releases it after all earlier work on the stream. */
  int (*release_after)(void* context, struct ArrowDeviceArray* array, void* stream,
                       struct FletchingMessage* message);

  /* Functions for devices whose waits need more than a stream. */

  /** Sets the objects for later waits on Vulkan events: the producer's VkDevice, its VkQueue, to
   * which the suite submits, the VkPipelineStageFlags with which events are set, and
   * vkGetDeviceProcAddr. The `stream` of a wait is a VkCommandBuffer. */
  int (*use_vulkan)(void* context, void* device, void* queue, uint32_t set_stages,
                    void* get_device_proc_addr, struct FletchingMessage* message);
  /** Registers the waiter of a device type for the process. The waiter is static; a later one
   * replaces it. */
  int (*register_waiter)(void* context, ArrowDeviceType device_type,
                         const struct FletchingWaiter* waiter, struct FletchingMessage* message);

  /* Functions for async streams. The suite plays the other side. */

  /** Makes an async producer of CPU batches for the handler. */
  int (*producer)(void* context, struct ArrowAsyncDeviceStreamHandler* handler,
                  struct FletchingSubjectProducer* out, struct FletchingMessage* message);
  /** Makes an async consumer, which calls `notify` until it is released. */
  int (*consumer)(void* context, FletchingSubjectNotify notify, void* notify_context,
                  struct FletchingSubjectConsumer* out, struct FletchingMessage* message);
};

/** A shared library with subjects exports a function FletchingConformanceSubject. It returns a
 * subject for each index from 0, and NULL past the last. */
typedef const struct FletchingSubject* (*FletchingConformanceSubjectFunction)(int32_t index);

/* --- The run --- */

/** The result of one case. The strings are valid only during the report. */
struct FletchingConformanceResult {
  const char* group; /* "streams" */
  const char* name;  /* of the case: "stream.next-fails" */
  const char*
      verdict; /* "right", "wrong", "not-supported"; "absent": the machine lacks the device */
  const char* answer;  /* of the subject: "accepted", "refused", or "carried", unread */
  const char* rule;    /* of a wrong result: the id of the broken rule, or "" */
  const char* message; /* of a wrong result: "expected X, got Y" */
};

typedef void (*FletchingConformanceReport)(void* context,
                                           const struct FletchingConformanceResult* result);

struct FletchingFinding; /* fletching/validate.h */

/** Receives each fault of the case in play, before its result; a case can have several. The rule is
 * "" if no published rule is broken. The strings are valid only during the report. */
typedef void (*FletchingConformanceFinding)(void* context, const struct FletchingFinding* finding);

/** Receives the calls into a plain function (fletching/roles.h) and into its structs: "get_next[2]"
 * before a call, "get_next[2] returned 0" after it. */
typedef void (*FletchingConformanceCall)(void* context, const char* text);

/** Called before each case. Returns 0 to play it; otherwise it is skipped without a result. */
typedef int (*FletchingConformanceBegin)(void* context, const char* group, const char* name);

/** Selects cases and receives the results. Zero the struct before you fill it, so that members of
 * later versions are zero. */
struct FletchingConformanceOptions {
  size_t size;                       /* sizeof(struct FletchingConformanceOptions) */
  const char* group;                 /* NULL: all */
  const char* case_name;             /* NULL: all; "cuda.*": those that begin so */
  FletchingConformanceReport report; /* may be NULL */
  void* context;                     /* of report, begin, finding and call */
  FletchingConformanceBegin begin;   /* may be NULL */
  /* May be NULL. Called on any thread, one call at a time. */
  FletchingConformanceFinding finding;
  FletchingConformanceCall call;
};

/** The name of the group at an index from 0; NULL past the last. */
FLETCHING_CONFORMANCE_EXPORT const char* FletchingConformanceGroup(int32_t index);

/** Plays the cases on the subject, one after the other. `wrong` may be NULL.
 *
 * Returns 0 if the run completed, with the number of wrong results in `wrong`. EINVAL for NULL, an
 * unknown size, or a group or case that does not exist; ENOMEM. */
FLETCHING_CONFORMANCE_EXPORT int FletchingConformanceRun(
    const struct FletchingSubject* subject, const struct FletchingConformanceOptions* options,
    int64_t* wrong, struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_CONFORMANCE_H */

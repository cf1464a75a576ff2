/* The hostile peer: structs, streams, async producers and consumers that misbehave on demand, and a
 * record of how the code under test handled them.
 *
 * Errors: a function that takes a message returns 0 or an errno value. On an error, `message`, if
 * it is not NULL, contains one line with the reason: EINVAL for an unknown case or a NULL argument,
 * ENOMEM, EAGAIN if no thread can be started, EBADMSG if the code under test made a mistake.
 *
 * Threads: functions and exported structs may be used from any thread. The record is one per
 * process, so play cases one after the other and end each with Finish.
 *
 * Ownership: returned strings are valid for the lifetime of the library.
 */
#ifndef FLETCHING_HOSTILE_H
#define FLETCHING_HOSTILE_H

#include <stdint.h>

#include "fletching/abi.h"
#include "fletching/dlpack.h"
#include "fletching/message.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define FLETCHING_HOSTILE_EXPORT __declspec(dllexport)
#else
#define FLETCHING_HOSTILE_EXPORT __attribute__((visibility("default")))
#endif

/* --- The catalogue --- */

/* The party that plays the case: the function below that takes the case's name. */
enum {
  kFletchingHostileSchema = 1,          /* ExportSchema */
  kFletchingHostileArray = 2,           /* ExportArray */
  kFletchingHostileStream = 3,          /* ExportStream, ExportDeviceStream */
  kFletchingHostileDeviceStream = 4,    /* ExportDeviceStream */
  kFletchingHostileProducer = 5,        /* StartProducer */
  kFletchingHostileArrayConsumer = 6,   /* ConsumeArray */
  kFletchingHostileStreamConsumer = 7,  /* ConsumeStream, ConsumeDeviceStream */
  kFletchingHostileHandler = 8,         /* OpenHandler */
  kFletchingHostileTensor = 9,          /* ExportTensor, ExportLegacyTensor */
  kFletchingHostileVersionedTensor = 10 /* ExportTensor */
};

/* What the code under test must do. In every case: no crash, no hang, and Finish returns 0. */
enum {
  /* Unusual but valid, or harmless: it works, and all promised data arrives. */
  kFletchingHostileAccepted = 1,
  /* A broken rule: the code under test reports an error when it reads the broken part. Code that
   * only passes the struct on may never read it. */
  kFletchingHostileRefused = 2,
  /* The peer reports an error, which must arrive with the errno of CaseCode. */
  kFletchingHostileReported = 3,
  /* A harmless violation, or a rare feature that not every library supports: accepted, with a
   * warning if the library has warnings, or rejected. */
  kFletchingHostileTolerated = 4,
  /* The peer sends nothing more until the code under test cancels. */
  kFletchingHostileStalled = 5
};

/* Indices are 0 to count - 1. Past the end these return NULL or 0. */
FLETCHING_HOSTILE_EXPORT int32_t FletchingHostileCaseCount(void);
FLETCHING_HOSTILE_EXPORT const char* FletchingHostileCaseName(int32_t index);
FLETCHING_HOSTILE_EXPORT const char* FletchingHostileCaseDescription(int32_t index);
FLETCHING_HOSTILE_EXPORT int32_t FletchingHostileCaseParty(int32_t index);
FLETCHING_HOSTILE_EXPORT int32_t FletchingHostileCaseOutcome(int32_t index);
/* The errno that arrives if the outcome is "reported"; otherwise 0. */
FLETCHING_HOSTILE_EXPORT int32_t FletchingHostileCaseCode(int32_t index);

/* --- The peer as producer ---
 * The valid parts are the same in every case: type int32, values 1, 2, 3 in an array or tensor,
 * three arrays in a stream, on the CPU. `out` is overwritten, and then belongs to the caller. */

FLETCHING_HOSTILE_EXPORT int FletchingHostileExportSchema(const char* name, struct ArrowSchema* out,
                                                          struct FletchingMessage* message);
/* The schema is valid: "i", or "+s" with two "i" for cases about children. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileExportArray(const char* name,
                                                         struct ArrowSchema* schema,
                                                         struct ArrowDeviceArray* out,
                                                         struct FletchingMessage* message);
FLETCHING_HOSTILE_EXPORT int FletchingHostileExportStream(const char* name,
                                                          struct ArrowArrayStream* out,
                                                          struct FletchingMessage* message);
FLETCHING_HOSTILE_EXPORT int FletchingHostileExportDeviceStream(const char* name,
                                                                struct ArrowDeviceArrayStream* out,
                                                                struct FletchingMessage* message);
/* A DLPack 1.3 tensor, and the struct from before 1.0. The caller must delete them. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileExportTensor(const char* name,
                                                          DLManagedTensorVersioned** out,
                                                          struct FletchingMessage* message);
FLETCHING_HOSTILE_EXPORT int FletchingHostileExportLegacyTensor(const char* name,
                                                                DLManagedTensor** out,
                                                                struct FletchingMessage* message);
/* Plays the case on the handler from the peer's threads and returns immediately. The handler must
 * stay valid until its release is called, which happens in every case. On an error it is untouched.
 */
FLETCHING_HOSTILE_EXPORT int FletchingHostileStartProducer(
    const char* name, struct ArrowAsyncDeviceStreamHandler* handler,
    struct FletchingMessage* message);

/* --- The peer as consumer ---
 * These take ownership of the structs, even on an error. */

/* The array may have children. Returns EBADMSG if it violates a producer's obligations. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileConsumeArray(const char* name,
                                                          struct ArrowDeviceArray* array,
                                                          struct FletchingMessage* message);
/* The stream must return `batches` arrays and then its end; any number if `batches` is negative. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileConsumeStream(const char* name, int64_t batches,
                                                           struct ArrowArrayStream* stream,
                                                           struct FletchingMessage* message);
FLETCHING_HOSTILE_EXPORT int FletchingHostileConsumeDeviceStream(
    const char* name, int64_t batches, struct ArrowDeviceArrayStream* stream,
    struct FletchingMessage* message);
/* Opens a handler for the producer under test, which owns it afterwards. If no producer gets it,
 * the caller must call its release. The producer must have a schema, and `batches` batches before
 * the end: any number above 2, or a negative one if the number is unknown. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileOpenHandler(const char* name, int64_t batches,
                                                         struct ArrowAsyncDeviceStreamHandler** out,
                                                         struct FletchingMessage* message);

/* --- The record --- */

/* Live objects, and events since the last Finish. */
struct FletchingHostileCounters {
  int64_t live_structs;  /* exported and unreleased schemas, arrays, streams and tensors; children
                            count separately */
  int64_t live_tasks;    /* delivered by a producer here and not extracted */
  int64_t live_handlers; /* passed to StartProducer or opened here, and not released */
  int64_t exported;
  int64_t released;
  int64_t tasks_delivered;
  int64_t tasks_extracted;
  int64_t mistakes; /* by the code under test: released twice, extracted twice, called after
                       release, ... */
};

FLETCHING_HOSTILE_EXPORT void FletchingHostileReadCounters(
    struct FletchingHostileCounters* counters);

/* Ends the case and resets the counters. Extracts the tasks that handlers here kept. Waits until
 * every peer thread has ended and every handler is released, and up to two seconds for structs that
 * a thread of the code under test is about to release. Returns 0, or EBADMSG with the first fault
 * if anything is still alive or a mistake was counted. Stops waiting after 60 seconds, or after the
 * seconds in the environment variable FLETCHING_HOSTILE_SECONDS, and reports the threads and
 * handlers that remain. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileFinish(struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_HOSTILE_H */

/* The hostile peer: structs, streams, async producers and consumers that misbehave on demand, and
 * an account of what the code under test made of it.
 *
 * Errors: a function that takes a message returns 0 or an errno value, and then `message`, when it
 * is not NULL, holds one line that says why: EINVAL for an unknown case or a NULL argument, ENOMEM,
 * EAGAIN when no thread can be started, EBADMSG where the code under test did something wrong.
 *
 * Threads: any function from any thread, and exported structs from any thread. The account is one
 * for the process, so cases are played one after the other, each ended by Finish.
 *
 * Ownership: returned strings live as long as the library.
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

/* What plays the case: which function below takes its name. */
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

/* What the code under test does with it. In every case: no crash, no hang, and Finish returns 0. */
enum {
  /* Odd, but within the rules, or harmless: it works, and everything that was promised arrives. */
  kFletchingHostileAccepted = 1,
  /* A broken rule: an error of the code under test's own, as soon as it looks at what is broken.
   * Code that only carries the struct along may never look. */
  kFletchingHostileRefused = 2,
  /* The peer reports an error: it arrives with the errno of CaseCode. */
  kFletchingHostileReported = 3,
  /* A harmless violation of a rule, or a rare feature that not every library supports: accepted
     (with a warning, where there are warnings) or refused. */
  kFletchingHostileTolerated = 4,
  /* Nothing more is sent until the code under test cancels. */
  kFletchingHostileStalled = 5
};

/* Every index from 0 to the count; past it NULL and 0. */
FLETCHING_HOSTILE_EXPORT int32_t FletchingHostileCaseCount(void);
FLETCHING_HOSTILE_EXPORT const char* FletchingHostileCaseName(int32_t index);
FLETCHING_HOSTILE_EXPORT const char* FletchingHostileCaseDescription(int32_t index);
FLETCHING_HOSTILE_EXPORT int32_t FletchingHostileCaseParty(int32_t index);
FLETCHING_HOSTILE_EXPORT int32_t FletchingHostileCaseOutcome(int32_t index);
/* The errno that arrives when the outcome is "reported"; else 0. */
FLETCHING_HOSTILE_EXPORT int32_t FletchingHostileCaseCode(int32_t index);

/* --- The peer as producer ---
 * What is good in a case is always the same: the type is int32, an array or tensor has 1, 2, 3, a
 * stream returns three of them, on the CPU. `out` is overwritten and then the caller's. */

FLETCHING_HOSTILE_EXPORT int FletchingHostileExportSchema(const char* name, struct ArrowSchema* out,
                                                          struct FletchingMessage* message);
/* The schema is a good one: "i", or "+s" with two "i" for cases about children. */
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
/* A DLPack tensor of version 1.3, and the struct from before 1.0, for the caller to delete. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileExportTensor(const char* name,
                                                          DLManagedTensorVersioned** out,
                                                          struct FletchingMessage* message);
FLETCHING_HOSTILE_EXPORT int FletchingHostileExportLegacyTensor(const char* name,
                                                                DLManagedTensor** out,
                                                                struct FletchingMessage* message);
/* Plays the case on the handler, from threads of its own; returns at once. The handler stays valid
 * until its release has been called, which happens in every case. On an error it is not touched. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileStartProducer(
    const char* name, struct ArrowAsyncDeviceStreamHandler* handler,
    struct FletchingMessage* message);

/* --- The peer as consumer ---
 * The structs are moved in, on an error too. */

/* The array has at least one child, or none. EBADMSG when what it finds is not what a producer
 * owes. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileConsumeArray(const char* name,
                                                          struct ArrowDeviceArray* array,
                                                          struct FletchingMessage* message);
/* The stream returns `batches` arrays and then the end. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileConsumeStream(const char* name, int64_t batches,
                                                           struct ArrowArrayStream* stream,
                                                           struct FletchingMessage* message);
FLETCHING_HOSTILE_EXPORT int FletchingHostileConsumeDeviceStream(
    const char* name, int64_t batches, struct ArrowDeviceArrayStream* stream,
    struct FletchingMessage* message);
/* A handler for the producer under test, to which it belongs from now on. A caller that passes it
 * to no producer calls its release. The producer has a schema and `batches` batches and then the
 * end: any number above 2. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileOpenHandler(const char* name, int64_t batches,
                                                         struct ArrowAsyncDeviceStreamHandler** out,
                                                         struct FletchingMessage* message);

/* --- The account --- */

/* What is alive, and what was counted since the last Finish. */
struct FletchingHostileCounters {
  int64_t live_structs;  /* schemas, arrays, streams, tensors that were exported and not released,
                            children counted one by one */
  int64_t live_tasks;    /* delivered by a producer here and not extracted */
  int64_t live_handlers; /* passed to StartProducer, or opened here, and not released */
  int64_t exported;
  int64_t released;
  int64_t tasks_delivered;
  int64_t tasks_extracted;
  int64_t mistakes; /* of the code under test: released twice, extracted twice, called after
                       release, ... */
};

FLETCHING_HOSTILE_EXPORT void FletchingHostileReadCounters(
    struct FletchingHostileCounters* counters);

/* Ends the case: extracts the tasks kept by handlers here, and waits until every thread of the peer
 * has ended and every handler is released, and at most two seconds for structs that a thread of the
 * code under test is about to release. Returns EBADMSG, with the first fault, if anything is still
 * alive or any mistake was counted; else 0. Resets the counters. Stops waiting after 60 seconds, or
 * after the number of seconds in the environment variable FLETCHING_HOSTILE_SECONDS, and reports
 * the threads and handlers that remain. */
FLETCHING_HOSTILE_EXPORT int FletchingHostileFinish(struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_HOSTILE_H */

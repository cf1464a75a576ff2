/* Whether a consumer waits: exports behind a gate, and a queue that reads as a consumer does.
 *
 * A device fills an array later than the array is handed over; its sync_event says when. Behind a
 * gate "later" is when the test says so. The consumer under test gets an array whose gate is shut:
 *
 *   1. Its own query says that the event has not happened.
 *   2. FletchingProducerQueueRead on a queue that has not waited sees the old data: this is the
 *      negative control, without which the rest proves nothing.
 *   3. It waits on a queue: passes FletchingProducerQueueHandle to its own wait. That returns. A
 *      read on this queue is not done.
 *   4. The gate is opened. That read sees the new data, a wait of the host returns, and the query
 *      says that the event has happened.
 *
 * The new data are the bytes of the catalogue; the old data are the same with every bit the other
 * way round. A kernel on the device makes the one from the other.
 *
 * vulkan is special: a VkEvent orders commands of one VkQueue only, so everything is submitted to
 * one, and a VkQueue begins nothing that was submitted behind a wait that is not over. No read of
 * the device could be ahead of a shut gate. Therefore
 *   - the read of step 2 is one by the host, of memory that the device has mapped for it: what a
 *     program does that reads back without waiting for its fence;
 *   - a queue has waited when vkCmdWaitEvents was recorded into its command buffer, with an event
 * of the producer and the stages that fit it. The producer sees that when the function is from
 *     vulkan_handles.h. A consumer that uses the command buffer and records nothing sees the old
 *     data;
 *   - what is enqueued later waits for the gate as well, gated or not, as soon as there is work
 *     behind it: two gates have to be opened in the order of the exports behind them.
 *
 * Errors, threads and strings are as in producer.h. EINVAL: an unknown backend or case, a NULL
 * argument. ENODEV: the device is absent, with the reason. ENOTSUP: the backend has no queues; that
 * is cpu alone. EIO: a call of the vendor's library failed; the text has its name and its error.
 */
#ifndef FLETCHING_PRODUCER_GATE_H
#define FLETCHING_PRODUCER_GATE_H

#include "producer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- What is there --- */

#define FLETCHING_PRODUCER_REAL 0
#define FLETCHING_PRODUCER_STAND_IN 1 /* a library of the tests that is named as the vendor's */
#define FLETCHING_PRODUCER_ABSENT 2

/* `description`: the device's name and version, or why it is absent. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerBackendPresence(
    const char* backend, int32_t* presence, struct FletchingMessage* description);

/* --- The gate --- */

struct FletchingProducerGate;

/* A shut gate, on a queue of its own. Owned by the caller until FletchingProducerGateDestroy. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerGateCreate(const char* backend,
                                                          struct FletchingProducerGate** gate,
                                                          struct FletchingMessage* message);
/* Lets the work behind it run. Opening it again does nothing. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerGateOpen(struct FletchingProducerGate* gate,
                                                        struct FletchingMessage* message);
/* Opens it, waits for the work behind it, and frees it whatever is returned. Arrays that were
 * exported behind it may live on. The memory of those that were released before is freed here.
 * NULL does nothing. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerGateDestroy(struct FletchingProducerGate* gate,
                                                           struct FletchingMessage* message);

/* --- Exports behind it: as in producer.h, and the data is written when the gate is open --- */

FLETCHING_PRODUCER_EXPORT int FletchingProducerExportArrayBehind(struct FletchingProducerGate* gate,
                                                                 const char* case_name,
                                                                 struct ArrowSchema* schema,
                                                                 struct ArrowDeviceArray* array,
                                                                 struct FletchingMessage* message);
FLETCHING_PRODUCER_EXPORT int FletchingProducerExportStreamBehind(
    struct FletchingProducerGate* gate, const char* case_name, int64_t batches, int64_t fail_at,
    struct ArrowDeviceArrayStream* stream, struct FletchingMessage* message);

/* --- Async, behind a gate or not --- */

/* Sends the stream of FletchingProducerExportStream to an async handler: the schema, then `batches`
 * batches as they are asked for, each made then, then the end at once; or, when batch number
 * `fail_at` is asked for, on_error with EIO and the same text. `gate`: NULL, or one of `backend`.
 *
 * Returns before the handler is called. It is called on one thread for all such streams, so that it
 * must not wait for another of them. The stream counts as one in the counters until the handler was
 * released. On an error the handler is untouched. EINVAL also for a handler with a callback that is
 * NULL and for a gate of another backend. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerRunAsync(
    const char* backend, struct FletchingProducerGate* gate, const char* case_name, int64_t batches,
    int64_t fail_at, struct ArrowAsyncDeviceStreamHandler* handler,
    struct FletchingMessage* message);
/* Blocks until every handler that was passed to FletchingProducerRunAsync is released, and nothing
 * of the streams is left here. Not to be called from a handler. */
FLETCHING_PRODUCER_EXPORT void FletchingProducerAwaitAsync(void);

/* --- A consumer's queue --- */

struct FletchingProducerQueue;

/* A queue that is independent of any gate. Owned by the caller until FletchingProducerQueueDestroy.
 */
FLETCHING_PRODUCER_EXPORT int FletchingProducerQueueCreate(const char* backend,
                                                           struct FletchingProducerQueue** queue,
                                                           struct FletchingMessage* message);
/* What the consumer's wait needs:
 *   cuda, cuda_host, cuda_managed   the CUstream, not a default stream, non-blocking
 *   rocm, rocm_host                 the hipStream_t, likewise
 *   opencl                          the cl_command_queue, of the same cl_context
 *   vulkan                          the VkCommandBuffer that the next read is recorded into; what
 *                                   else a wait needs is in vulkan_handles.h
 *   ext_dev                         the queue of ext_dev.h
 * Valid until the next call with this queue. NULL when `queue` is NULL, and after a failure, which
 * FletchingProducerQueueRead returns until there is a handle. */
FLETCHING_PRODUCER_EXPORT void* FletchingProducerQueueHandle(struct FletchingProducerQueue* queue);
/* Enqueues a copy of every buffer of the case, and returns at once. The array has to live until
 * FletchingProducerQueueVerify. EBADMSG when a buffer is not the memory that was exported; on
 * vulkan also for a wait with a wrong event or wrong stages. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerQueueRead(struct FletchingProducerQueue* queue,
                                                         const char* case_name,
                                                         const struct ArrowDeviceArray* array,
                                                         struct FletchingMessage* message);
/* Whether everything on the queue is done. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerQueueIsIdle(struct FletchingProducerQueue* queue,
                                                           int32_t* idle,
                                                           struct FletchingMessage* message);

#define FLETCHING_PRODUCER_OLD 0
#define FLETCHING_PRODUCER_NEW 1

/* Waits for the reads, compares what they saw, byte by byte, and forgets them. `asserted`, when it
 * is not NULL, gets the number of bytes compared: 0 proves nothing. EBADMSG: another byte than
 * `expected`. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerQueueVerify(struct FletchingProducerQueue* queue,
                                                           int32_t expected, int64_t* asserted,
                                                           struct FletchingMessage* message);
/* Waits for what is on it. NULL does nothing. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerQueueDestroy(struct FletchingProducerQueue* queue,
                                                            struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_PRODUCER_GATE_H */

/* Tests whether a consumer waits: exports behind a gate, and a queue that reads like a consumer.
 *
 * A device fills an array after the array is handed over; sync_event tells when. With a gate, the
 * test decides when. The consumer under test receives an array whose gate is shut:
 *
 *   1. The consumer's query reports a pending event.
 *   2. FletchingProducerQueueRead on a queue that has not waited reads the old data. This is the
 *      negative control, without which the other steps prove nothing.
 *   3. The consumer waits on a queue: it passes FletchingProducerQueueHandle to its own wait,
 *      which returns. A read on this queue stays pending.
 *   4. The gate is opened. That read gets the new data, a wait on the host returns, and the query
 *   reports that the event has completed.
 *
 * The new data are the bytes of the catalogue; the old data are the same with every bit inverted. A
 * kernel on the device inverts them.
 *
 * Vulkan differs: a VkEvent orders commands of one VkQueue only, so all work is submitted to the
 * same VkQueue, and a VkQueue starts no work submitted behind a pending wait. No device read could
 * run ahead of a shut gate. Therefore
 *   - the host does the read of step 2, from memory mapped for it, like a program that reads back
 *     without waiting for its fence;
 *   - a queue has waited if vkCmdWaitEvents was recorded into its command buffer with an event of
 *     the producer and matching stages. The producer detects this if the function is from
 *     vulkan_handles.h. A consumer that uses the command buffer and records no wait reads the old
 *     data;
 *   - later work waits for the gate too, gated or not, once there is work behind the gate. Two
 *     gates must be opened in the order of the exports behind them.
 *
 * Errors, threads and strings are as in producer.h. EINVAL: unknown backend or case, or a NULL
 * argument. ENODEV: the device is absent; the message has the reason. ENOTSUP: the backend has no
 * queues (only cpu). EIO: a vendor call failed; the message has its name and error.
 */
#ifndef FLETCHING_PRODUCER_GATE_H
#define FLETCHING_PRODUCER_GATE_H

#include "producer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Presence --- */

#define FLETCHING_PRODUCER_REAL 0
#define FLETCHING_PRODUCER_STAND_IN 1 /* a test library with the vendor's name */
#define FLETCHING_PRODUCER_ABSENT 2

/* `description`: the device's name and version, or the reason for its absence. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerBackendPresence(
    const char* backend, int32_t* presence, struct FletchingMessage* description);

/* --- The gate --- */

struct FletchingProducerGate;

/* Creates a shut gate on a separate queue. Release it with FletchingProducerGateDestroy. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerGateCreate(const char* backend,
                                                          struct FletchingProducerGate** gate,
                                                          struct FletchingMessage* message);
/* Runs the work behind the gate. Opening it again has no effect. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerGateOpen(struct FletchingProducerGate* gate,
                                                        struct FletchingMessage* message);
/* Watches the buffers of later exports behind the shut gate. Their content is there from the start,
 * and every read of the process or of the device that comes before the gate opens is a read that
 * did not wait. Returns ENOTSUP on vulkan, ext_dev and GPUs, whose reads cannot be seen, on systems
 * other than Linux, and without pages of 4096 bytes or /proc/self/pagemap. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerGateWatch(struct FletchingProducerGate* gate,
                                                         struct FletchingMessage* message);
/* The number of watched buffers that were first accessed before and after the gate was opened.
 * Waits until the events behind the gate have completed, so open it first. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerGateAccesses(struct FletchingProducerGate* gate,
                                                            int32_t* before, int32_t* after,
                                                            struct FletchingMessage* message);
/* Opens the gate, waits for the work behind it, and frees the gate even on an error. Arrays
 * exported behind it may live on. The memory of arrays released earlier is freed here. NULL is
 * allowed. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerGateDestroy(struct FletchingProducerGate* gate,
                                                           struct FletchingMessage* message);

/* --- Exports behind a gate: as in producer.h, but the data is written after the gate opens --- */

FLETCHING_PRODUCER_EXPORT int FletchingProducerExportArrayBehind(struct FletchingProducerGate* gate,
                                                                 const char* case_name,
                                                                 struct ArrowSchema* schema,
                                                                 struct ArrowDeviceArray* array,
                                                                 struct FletchingMessage* message);
FLETCHING_PRODUCER_EXPORT int FletchingProducerExportStreamBehind(
    struct FletchingProducerGate* gate, const char* case_name, int64_t batches, int64_t fail_at,
    struct ArrowDeviceArrayStream* stream, struct FletchingMessage* message);

/* --- Async streams, with or without a gate --- */

/* Sends the stream of FletchingProducerExportStream to an async handler: the schema, then
 * `batches` batches, each made when it is requested, then the end without further demand. When
 * batch `fail_at` is requested, on_error is called instead, with EIO and the same text. `gate`:
 * NULL, or a gate of `backend`.
 *
 * Returns before the handler is called. All such streams share one thread for the calls, so a
 * handler must not wait for another stream. The stream counts as one in the counters until the
 * handler is released. On an error the handler is untouched. Returns EINVAL also if the handler
 * has a NULL callback or the gate belongs to another backend. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerRunAsync(
    const char* backend, struct FletchingProducerGate* gate, const char* case_name, int64_t batches,
    int64_t fail_at, struct ArrowAsyncDeviceStreamHandler* handler,
    struct FletchingMessage* message);
/* Blocks until every handler passed to FletchingProducerRunAsync is released and all state of
 * the streams is freed. Must not be called from a handler. */
FLETCHING_PRODUCER_EXPORT void FletchingProducerAwaitAsync(void);

/* --- Queues of a consumer --- */

struct FletchingProducerQueue;

/* Creates a queue independent of any gate. Release it with FletchingProducerQueueDestroy. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerQueueCreate(const char* backend,
                                                           struct FletchingProducerQueue** queue,
                                                           struct FletchingMessage* message);
/* The handle that the consumer's wait needs:
 *   cuda, cuda_host, cuda_managed   the CUstream, not a default stream, non-blocking
 *   rocm, rocm_host                 the hipStream_t, likewise
 *   opencl                          the cl_command_queue, of the same cl_context
 *   vulkan                          the VkCommandBuffer of the next read; vulkan_handles.h has the
 *                                   other handles that a wait needs
 *   ext_dev                         the queue of ext_dev.h
 * Valid until the next call with this queue. NULL if `queue` is NULL or on a failure;
 * FletchingProducerQueueRead returns that failure until there is a handle. */
FLETCHING_PRODUCER_EXPORT void* FletchingProducerQueueHandle(struct FletchingProducerQueue* queue);
/* Enqueues a copy of every buffer of the case and returns without waiting. The array must live
 * until FletchingProducerQueueVerify. Returns EBADMSG if a buffer is not the exported memory; on
 * vulkan also for a wait with a wrong event or wrong stages. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerQueueRead(struct FletchingProducerQueue* queue,
                                                         const char* case_name,
                                                         const struct ArrowDeviceArray* array,
                                                         struct FletchingMessage* message);
/* Whether all work on the queue is done. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerQueueIsIdle(struct FletchingProducerQueue* queue,
                                                           int32_t* idle,
                                                           struct FletchingMessage* message);

#define FLETCHING_PRODUCER_OLD 0
#define FLETCHING_PRODUCER_NEW 1

/* Waits for the reads, compares the bytes, and discards the reads. If `asserted` is not NULL, it
 * receives the number of bytes compared; with 0 bytes the test is invalid. Returns EBADMSG if a
 * byte differs from `expected`. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerQueueVerify(struct FletchingProducerQueue* queue,
                                                           int32_t expected, int64_t* asserted,
                                                           struct FletchingMessage* message);
/* Waits for the work and frees the queue. NULL is allowed. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerQueueDestroy(struct FletchingProducerQueue* queue,
                                                            struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_PRODUCER_GATE_H */

/* The reference producer: a catalogue of device arrays and streams that it exports, verifies and
 * counts.
 *
 * Errors: every function with a message returns 0 or an errno value: EINVAL for a bad argument,
 * EBADMSG for a difference found by a Verify function, or ENOMEM. On an error `message`, if not
 * NULL, holds one line that names the argument or the first difference; on success it is empty. No
 * function throws.
 *
 * Threads: every function may be called from any thread. Exported structs may be released on any
 * thread; a stream must be used by one thread at a time.
 *
 * Ownership: returned strings are valid until the library is unloaded.
 */
#ifndef FLETCHING_PRODUCER_H
#define FLETCHING_PRODUCER_H

#include <stdint.h>

#include "fletching/abi.h"
#include "fletching/message.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define FLETCHING_PRODUCER_EXPORT __declspec(dllexport)
#else
#define FLETCHING_PRODUCER_EXPORT __attribute__((visibility("default")))
#endif

/* Counts of live objects, and of events since the last reset.
 *
 * The struct counts include every struct with a release callback that this library filled: a
 * schema or an array and each child and dictionary below it; a stream; each schema and batch
 * that a stream returned. At any moment, after any moves, `exported` is `released` +
 * `live_schemas` + `live_arrays` + `live_streams`. At rest every live count is 0 and `released`
 * equals `exported`.
 *
 * live_allocations: buffers that a backend has allocated and not freed.
 *
 * released: first releases. Releasing a parent releases the children and the dictionary that are
 * still in it; a child that was moved out counts when its new owner releases it.
 *
 * double_released: release callbacks called for a struct that was already released, or whose
 * private_data is not the exported value. This does not crash: private_data is a number that is
 * never reused, and no other field of such a struct is read.
 *
 * A reset sets `exported` to the number of live structs, and both release counts to 0. */
struct FletchingProducerCounters {
  int64_t live_allocations;
  int64_t live_schemas;
  int64_t live_arrays;
  int64_t live_streams;
  int64_t exported;
  int64_t released;
  int64_t double_released;
};

/* --- The catalogue --- */

FLETCHING_PRODUCER_EXPORT int32_t FletchingProducerBackendCount(void);
FLETCHING_PRODUCER_EXPORT const char* FletchingProducerBackendName(int32_t index);
FLETCHING_PRODUCER_EXPORT int32_t FletchingProducerCaseCount(void);
/* "int32", "utf8", "record_batch", ... NULL past the end. */
FLETCHING_PRODUCER_EXPORT const char* FletchingProducerCaseName(int32_t index);

/* --- Export ---
 * The caller owns `schema`, `array` and `stream`. They are overwritten: filled, or zeroed
 * (released) on an error. An empty name is exported as NULL. */

FLETCHING_PRODUCER_EXPORT int FletchingProducerExportArray(const char* backend,
                                                           const char* case_name,
                                                           struct ArrowSchema* schema,
                                                           struct ArrowDeviceArray* array,
                                                           struct FletchingMessage* message);
/* Exports a stream of `batches` identical batches. After the last one, every get_next returns the
 * end of the stream. From batch `fail_at` (0 to `batches`) on, every get_next fails with EIO and an
 * error message; -1 disables this. get_schema may be called at any time and repeatedly. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerExportStream(const char* backend,
                                                            const char* case_name, int64_t batches,
                                                            int64_t fail_at,
                                                            struct ArrowDeviceArrayStream* stream,
                                                            struct FletchingMessage* message);

/* --- Verify returned structs --- */

/* Compares the array with the catalogue, and checks reserved, device type, device id and event.
 * Each buffer must be the exported memory, not a copy: no step of a round trip may copy. Does
 * not release the structs. The names NULL and "" are equal. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerVerifyArray(const char* backend,
                                                           const char* case_name,
                                                           const struct ArrowSchema* schema,
                                                           const struct ArrowDeviceArray* array,
                                                           struct FletchingMessage* message);
/* Reads the schema, every batch, and the end or the failure (EIO and the exported stream's
 * message), releases the stream, then compares and releases everything it read. The function takes
 * ownership of the stream and releases it even on an error. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerVerifyStream(const char* backend,
                                                            const char* case_name, int64_t batches,
                                                            int64_t fail_at,
                                                            struct ArrowDeviceArrayStream* stream,
                                                            struct FletchingMessage* message);

/* --- Accounting --- */

FLETCHING_PRODUCER_EXPORT void FletchingProducerReadCounters(
    struct FletchingProducerCounters* counters);
FLETCHING_PRODUCER_EXPORT void FletchingProducerResetCounters(void);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_PRODUCER_H */

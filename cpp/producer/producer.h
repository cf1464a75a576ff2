/* The reference producer: a catalogue of device arrays and streams, exported, verified and counted.
 *
 * Errors: every function with a message returns 0 or an errno value: EINVAL for a bad
 * argument of the call, EBADMSG for a difference that a Verify function found, ENOMEM. Then
 * `message`, when it is not NULL, holds one line that names the argument or the first difference;
 * on success it is empty. Nothing throws.
 *
 * Threads: any function from any thread. Exported structs may be released from any thread; one
 * stream is used by one thread at a time.
 *
 * Ownership: returned strings live as long as the library.
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

/* What is alive, and what happened since the last reset.
 *
 * Counted is each struct with a release callback that was filled here: a schema or an array and,
 * one by one, every child and dictionary below it; a stream; each schema and batch that a stream
 * gave. At any moment, after any moves, `exported` is `released` + `live_schemas` +
 * `live_arrays` + `live_streams`. At rest every live count is 0 and `released` equals `exported`.
 *
 * live_allocations: buffers that a backend allocated and has not freed.
 *
 * released: first releases. The release of a parent releases the children and the dictionary that
 * are still in it; one that was moved out counts when its new owner releases it.
 *
 * double_released: release callbacks for a struct that was released before, or whose private_data
 * is not what was exported. No crash: private_data is a number that is never used again, and
 * nothing else of such a struct is read.
 *
 * A reset sets `exported` to what is alive, and `released` and `double_released` to 0. */
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
 * The caller owns `schema`, `array`, `stream`. They are overwritten: filled, or zeroed (released)
 * on an error. An empty name is exported as NULL. */

FLETCHING_PRODUCER_EXPORT int FletchingProducerExportArray(const char* backend,
                                                           const char* case_name,
                                                           struct ArrowSchema* schema,
                                                           struct ArrowDeviceArray* array,
                                                           struct FletchingMessage* message);
/* `batches` times the same batch, then the end as often as it is asked for. Before batch number
 * `fail_at` (from 0 to `batches`) get_next fails with EIO and a text, and so does every later
 * get_next; `fail_at` of -1: never. get_schema may be called at any time and repeatedly. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerExportStream(const char* backend,
                                                            const char* case_name, int64_t batches,
                                                            int64_t fail_at,
                                                            struct ArrowDeviceArrayStream* stream,
                                                            struct FletchingMessage* message);

/* --- Verify returned structs --- */

/* Compares with the catalogue, and checks reserved, device type, device id and event. A buffer has
 * to be the memory that was exported, not a copy: nothing on the way is meant to copy. Releases
 * nothing. The names NULL and "" are the same. */
FLETCHING_PRODUCER_EXPORT int FletchingProducerVerifyArray(const char* backend,
                                                           const char* case_name,
                                                           const struct ArrowSchema* schema,
                                                           const struct ArrowDeviceArray* array,
                                                           struct FletchingMessage* message);
/* Pulls the schema, every batch, and the end or the failure (errno EIO and the text that the
 * exported stream gave); releases the stream, then compares and releases what it pulled. The stream
 * is moved in: it is released whatever this function returns. */
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

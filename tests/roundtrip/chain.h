/* The two ends of a chain, for a host in any language (README.md, "Devices"): libfletching_chain.
 *
 * The host takes what FletchingChainBegin exports behind a shut gate, sends it through every
 * language's FletchingTransitArray and through its own hands, and gives what has come through to
 * FletchingChainEnd, which asks all that is asked of an array behind a gate.
 *
 * One chain at a time; any thread. Both return 0 or an errno value with one line in `message`.
 */
#ifndef FLETCHING_TESTS_CHAIN_H
#define FLETCHING_TESTS_CHAIN_H

#include <stdint.h>

#include "fletching/abi.h"
#include "fletching/message.h"

#ifdef __cplusplus
extern "C" {
#endif

struct FletchingChain;

/* Resets the producer's counters and exports the case. The caller owns `schema` and `array`, and
 * *chain until FletchingChainEnd. After an error *chain is NULL and the structs are released. */
int FletchingChainBegin(const char* backend, const char* case_name, struct FletchingChain** chain,
                        struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                        struct FletchingMessage* message);

/* sync_event is the pointer that was exported; with the gate shut a queue that waits is held back
 * and another one reads the old data; with the gate open the new data are there; the structs are
 * what was exported, each buffer the same memory; released once, nothing is left.
 *
 * `schema` and `array` are moved in, and the chain is destroyed, whatever is returned. `asserted`
 * gets the number of comparisons. EBADMSG: one of them failed. */
int FletchingChainEnd(struct FletchingChain* chain, struct ArrowSchema* schema,
                      struct ArrowDeviceArray* array, int64_t* asserted,
                      struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_TESTS_CHAIN_H */

/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases without a library: the calls and allocations that every implementation needs. */
#ifndef FLETCHING_GO_BENCH_FLOOR_H
#define FLETCHING_GO_BENCH_FLOOR_H

#include <stdint.h>

#include "fletching/abi.h"

/* Calls the release callback of the array. */
void floor_release(struct ArrowArray* array);

/* An array of a pinned buffer, in one allocation. Its release calls floor_go_unpin. Returns NULL if
 * out of memory. */
struct ArrowArray* floor_new(int64_t length, uintptr_t values, uintptr_t owner);

/* Convert the array to a tensor, and the tensor to an array. */
uintptr_t floor_to_dlpack(struct ArrowDeviceArray* array);
void floor_from_dlpack(uintptr_t tensor, struct ArrowSchema* schema,
                       struct ArrowDeviceArray* array);
void floor_release_schema(struct ArrowSchema* schema);

#endif /* FLETCHING_GO_BENCH_FLOOR_H */

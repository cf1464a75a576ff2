/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLETCHING_GO_BENCH_NATIVE_H
#define FLETCHING_GO_BENCH_NATIVE_H

#include "peer.h"

/* An array of kRows 64-bit integers, which owns no memory. */
void bench_leaf(struct ArrowDeviceArray* out);

#endif /* FLETCHING_GO_BENCH_NATIVE_H */

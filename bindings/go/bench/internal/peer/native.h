/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLETCHING_GO_BENCH_NATIVE_H
#define FLETCHING_GO_BENCH_NATIVE_H

#include "peer.h"

/* An array of kRows integers of 64 bits, which owns nothing. */
void bench_leaf(struct ArrowDeviceArray* out);

#endif /* FLETCHING_GO_BENCH_NATIVE_H */

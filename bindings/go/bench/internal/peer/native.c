/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.c" /* cpp/bench/c: the peer in the benchmarks of every language */

#include "native.h"

static const void* leaf_buffers[2];

static void __attribute__((constructor)) set_up(void) {
  for (int i = 0; i < kColumns; ++i) addresses[i] = &numbers[i];
  leaf_buffers[1] = numbers;
}

void bench_leaf(struct ArrowDeviceArray* out) {
  peer_produce(out);
  out->array.length = kRows;
  out->array.n_buffers = 2;
  out->array.buffers = leaf_buffers;
  out->device_id = -1;
  out->device_type = ARROW_DEVICE_CPU;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.c" /* cpp/bench/c: the peer of the benchmarks in all languages */
#include "tensor.h"

static const void* leaf_buffers[2];

static void __attribute__((constructor)) set_up(void) {
  for (int i = 0; i < kColumns; ++i) addresses[i] = &numbers[i];
  leaf_buffers[1] = numbers;
}

/* Fills an int64 array of the given length that owns nothing. No value is read. */
void bench_leaf(struct ArrowDeviceArray* out, int64_t length) {
  peer_produce(out);
  out->array.length = length;
  out->array.n_buffers = 2;
  out->array.buffers = leaf_buffers;
  out->device_id = -1;
  out->device_type = ARROW_DEVICE_CPU;
}

/* Converts the array to DLPack and back without a library. */
void bench_tensor(struct ArrowDeviceArray* array) {
  struct ArrowSchema schema;
  struct ArrowDeviceArray back;
  hand_from_dlpack(hand_to_dlpack(array), &schema, &back);
  schema.release(&schema);
  back.array.release(&back.array);
}

void bench_call(void (*function)(void*), void* argument) { function(argument); }

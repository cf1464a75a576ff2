// SPDX-License-Identifier: Apache-2.0
//
// The cases of raw.c, written as a nanoarrow user would. nanoarrow does more: an array has a type,
// its buffers can grow, and each child owns its own buffers.
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "nanoarrow/nanoarrow.h"
#include "nanoarrow/nanoarrow_device.h"
#include "peer.h"

static void check(ArrowErrorCode code) {
  if (code != NANOARROW_OK) abort();
}

// The data of a batch, shared by its columns.
struct Block {
  atomic_llong shares;
  const void* const* data;
};

// NOLINTNEXTLINE(readability-non-const-parameter): nanoarrow's type
static void give_back(struct ArrowBufferAllocator* allocator, uint8_t* address, int64_t size) {
  (void)address;
  (void)size;
  struct Block* block = allocator->private_data;
  if (atomic_fetch_sub_explicit(&block->shares, 1, memory_order_acq_rel) != 1) return;
  peer_drop(block->data);
  free(block);
}

static struct Block* make_block(int64_t shares) {
  struct Block* block = malloc(sizeof *block);
  if (block == NULL) abort();
  atomic_init(&block->shares, shares);
  block->data = peer_data();
  return block;
}

static void set_column(struct ArrowArray* array, struct Block* block, int64_t column) {
  struct ArrowBuffer* values = ArrowArrayBuffer(array, 1);
  values->allocator = ArrowBufferDeallocator(&give_back, block);
  values->data = (uint8_t*)block->data[column];
  values->size_bytes = kRows * (int64_t)sizeof(int64_t);
  values->capacity_bytes = values->size_bytes;
  array->length = kRows;
  check(ArrowArrayFinishBuilding(array, NANOARROW_VALIDATION_LEVEL_NONE, NULL));
}

static void produce(struct ArrowArray* array, struct ArrowDeviceArray* out) {
  check(ArrowDeviceArrayInit(ArrowDeviceCpu(), out, array, NULL));
}

static void move_release(void) {
  struct ArrowDeviceArray source;
  peer_produce(&source);
  struct ArrowDeviceArray array;
  ArrowDeviceArrayMove(&source, &array);
  ArrowArrayRelease(&array.array);
}

static void make_leaf(struct ArrowArray* array) {
  check(ArrowArrayInitFromType(array, NANOARROW_TYPE_INT64));
  set_column(array, make_block(1), 0);
}

static void hold_leaf(void) {
  struct ArrowArray array;
  make_leaf(&array);
  produce(&array, peer_keep());
}

static void leaf(void) {
  struct ArrowArray array;
  make_leaf(&array);
  struct ArrowDeviceArray source;
  produce(&array, &source);
  struct ArrowDeviceArray moved;
  ArrowDeviceArrayMove(&source, &moved);
  ArrowArrayRelease(&moved.array);
}

static void produce_batch(struct ArrowDeviceArray* out) {
  struct ArrowArray batch;
  check(ArrowArrayInitFromType(&batch, NANOARROW_TYPE_STRUCT));
  check(ArrowArrayAllocateChildren(&batch, peer_size));
  struct Block* block = make_block(peer_size);
  for (int64_t i = 0; i < peer_size; ++i) {
    check(ArrowArrayInitFromType(batch.children[i], NANOARROW_TYPE_INT64));
    set_column(batch.children[i], block, i);
  }
  batch.length = kRows;
  produce(&batch, out);
}

static void hold_batch(void) { produce_batch(peer_keep()); }

static void handoff(void) {
  struct ArrowDeviceArray source;
  produce_batch(&source);
  peer_consume(&source);
}

// nanoarrow's stream has all batches before it starts.
static void stream(void) {
  struct ArrowSchema schema;
  check(ArrowSchemaInitFromType(&schema, NANOARROW_TYPE_INT64));
  struct ArrowArrayStream batches;
  check(ArrowBasicArrayStreamInit(&batches, &schema, peer_size));
  for (int i = 0; i < peer_size; ++i) {
    struct ArrowArray array;
    make_leaf(&array);
    ArrowBasicArrayStreamSetArray(&batches, i, &array);
  }
  struct ArrowDeviceArrayStream made;
  check(ArrowDeviceBasicArrayStreamInit(&made, &batches, ArrowDeviceCpu()));
  peer_read(&made);
}

int main(int argc, char** argv) {
  static const struct Case cases[] = {{"move_release", &move_release}, {"leaf", &leaf},
                                      {"handoff", &handoff},           {"stream", &stream},
                                      {"hold_leaf", &hold_leaf},       {"hold_batch", &hold_batch}};
  return peer_main(argc, argv, cases, sizeof cases / sizeof *cases);
}

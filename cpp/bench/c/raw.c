// SPDX-License-Identifier: Apache-2.0
//
// The cases in hand-written C that implements the interface completely, without a library.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fletching/abi.h"
#include "peer.h"
#include "tensor.h"

// --- Move and release ---

static void move_release(void) {
  struct ArrowDeviceArray source;
  peer_produce(&source);

  struct ArrowDeviceArray array = source;
  source.array.release = NULL;
  array.array.release(&array.array);
}

// --- One leaf ---

struct Leaf {
  const void* const* data;
  const void* buffers[2];
};

static void release_leaf(struct ArrowArray* self) {
  struct Leaf* leaf = self->private_data;
  peer_drop(leaf->data);
  free(leaf);
  self->release = NULL;
}

static int produce_leaf(struct ArrowDeviceArray* out) {
  struct Leaf* leaf = malloc(sizeof *leaf);
  if (leaf == NULL) return 1;
  leaf->data = peer_data();
  leaf->buffers[0] = NULL;
  leaf->buffers[1] = leaf->data[0];
  memset(out, 0, sizeof *out);
  out->array.length = kRows;
  out->array.n_buffers = 2;
  out->array.buffers = leaf->buffers;
  out->array.release = &release_leaf;
  out->array.private_data = leaf;
  out->device_id = -1;
  out->device_type = ARROW_DEVICE_CPU;
  return 0;
}

static void leaf(void) {
  struct ArrowDeviceArray source;
  if (produce_leaf(&source) != 0) abort();
  struct ArrowDeviceArray array = source;
  source.array.release = NULL;
  array.array.release(&array.array);
}

// --- A batch of many columns in a reference-counted block, so that children can be moved out ---

struct Block {
  atomic_llong shares;
  const void* const* data;
};

struct Column {
  struct ArrowArray array;
  const void* buffers[2];
};

static void give_back(struct Block* block) {
  if (atomic_fetch_sub_explicit(&block->shares, 1, memory_order_acq_rel) != 1) return;
  peer_drop(block->data);
  free(block);
}

static void release_column(struct ArrowArray* self) {
  self->release = NULL;
  give_back(self->private_data);
}

static void release_batch(struct ArrowArray* self) {
  for (int64_t i = 0; i < self->n_children; ++i) {
    struct ArrowArray* child = self->children[i];
    if (child->release != NULL) child->release(child);
  }
  self->release = NULL;
  give_back(self->private_data);
}

static int produce_batch(struct ArrowDeviceArray* out) {
  const int64_t n = peer_size;
  const size_t size = sizeof(struct Block) + ((size_t)n * sizeof(struct Column)) +
                      ((size_t)n * sizeof(struct ArrowArray*)) + sizeof(const void*);
  struct Block* block = malloc(size);
  if (block == NULL) return 1;
  struct Column* columns = (struct Column*)(block + 1);
  struct ArrowArray** children = (struct ArrowArray**)(columns + n);
  const void** validity = (const void**)(children + n);
  atomic_init(&block->shares, n + 1);
  block->data = peer_data();
  *validity = NULL;
  for (int64_t i = 0; i < n; ++i) {
    struct Column* column = &columns[i];
    column->buffers[0] = NULL;
    column->buffers[1] = block->data[i];
    column->array = (struct ArrowArray){.length = kRows,
                                        .n_buffers = 2,
                                        .buffers = column->buffers,
                                        .release = &release_column,
                                        .private_data = block};
    children[i] = &column->array;
  }
  memset(out, 0, sizeof *out);
  out->array.length = kRows;
  out->array.n_buffers = 1;
  out->array.n_children = n;
  out->array.buffers = validity;
  out->array.children = children;
  out->array.release = &release_batch;
  out->array.private_data = block;
  out->device_id = -1;
  out->device_type = ARROW_DEVICE_CPU;
  return 0;
}

static void handoff(void) {
  struct ArrowDeviceArray source;
  if (produce_batch(&source) != 0) abort();
  peer_consume(&source);
}

static void tensor(void) {
  struct ArrowDeviceArray source;
  if (produce_leaf(&source) != 0) abort();
  struct ArrowSchema schema;
  struct ArrowDeviceArray back;
  hand_from_dlpack(hand_to_dlpack(&source), &schema, &back);
  schema.release(&schema);
  back.array.release(&back.array);
}

// --- A stream of leaves ---

struct Stream {
  int left;
};

static void release_type(struct ArrowSchema* self) { self->release = NULL; }

static int get_schema(struct ArrowDeviceArrayStream* self, struct ArrowSchema* out) {
  (void)self;
  *out = (struct ArrowSchema){
      .format = "l", .name = "", .flags = ARROW_FLAG_NULLABLE, .release = &release_type};
  return 0;
}

static int get_next(struct ArrowDeviceArrayStream* self, struct ArrowDeviceArray* out) {
  struct Stream* stream = self->private_data;
  if (stream->left-- > 0) return produce_leaf(out);
  memset(out, 0, sizeof *out);
  return 0;
}

static const char* get_last_error(struct ArrowDeviceArrayStream* self) {
  (void)self;
  return NULL;
}

static void release_stream(struct ArrowDeviceArrayStream* self) {
  free(self->private_data);
  self->release = NULL;
}

static void stream(void) {
  struct Stream* state = malloc(sizeof *state);
  if (state == NULL) abort();
  state->left = peer_size;
  struct ArrowDeviceArrayStream made = {.device_type = ARROW_DEVICE_CPU,
                                        .get_schema = &get_schema,
                                        .get_next = &get_next,
                                        .get_last_error = &get_last_error,
                                        .release = &release_stream,
                                        .private_data = state};
  peer_read(&made);
}

// --- Memory ---

static void hold_leaf(void) {
  if (produce_leaf(peer_keep()) != 0) abort();
}

static void hold_batch(void) {
  if (produce_batch(peer_keep()) != 0) abort();
}

int main(int argc, char** argv) {
  static const struct Case cases[] = {{"move_release", &move_release},
                                      {"leaf", &leaf},
                                      {"handoff", &handoff},
                                      {"tensor", &tensor},
                                      {"stream", &stream},
                                      {"hold_leaf", &hold_leaf},
                                      {"hold_batch", &hold_batch}};
  return peer_main(argc, argv, cases, sizeof cases / sizeof *cases);
}

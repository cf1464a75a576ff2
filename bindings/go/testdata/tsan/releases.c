/* SPDX-License-Identifier: Apache-2.0
 *
 * Releases structs of the same blocks and shares on two threads. thread_sanitizer_test.go builds
 * this program. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "_cgo_export.h"

enum { kRounds = 2000 };

static size_t drops[kRounds];

struct FletchingShare* FLETCHING_PREFIXED(DropValue)(uintptr_t handle) {
  ++*(size_t*)handle;
  return NULL;
}

/* Returns an array of one struct in a block that is shared with other structs. */
static struct ArrowArray in_block(struct FletchingBlock* block) {
  return (struct ArrowArray){.release = fletching_release_array, .private_data = block};
}

static struct FletchingBlock* new_block(size_t structs, uintptr_t owner, uintptr_t share) {
  struct FletchingBlock* block = fletching_block_new(sizeof *block, structs, owner, share);
  if (block == NULL) abort();
  return block;
}

static struct ArrowArray pairs[2][kRounds];
static pthread_barrier_t start;

static void* release_all(void* arrays) {
  pthread_barrier_wait(&start);
  for (int i = 0; i < kRounds; ++i) {
    struct ArrowArray* array = (struct ArrowArray*)arrays + i;
    array->release(array);
  }
  return NULL;
}

static void release_on_two_threads(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    if (pthread_create(&threads[i], NULL, release_all, pairs[i]) != 0) abort();
  }
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kRounds; ++i) {
    if (drops[i] != 1) abort();
    drops[i] = 0;
  }
}

int main(void) {
  pthread_barrier_init(&start, NULL, 2);
  for (int i = 0; i < kRounds; ++i) { /* two structs of a block */
    struct FletchingBlock* block = new_block(2, (uintptr_t)&drops[i], 0);
    pairs[0][i] = pairs[1][i] = in_block(block);
  }
  release_on_two_threads();
  for (int i = 0; i < kRounds; ++i) { /* two views of an array */
    struct ArrowArray shared = in_block(new_block(1, (uintptr_t)&drops[i], 0));
    if (fletching_share_array(&shared) != 0) abort();
    const uintptr_t share = (uintptr_t)shared.private_data;
    for (int side = 0; side < 2; ++side) pairs[side][i] = in_block(new_block(1, 0, share));
    shared.release(&shared);
  }
  release_on_two_threads();
  return 0;
}

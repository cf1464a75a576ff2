/* SPDX-License-Identifier: Apache-2.0 */
#include "block.h"

#include <errno.h>
#include <stdlib.h>

#include "_cgo_export.h"
#include "tensors.h"

struct FletchingBlock* fletching_block_new(size_t size, size_t structs, uintptr_t owner,
                                           uintptr_t share) {
  struct FletchingBlock* block = malloc(size);
  if (block == NULL) return NULL;
  block->structs = structs;
  block->owner = owner;
  block->share = (struct FletchingShare*)share;
  if (share != 0) __atomic_fetch_add(&block->share->users, 1, __ATOMIC_RELAXED);
  return block;
}

void fletching_block_free(uintptr_t block) { free((void*)block); }

/* Returns whether these were the last references. If all belong to the caller, no other thread can
 * have one, so the count need not be written. */
static int take_last(size_t* count, size_t ours) {
  return __atomic_load_n(count, __ATOMIC_ACQUIRE) == ours ||
         __atomic_fetch_sub(count, ours, __ATOMIC_ACQ_REL) == ours;
}

static void append(struct FletchingChain* chain, struct FletchingLink* first,
                   struct FletchingLink* last) {
  *chain->end = first;
  chain->end = &last->next;
  last->next = NULL;
}

/* Runs and frees the links. Links that a link adds run next, as they would with recursion. */
static void run_all(struct FletchingChain* chain) {
  while (chain->first != NULL) {
    struct FletchingLink* link = chain->first;
    struct FletchingChain added = {NULL, &added.first};
    chain->first = link->next;
    link->run(link, &added);
    free(link);
    *added.end = chain->first;
    chain->first = added.first;
  }
}

static void leave_share(struct FletchingShare* share, struct FletchingChain* chain) {
  if (share != NULL && take_last(&share->users, 1)) append(chain, &share->link, &share->link);
}

static void drop(uintptr_t handle, struct FletchingChain* chain) {
  if (handle == 0) return;
  struct FletchingShare* due = FLETCHING_PREFIXED(DropValue)(handle);
  if (due != NULL) append(chain, &due->link, &due->link);
}

void fletching_drop_owner(void* handle) {
  struct FletchingChain chain = {NULL, &chain.first};
  drop((uintptr_t)handle, &chain);
  run_all(&chain);
}

static void leave_block(struct FletchingBlock* block, size_t structs,
                        struct FletchingChain* chain) {
  if (!take_last(&block->structs, structs)) return;
  leave_share(block->share, chain);
  drop(block->owner, chain);
  free(block);
}

static const int64_t most_structs = 1 << 22; /* as in tree.go: more columns than any table has */

#define STRUCT ArrowSchema
#define FIELD schema
#include "release.h"

#define STRUCT ArrowArray
#define FIELD array
#include "release.h"

/* --- Children that need the event of their parent --- */

/* Takes a reference to the share that keeps the event of an array alive. Without a share, moves the
 * array into a new one. Returns NULL if out of memory. */
static struct FletchingShare* hold_event(struct ArrowArray* parent) {
  if (parent->release == run_hook_array) {
    const struct HookArrowArray* hook = parent->private_data;
    while (hook != NULL && hook->share == NULL)
      hook = (const struct HookArrowArray*)hook->link.next;
    if (hook != NULL) {
      __atomic_fetch_add(&hook->share->users, 1, __ATOMIC_RELAXED);
      return hook->share;
    }
  }
  struct HookArrowArray* hook = calloc(1, sizeof *hook);
  struct FletchingShare* share = hook != NULL ? new_share_array(parent, 2) : NULL;
  if (share == NULL) {
    free(hook);
    return NULL;
  }
  parent->release = release_children_array;
  set_hook_array(parent, hook);
  hook->share = share;
  return share;
}

int fletching_take_with_event(struct ArrowArray* parent, struct ArrowArray* child,
                              struct ArrowArray* out) {
  struct HookArrowArray* hook = calloc(1, sizeof *hook);
  if (hook == NULL) return ENOMEM;
  hook->share = hold_event(parent);
  if (hook->share == NULL) {
    free(hook);
    return ENOMEM;
  }
  *out = *child;
  child->release = NULL;
  set_hook_array(out, hook);
  return 0;
}

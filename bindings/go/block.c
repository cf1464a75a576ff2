/* SPDX-License-Identifier: Apache-2.0 */
#include "block.h"

#include <errno.h>
#include <stdlib.h>

#include "_cgo_export.h"

struct FletchingBlock* fletching_block_new(size_t size, size_t structs, uintptr_t owner,
                                           uintptr_t share) {
  struct FletchingBlock* block = calloc(1, size);
  if (block == NULL) return NULL;
  block->structs = structs;
  block->owner = owner;
  block->share = (struct FletchingShare*)share;
  if (share != 0) __atomic_fetch_add(&block->share->users, 1, __ATOMIC_RELAXED);
  return block;
}

void fletching_block_free(uintptr_t block) { free((void*)block); }

/* Whether these were the last. When all are ours no other thread can have one, so the count need
 * not be written. */
static int take_last(size_t* count, size_t ours) {
  return __atomic_load_n(count, __ATOMIC_ACQUIRE) == ours ||
         __atomic_fetch_sub(count, ours, __ATOMIC_ACQ_REL) == ours;
}

/* What a share holds may be all that needs another one. */
static void leave_share(struct FletchingShare* share) {
  while (share != NULL && take_last(&share->users, 1)) {
    struct FletchingShare* next = share->release(share);
    free(share);
    share = next;
  }
}

static void drop(uintptr_t handle) {
  if (handle != 0) fletching_go_drop(handle);
}

/* Returns the share that has to be left next. */
static struct FletchingShare* leave_block(struct FletchingBlock* block, size_t structs) {
  if (!take_last(&block->structs, structs)) return NULL;
  struct FletchingShare* share = block->share;
  drop(block->owner);
  free(block);
  return share;
}

#define STRUCT ArrowSchema
#define FIELD schema
#include "release.h"

#define STRUCT ArrowArray
#define FIELD array
#include "release.h"

/* --- Children that need the event of their parent --- */

static const int64_t most_structs = 1 << 22; /* as in tree.go: no table has as many columns */

/* The release callback of an array that is held in a share: the data of the children that are
 * still there need not wait. */
static void release_children(struct ArrowArray* self) {
  self->release = NULL;
  const int64_t count = self->n_children > most_structs ? 0 : self->n_children;
  for (int64_t i = 0; self->children != NULL && i < count; ++i) {
    if (self->children[i] != NULL) release_once_array(self->children[i]);
  }
  if (self->dictionary != NULL) release_once_array(self->dictionary);
}

struct FletchingShare* fletching_hold_event(struct ArrowArray* parent) {
  if (parent->release == run_hook_array) {
    const struct HookArrowArray* hook = parent->private_data;
    while (hook != NULL && hook->share == NULL) hook = hook->next;
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
  parent->release = release_children;
  set_hook_array(parent, hook);
  hook->share = share;
  return share;
}

int fletching_take_with_event(struct ArrowArray* parent, struct ArrowArray* child,
                              struct ArrowArray* out) {
  struct HookArrowArray* hook = calloc(1, sizeof *hook);
  if (hook == NULL) return ENOMEM;
  hook->share = fletching_hold_event(parent);
  if (hook->share == NULL) {
    free(hook);
    return ENOMEM;
  }
  *out = *child;
  child->release = NULL;
  set_hook_array(out, hook);
  return 0;
}

void fletching_leave_event(struct FletchingShare* share) { leave_share(share); }

/* --- Events of ours --- */

int fletching_attach_event(const uintptr_t* arrays, size_t count, struct FletchingShare* share) {
  struct HookArrowArray* hooks = NULL; /* a list, by private_data */
  for (size_t i = 0; i < count; ++i) {
    struct HookArrowArray* hook = calloc(1, sizeof *hook);
    if (hook != NULL) {
      hook->private_data = hooks;
      hooks = hook;
      continue;
    }
    while (hooks != NULL) {
      hook = hooks->private_data;
      free(hooks);
      hooks = hook;
    }
    return ENOMEM;
  }
  share->users = count;
  for (size_t i = 0; i < count; ++i) {
    struct HookArrowArray* hook = hooks;
    hooks = hook->private_data;
    hook->share = share;
    set_hook_array((struct ArrowArray*)arrays[i], hook);
  }
  return 0;
}

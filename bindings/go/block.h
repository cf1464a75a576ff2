/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory and the callbacks of exported structs. The callbacks enter Go only to drop a Go
 * value. */
#ifndef FLETCHING_GO_BLOCK_H
#define FLETCHING_GO_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "fletching_core.h"

/* Each global name contains the version, as in the core. */
#define fletching_block_new FLETCHING_PREFIXED(BlockNew)
#define fletching_block_free FLETCHING_PREFIXED(BlockFree)
#define fletching_release_schema FLETCHING_PREFIXED(ReleaseSchema)
#define fletching_release_array FLETCHING_PREFIXED(ReleaseArray)
#define fletching_attach_schema FLETCHING_PREFIXED(AttachSchema)
#define fletching_attach_array FLETCHING_PREFIXED(AttachArray)
#define fletching_due_schema FLETCHING_PREFIXED(DueSchema)
#define fletching_due_array FLETCHING_PREFIXED(DueArray)
#define fletching_share_schema FLETCHING_PREFIXED(ShareSchema)
#define fletching_share_array FLETCHING_PREFIXED(ShareArray)
#define fletching_take_with_event FLETCHING_PREFIXED(TakeWithEvent)

struct FletchingChain;

/* Part of a release that remains to be done. It runs after the callback that added it, so that
 * nested views need no recursion. */
struct FletchingLink {
  struct FletchingLink* next;
  void (*run)(struct FletchingLink* self, struct FletchingChain* chain);
};

/* A queue of links. */
struct FletchingChain {
  struct FletchingLink* first;
  struct FletchingLink** end;
};

/* A struct with several users: views of it, or children that need its event. The last user runs
 * the link. */
struct FletchingShare {
  struct FletchingLink link;
  size_t users;
  union {
    struct ArrowSchema schema;
    struct ArrowArray array;
  } held;
};

/* The head of a block. `structs` counts the unreleased structs whose private_data is the block. The
 * release of the last one frees the block. The structs follow, then their targets. */
struct FletchingBlock {
  _Alignas(8) size_t structs;
  uintptr_t owner;              /* a Go handle; 0 for none */
  struct FletchingShare* share; /* the share that the structs show; NULL for none */
};

/* Returns a block, undefined after the head, and adds a user to `share`, an address or 0. Returns
 * NULL if out of memory. */
struct FletchingBlock* fletching_block_new(size_t size, size_t structs, uintptr_t owner,
                                           uintptr_t share);

/* Frees an unused block, given by its address. */
void fletching_block_free(uintptr_t block);

void fletching_release_schema(struct ArrowSchema* self);
void fletching_release_array(struct ArrowArray* self);

/* Drop the value of a handle after the release of the struct. Return 0 or ENOMEM, which leaves the
 * struct unchanged. */
int fletching_attach_schema(struct ArrowSchema* target, uintptr_t handle);
int fletching_attach_array(struct ArrowArray* target, uintptr_t handle);

/* Moves the struct into a link of a chain, which releases it. Returns NULL if out of memory. */
struct FletchingShare* fletching_due_schema(struct ArrowSchema* source);
struct FletchingShare* fletching_due_array(struct ArrowArray* source);

/* Moves the struct into a share and replaces it with a user of the share. */
int fletching_share_schema(struct ArrowSchema* source);
int fletching_share_array(struct ArrowArray* source);

/* Moves a child out of an array with an event. The event is valid until both are released. */
int fletching_take_with_event(struct ArrowArray* parent, struct ArrowArray* child,
                              struct ArrowArray* out);

/* The share in private_data of a struct, see fletching_share_schema. */
#define FLETCHING_SHARE_OF(self) ((struct FletchingShare*)(self)->private_data)

#endif /* FLETCHING_GO_BLOCK_H */

/* SPDX-License-Identifier: Apache-2.0
 *
 * What the structs that this package exports point to, and the callbacks that C calls on them. None
 * of them enters Go, other than to drop a value of Go. */
#ifndef FLETCHING_GO_BLOCK_H
#define FLETCHING_GO_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "fletching_core.h"

/* The version is part of each global name, as in the core. */
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

/* The part of a release that is due: it runs after the callback that has added it, so that views of
 * views need no recursion. */
struct FletchingLink {
  struct FletchingLink* next;
  void (*run)(struct FletchingLink* self, struct FletchingChain* chain);
};

/* Links in their order. */
struct FletchingChain {
  struct FletchingLink* first;
  struct FletchingLink** end;
};

/* A struct with several users: views of it, or children that need its event. The last one to go
 * runs the link. */
struct FletchingShare {
  struct FletchingLink link;
  size_t users;
  union {
    struct ArrowSchema schema;
    struct ArrowArray array;
  } held;
};

/* The begin of a block. Each struct whose private_data is the block counts as one of `structs`;
 * the release of the last one frees the block. The structs follow, then their targets. */
struct FletchingBlock {
  _Alignas(8) size_t structs;
  uintptr_t owner;              /* a handle of Go; 0 for none */
  struct FletchingShare* share; /* what the structs show; NULL for none */
};

/* Zeroed, with one user more for `share`, an address or 0. NULL without memory. */
struct FletchingBlock* fletching_block_new(size_t size, size_t structs, uintptr_t owner,
                                           uintptr_t share);

/* Frees a block that nothing needs any more, by its address. */
void fletching_block_free(uintptr_t block);

void fletching_release_schema(struct ArrowSchema* self);
void fletching_release_array(struct ArrowArray* self);

/* Drops the value of a handle after the release of the struct. These return 0 or ENOMEM, and then
 * nothing has changed. */
int fletching_attach_schema(struct ArrowSchema* target, uintptr_t handle);
int fletching_attach_array(struct ArrowArray* target, uintptr_t handle);

/* Moves the struct into a link of a chain, which releases it. NULL without memory. */
struct FletchingShare* fletching_due_schema(struct ArrowSchema* source);
struct FletchingShare* fletching_due_array(struct ArrowArray* source);

/* Moves the struct into a share; what is left gives up its use of the share on release. */
int fletching_share_schema(struct ArrowSchema* source);
int fletching_share_array(struct ArrowArray* source);

/* Moves a child out of an array that has an event: the event lives until both are released. */
int fletching_take_with_event(struct ArrowArray* parent, struct ArrowArray* child,
                              struct ArrowArray* out);

/* The share that private_data of a struct is, see fletching_share_schema. */
#define FLETCHING_SHARE_OF(self) ((struct FletchingShare*)(self)->private_data)

#endif /* FLETCHING_GO_BLOCK_H */

/* SPDX-License-Identifier: Apache-2.0
 *
 * The callbacks of one struct type. block.c includes this file for each type. STRUCT is ArrowSchema
 * or ArrowArray. FIELD is its name in a share and the suffix of the function names. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(name##_, FIELD)
#define HOOK JOIN(Hook, STRUCT)

/* --- Structs in a block --- */

static void NAME(dispose)(struct STRUCT* self, struct FletchingChain* chain);

/* Releases the nested structs. Returns the number of released structs of the block: unmodified
 * structs of the block are released without a call. */
static size_t NAME(release_below)(struct STRUCT* self, struct FletchingBlock* block,
                                  struct FletchingChain* chain);

static size_t NAME(release_in_block)(struct STRUCT* below, struct FletchingBlock* block,
                                     struct FletchingChain* chain) {
  if (below->release != NAME(fletching_release) || below->private_data != block) {
    NAME(dispose)(below, chain);
    return 0;
  }
  size_t structs = 1 + NAME(release_below)(below, block, chain);
  below->release = NULL;
  return structs;
}

static size_t NAME(release_below)(struct STRUCT* self, struct FletchingBlock* block,
                                  struct FletchingChain* chain) {
  size_t structs = 0;
  for (int64_t i = 0; i < self->n_children; ++i) {
    structs += NAME(release_in_block)(self->children[i], block, chain);
  }
  if (self->dictionary != NULL) structs += NAME(release_in_block)(self->dictionary, block, chain);
  return structs;
}

/* --- After a foreign release --- */

/* The first hook has the original callback and is followed by hooks that were set later. */
struct HOOK {
  struct FletchingLink link;
  void (*release)(struct STRUCT*);
  void* private_data;
  uintptr_t handle;
  struct FletchingShare* share;
  struct HOOK* last; /* in the first hook: the end of the list */
};

static void NAME(run_link)(struct FletchingLink* link, struct FletchingChain* chain) {
  struct HOOK* hook = (struct HOOK*)link;
  drop(hook->handle, chain);
  leave_share(hook->share, chain);
}

/* --- The callbacks --- */

static void NAME(run_hook)(struct STRUCT* self);

/* Callback of an array that is held in a share. Releases the data of the remaining children
 * immediately. */
static void NAME(release_children)(struct STRUCT* self);

/* Callback of a Shared's struct. Called once: such a struct is never exported. */
static void NAME(release_use)(struct STRUCT* self);

/* Releases a struct and adds the shares and values to drop to the chain. */
static void NAME(dispose)(struct STRUCT* self, struct FletchingChain* chain) {
  void (*const release)(struct STRUCT*) = self->release;
  if (release == NULL) return;
  self->release = NULL;
  if (release == NAME(fletching_release)) {
    struct FletchingBlock* block = self->private_data;
    leave_block(block, 1 + NAME(release_below)(self, block, chain), chain);
  } else if (release == NAME(run_hook)) {
    struct HOOK* hook = self->private_data;
    self->release = hook->release;
    self->private_data = hook->private_data;
    NAME(dispose)(self, chain);
    append(chain, &hook->link, &hook->last->link);
  } else if (release == NAME(release_use)) {
    leave_share(FLETCHING_SHARE_OF(self), chain);
  } else if (release == NAME(release_children)) {
    const int64_t count = self->n_children > most_structs ? 0 : self->n_children;
    for (int64_t i = 0; self->children != NULL && i < count; ++i) {
      if (self->children[i] != NULL) NAME(dispose)(self->children[i], chain);
    }
    if (self->dictionary != NULL) NAME(dispose)(self->dictionary, chain);
  } else {
    self->release = release;
    release(self);
    self->release = NULL;
  }
}

/* Body of a callback. `own` is that callback: the caller may have changed the struct. */
static void NAME(release_all)(struct STRUCT* self, void (*own)(struct STRUCT*)) {
  if (self->release == NULL) return; /* the block may already be freed */
  struct FletchingChain chain = {NULL, &chain.first};
  self->release = own;
  NAME(dispose)(self, &chain);
  run_all(&chain);
}

void NAME(fletching_release)(struct STRUCT* self) {
  NAME(release_all)(self, NAME(fletching_release));
}
static void NAME(run_hook)(struct STRUCT* self) { NAME(release_all)(self, NAME(run_hook)); }
static void NAME(release_use)(struct STRUCT* self) { NAME(release_all)(self, NAME(release_use)); }
static void NAME(release_children)(struct STRUCT* self) {
  NAME(release_all)(self, NAME(release_children));
}

static void NAME(set_hook)(struct STRUCT* target, struct HOOK* hook) {
  hook->link.run = NAME(run_link);
  if (target->release == NAME(run_hook)) {
    struct HOOK* first = target->private_data;
    first->last->link.next = &hook->link;
    first->last = hook;
    return;
  }
  hook->last = hook;
  hook->release = target->release;
  hook->private_data = target->private_data;
  target->release = NAME(run_hook);
  target->private_data = hook;
}

int NAME(fletching_attach)(struct STRUCT* target, uintptr_t handle) {
  struct HOOK* hook = calloc(1, sizeof *hook);
  if (hook == NULL) return ENOMEM;
  hook->handle = handle;
  NAME(set_hook)(target, hook);
  return 0;
}

/* --- Shares --- */

static void NAME(release_held)(struct FletchingLink* link, struct FletchingChain* chain) {
  NAME(dispose)(&((struct FletchingShare*)link)->held.FIELD, chain);
}

static struct FletchingShare* NAME(new_share)(struct STRUCT* source, size_t users) {
  struct FletchingShare* share = calloc(1, sizeof *share);
  if (share == NULL) return NULL;
  share->users = users;
  share->link.run = NAME(release_held);
  share->held.FIELD = *source;
  return share;
}

struct FletchingShare* NAME(fletching_due)(struct STRUCT* source) {
  return NAME(new_share)(source, 0);
}

int NAME(fletching_share)(struct STRUCT* source) {
  struct FletchingShare* share = NAME(new_share)(source, 1);
  if (share == NULL) return ENOMEM;
  source->release = NAME(release_use);
  source->private_data = share;
  return 0;
}

#undef JOIN_
#undef JOIN
#undef NAME
#undef HOOK
#undef STRUCT
#undef FIELD

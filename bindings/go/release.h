/* SPDX-License-Identifier: Apache-2.0
 *
 * The callbacks of one struct type, written once: block.c includes this file for each. STRUCT is
 * ArrowSchema or ArrowArray; FIELD, its name in a share, ends the names of the functions. */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(name##_, FIELD)
#define HOOK JOIN(Hook, STRUCT)

static void NAME(release_once)(struct STRUCT* self) {
  if (self->release == NULL) return;
  self->release(self);
  self->release = NULL;
}

/* --- Structs in a block --- */

/* Releases what is below. Returns how many structs of the block this has released: one that is as
 * we made it needs no call. */
static size_t NAME(release_below)(struct STRUCT* self, struct FletchingBlock* block);

static size_t NAME(release_in_block)(struct STRUCT* below, struct FletchingBlock* block) {
  if (below->release != NAME(fletching_release) || below->private_data != block) {
    NAME(release_once)(below);
    return 0;
  }
  size_t structs = 1 + NAME(release_below)(below, block);
  below->release = NULL;
  return structs;
}

static size_t NAME(release_below)(struct STRUCT* self, struct FletchingBlock* block) {
  size_t structs = 0;
  for (int64_t i = 0; i < self->n_children; ++i) {
    structs += NAME(release_in_block)(self->children[i], block);
  }
  if (self->dictionary != NULL) structs += NAME(release_in_block)(self->dictionary, block);
  return structs;
}

static struct FletchingShare* NAME(release_view)(struct STRUCT* self) {
  struct FletchingBlock* block = self->private_data;
  self->release = NULL;
  return leave_block(block, 1 + NAME(release_below)(self, block));
}

void NAME(fletching_release)(struct STRUCT* self) {
  if (self->release == NULL) return; /* then the block may be gone */
  leave_share(NAME(release_view)(self));
}

/* --- What happens after a foreign release --- */

/* A struct has one hook with its own callback, and a list of those that were set later: a release
 * needs no recursion. */
struct HOOK {
  void (*release)(struct STRUCT*);
  void* private_data;
  uintptr_t handle;
  struct FletchingShare* share;
  struct HOOK* next;
  struct HOOK* last; /* of the first: the end of the list */
};

static void NAME(run_hook)(struct STRUCT* self) {
  if (self->release == NULL) return;
  struct HOOK* hook = self->private_data;
  self->release = hook->release;
  self->private_data = hook->private_data;
  NAME(release_once)(self);
  while (hook != NULL) {
    struct HOOK* next = hook->next;
    drop(hook->handle);
    leave_share(hook->share);
    free(hook);
    hook = next;
  }
}

static void NAME(set_hook)(struct STRUCT* target, struct HOOK* hook) {
  if (target->release == NAME(run_hook)) {
    struct HOOK* first = target->private_data;
    first->last->next = hook;
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

/* Views of views are a chain of shares, which is left without recursion. */
static struct FletchingShare* NAME(release_held)(struct FletchingShare* self) {
  struct STRUCT* held = &self->held.FIELD;
  if (held->release == NAME(fletching_release)) return NAME(release_view)(held);
  NAME(release_once)(held);
  return NULL;
}

static struct FletchingShare* NAME(new_share)(struct STRUCT* source, size_t users) {
  struct FletchingShare* share = calloc(1, sizeof *share);
  if (share == NULL) return NULL;
  share->users = users;
  share->release = NAME(release_held);
  share->held.FIELD = *source;
  return share;
}

/* Called once: a struct with a use of a share is never exported. */
static void NAME(release_use)(struct STRUCT* self) {
  self->release = NULL;
  leave_share(FLETCHING_SHARE_OF(self));
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

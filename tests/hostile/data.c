#include "data.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static int IsInPlace(const void* child, const void* children, size_t size) {
  return (uintptr_t)child - (uintptr_t)children < size;
}

/* --- Schemas --- */

struct SchemaBlock {
  atomic_int users;
  atomic_int releases_children;
  struct ArrowSchema children[kChildren];
  struct ArrowSchema* child_list[kChildren];
};

static void DropSchemaBlock(void* object) {
  struct SchemaBlock* block = object;
  if (atomic_fetch_sub(&block->users, 1) == 1) free(block);
}

/* While a child is in its parent, only the parent calls its release. */
static void ReleaseSchemaChild(struct ArrowSchema* schema) {
  struct SchemaBlock* block = FindId(schema->private_data, "release of a child schema");
  if (block == NULL) return;
  if (IsInPlace(schema, block->children, sizeof block->children) && !block->releases_children) {
    Mistake("release of a child schema was called in its parent");
  }
  if (CloseId(schema->private_data, "release of a child schema")) schema->release = NULL;
}

void ReleaseSchemaChildInPlace(struct ArrowSchema* child) {
  CloseId(child->private_data, "release of a child schema");
  child->release = NULL;
}

void ReleaseSchemaAndForget(struct ArrowSchema* schema) {
  struct SchemaBlock* block = FindId(schema->private_data, "release of a schema");
  if (block == NULL) return;
  block->releases_children = 1;
  for (int i = 0; i < kChildren; ++i) {
    struct ArrowSchema* child = &block->children[i];
    if (child->release != NULL) child->release(child);
  }
  CloseId(schema->private_data, "release of a schema");
}

static void ReleaseSchema(struct ArrowSchema* schema) {
  ReleaseSchemaAndForget(schema);
  schema->release = NULL;
}

static int OpenSchema(struct SchemaBlock* block, const char* format, const char* name,
                      void (*release)(struct ArrowSchema*), struct ArrowSchema* out) {
  void* id = OpenId(kCountsAsStruct, block, DropSchemaBlock);
  if (id == NULL) return ENOMEM;
  atomic_fetch_add(&block->users, 1);
  *out = (struct ArrowSchema){.format = format,
                              .name = name,
                              .flags = ARROW_FLAG_NULLABLE,
                              .release = release,
                              .private_data = id};
  return 0;
}

int MakeSchema(int has_children, struct ArrowSchema* out) {
  memset(out, 0, sizeof *out);
  struct SchemaBlock* block = calloc(1, sizeof *block);
  if (block == NULL) return ENOMEM;
  if (OpenSchema(block, has_children ? "+s" : "i", "numbers", ReleaseSchema, out) != 0) {
    free(block);
    return ENOMEM;
  }
  for (int i = 0; has_children && i < kChildren; ++i) {
    block->child_list[i] = &block->children[i];
    if (OpenSchema(block, "i", i == 0 ? "a" : "b", ReleaseSchemaChild, &block->children[i]) != 0) {
      out->release(out);
      return ENOMEM;
    }
  }
  out->n_children = has_children ? kChildren : 0;
  out->children = has_children ? block->child_list : NULL;
  return 0;
}

/* --- Arrays --- */

struct ArrayBlock {
  atomic_int users;
  atomic_int releases_children;
  int32_t values[kLength];
  const void* validity_alone[1];
  const void* buffers[2];
  struct ArrowArray children[kChildren];
  struct ArrowArray* child_list[kChildren];
};

static void DropArrayBlock(void* object) {
  struct ArrayBlock* block = object;
  if (atomic_fetch_sub(&block->users, 1) == 1) free(block);
}

static atomic_int in_place_allowed;

void AllowReleaseInPlace(int is_allowed) { in_place_allowed = is_allowed; }

static void ReleaseArrayChild(struct ArrowArray* array) {
  struct ArrayBlock* block = FindId(array->private_data, "release of a child array");
  if (block == NULL) return;
  if (IsInPlace(array, block->children, sizeof block->children) && !block->releases_children &&
      !in_place_allowed) {
    Mistake("release of a child array was called in its parent");
  }
  if (CloseId(array->private_data, "release of a child array")) array->release = NULL;
}

void ReleaseArrayChildInPlace(struct ArrowArray* child) {
  CloseId(child->private_data, "release of a child array");
  child->release = NULL;
}

void ReleaseArrayAndForget(struct ArrowArray* array) {
  struct ArrayBlock* block = FindId(array->private_data, "release of an array");
  if (block == NULL) return;
  block->releases_children = 1;
  for (int i = 0; i < kChildren; ++i) {
    struct ArrowArray* child = &block->children[i];
    if (child->release != NULL) child->release(child);
  }
  CloseId(array->private_data, "release of an array");
}

static void ReleaseArray(struct ArrowArray* array) {
  ReleaseArrayAndForget(array);
  array->release = NULL;
}

static int OpenArray(struct ArrayBlock* block, int has_values, void (*release)(struct ArrowArray*),
                     struct ArrowArray* out) {
  void* id = OpenId(kCountsAsStruct, block, DropArrayBlock);
  if (id == NULL) return ENOMEM;
  atomic_fetch_add(&block->users, 1);
  *out = (struct ArrowArray){.length = kLength,
                             .n_buffers = has_values ? 2 : 1,
                             .buffers = has_values ? block->buffers : block->validity_alone,
                             .release = release,
                             .private_data = id};
  return 0;
}

int MakeArray(int has_children, struct ArrowArray* out) {
  memset(out, 0, sizeof *out);
  struct ArrayBlock* block = calloc(1, sizeof *block);
  if (block == NULL) return ENOMEM;
  for (int i = 0; i < kLength; ++i) block->values[i] = i + 1;
  block->buffers[1] = block->values;
  if (OpenArray(block, !has_children, ReleaseArray, out) != 0) {
    free(block);
    return ENOMEM;
  }
  for (int i = 0; has_children && i < kChildren; ++i) {
    block->child_list[i] = &block->children[i];
    if (OpenArray(block, 1, ReleaseArrayChild, &block->children[i]) != 0) {
      out->release(out);
      return ENOMEM;
    }
  }
  out->n_children = has_children ? kChildren : 0;
  out->children = has_children ? block->child_list : NULL;
  return 0;
}

int MakeDeviceArray(int has_children, struct ArrowDeviceArray* out) {
  memset(out, 0, sizeof *out);
  out->device_id = -1;
  out->device_type = ARROW_DEVICE_CPU;
  return MakeArray(has_children, &out->array);
}

/* --- A schema that is too deep ---
 * One chain for the whole process, so that a child that was moved out stays valid. */

static struct ArrowSchema chain[kDepth];
static struct ArrowSchema* chain_list[kDepth];

static void ReleaseNothing(struct ArrowSchema* schema) { schema->release = NULL; }
static void DropNothing(void* object) { (void)object; }

int MakeDeepSchema(struct ArrowSchema* out) {
  memset(out, 0, sizeof *out);
  for (int i = 0; i < kDepth; ++i) {
    const int is_last = i == kDepth - 1;
    chain_list[i] = &chain[i];
    chain[i] = (struct ArrowSchema){.format = is_last ? "i" : "+w:1",
                                    .name = "item",
                                    .n_children = is_last ? 0 : 1,
                                    .children = is_last ? NULL : &chain_list[i + 1],
                                    .release = ReleaseNothing};
  }
  void* id = OpenId(kCountsAsStruct, chain, DropNothing);
  if (id == NULL) return ENOMEM;
  *out = chain[0];
  out->release = ReleaseSchemaChildInPlace; /* closes the id, and has no children of a block */
  out->private_data = id;
  return 0;
}

/* --- Contents of `out` after a failed call --- */

static void ReleaseLeftSchema(struct ArrowSchema* schema) {
  Mistake("the schema that a failed call left behind was released");
  schema->release = NULL;
}

static void ReleaseLeftArray(struct ArrowArray* array) {
  Mistake("the array that a failed call left behind was released");
  array->release = NULL;
}

void LeaveSchema(struct ArrowSchema* out) {
  memset(out, 0xA5, sizeof *out);
  out->release = ReleaseLeftSchema;
}

void LeaveArray(struct ArrowArray* out) {
  memset(out, 0xA5, sizeof *out);
  out->release = ReleaseLeftArray;
}

void LeaveDeviceArray(struct ArrowDeviceArray* out) {
  memset(out, 0xA5, sizeof *out);
  out->array.release = ReleaseLeftArray;
}

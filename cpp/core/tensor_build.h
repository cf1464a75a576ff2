// SPDX-License-Identifier: Apache-2.0
//
// Builds the schema and array of a tensor: lists around the values. A consumer may move out each
// struct.
#ifndef FLETCHING_CORE_TENSOR_BUILD_H
#define FLETCHING_CORE_TENSOR_BUILD_H

#include <stdatomic.h>

#include "tensor_extension.h"
#include "tensor_layout.h"

#define MOST_LISTS (MOST_EXTENTS + 1)  // including the list around the parts of a value
#define MOST_PARAMETERS 4096           // more than the JSON of the maximum number of sizes

// The lists from the outside in, followed by the values.
struct tensor_lists {
  int32_t n_lists;
  int32_t sizes[MOST_LISTS];
  char parameters[MOST_PARAMETERS];  // outermost arrow.fixed_shape_tensor only; otherwise empty
};

static bool add_list(struct tensor_lists* lists, int64_t size, struct failure* failure) {
  if (size > INT32_MAX) {
    return fail(failure, ENOTSUP,
                "DLTensor.shape: inner dimensions too large for a fixed-size list: expected at "
                "most 2147483647 elements");
  }
  lists->sizes[lists->n_lists++] = (int32_t)size;
  return true;
}

static char* append_numbers(char* at, const char* key, const int64_t* numbers, int32_t count) {
  at += sprintf(at, "\"%s\":", key);
  for (int32_t i = 0; i < count; ++i) {
    at += sprintf(at, "%c%lld", i == 0 ? '[' : ',', (long long)numbers[i]);
  }
  *at++ = ']';
  return at;
}

// Writes the parameters of arrow.fixed_shape_tensor.
static void write_tensor_shape(const struct FletchingTensorLayout* layout, char* at) {
  const int32_t count = layout->ndim - 1;
  int64_t shape[MOST_EXTENTS] = {0};
  int64_t permutation[MOST_EXTENTS] = {0};
  bool is_in_order = true;
  for (int32_t i = 0; i < count; ++i) {
    shape[i] = layout->shape[layout->order[i]];
    permutation[layout->order[i] - 1] = i;
    is_in_order = is_in_order && layout->order[i] == i + 1;
  }
  *at++ = '{';
  at = append_numbers(at, "shape", shape, count);
  if (!is_in_order) {
    *at++ = ',';
    at = append_numbers(at, "permutation", permutation, count);
  }
  *at++ = '}';
  *at = '\0';
}

static bool find_lists(const struct FletchingTensorLayout* layout, uint32_t options,
                       struct tensor_lists* out, struct failure* failure) {
  out->n_lists = 0;
  out->parameters[0] = '\0';
  if ((options & FLETCHING_TENSOR_LISTS) != 0) {
    for (int32_t i = 1; i < layout->ndim; ++i) {
      if (!add_list(out, layout->shape[i], failure)) return false;
    }
  } else if (layout->ndim > 1) {
    int64_t size = 1;
    for (int32_t i = 1; i < layout->ndim; ++i) size = next_step(size, layout->shape[i]);
    for (int32_t i = 1; i < layout->ndim; ++i) {
      if (layout->shape[i] == 0) size = 0;
    }
    if (!add_list(out, size, failure)) return false;
    write_tensor_shape(layout, out->parameters);
  }
  return layout->parts == 1 || add_list(out, layout->parts, failure);
}

// --- The schema ---

struct schema_node {
  struct ArrowSchema schema;
  struct ArrowSchema* child;
  char format[24];
};

struct schema_block {
  atomic_size_t users;  // nodes that are not released
  struct schema_node nodes[];
};

static void release_schema_node(struct ArrowSchema* schema) {
  struct schema_block* block = schema->private_data;
  struct ArrowSchema* child = schema->n_children > 0 ? schema->children[0] : NULL;
  if (child != NULL && child->release != NULL) child->release(child);
  schema->release = NULL;
  if (atomic_fetch_sub(&block->users, 1) == 1) free(block);
}

static char* append_piece(char* at, const char* text) {
  const int32_t size = (int32_t)strlen(text);
  memcpy(at, &size, sizeof size);
  memcpy(at + sizeof size, text, (size_t)size);
  return at + sizeof size + size;
}

static size_t extension_size(const char* name, const char* parameters) {
  return 5 * sizeof(int32_t) + strlen(EXTENSION_NAME) + strlen(name) + strlen(EXTENSION_METADATA) +
         strlen(parameters);
}

// Writes the metadata of an extension type and advances *at.
static const char* write_extension(char** at, const char* name, const char* parameters) {
  const int32_t n_pairs = 2;
  const char* start = *at;
  memcpy(*at, &n_pairs, sizeof n_pairs);
  *at = append_piece(*at + sizeof n_pairs, EXTENSION_NAME);
  *at = append_piece(*at, name);
  *at = append_piece(*at, EXTENSION_METADATA);
  *at = append_piece(*at, parameters);
  return start;
}

static bool build_schema(const struct FletchingTensorLayout* layout,
                         const struct tensor_lists* lists, struct ArrowSchema* out,
                         struct failure* failure) {
  char opaque[96] = "";
  const bool is_tensor = lists->parameters[0] != '\0';
  const size_t n_nodes = (size_t)lists->n_lists + 1;
  // The list of the parts has the extension type, or the values if there is no such list.
  const int32_t extended = lists->n_lists - (layout->parts > 1 ? 1 : 0);
  if (layout->type_name != NULL) {
    (void)snprintf(opaque, sizeof opaque, "{\"type_name\":\"%s\",\"vendor_name\":\"%s\"}",
                   layout->type_name, tensor_vendor);
  }
  size_t size = sizeof(struct schema_block) + n_nodes * sizeof(struct schema_node);
  const size_t text_at = size;
  if (is_tensor) size += extension_size(FIXED_SHAPE_TENSOR, lists->parameters);
  if (layout->extension != NULL) size += extension_size(layout->extension, opaque);
  struct schema_block* block = malloc(size);
  if (block == NULL) return fail(failure, ENOMEM, "no memory");
  char* text = (char*)block + text_at;
  atomic_init(&block->users, n_nodes);
  for (int32_t i = 0; i <= lists->n_lists; ++i) {
    struct schema_node* node = &block->nodes[i];
    const bool is_list = i < lists->n_lists;
    if (is_list) {
      (void)snprintf(node->format, sizeof node->format, "+w:%d", (int)lists->sizes[i]);
      node->child = &block->nodes[i + 1].schema;
    } else {
      node->child = NULL;
      (void)memcpy(node->format, layout->format, strlen(layout->format) + 1);
    }
    node->schema = (struct ArrowSchema){.format = node->format,
                                        .name = i == 0 ? "" : "item",
                                        .flags = ARROW_FLAG_NULLABLE,
                                        .n_children = is_list ? 1 : 0,
                                        .children = is_list ? &node->child : NULL,
                                        .release = release_schema_node,
                                        .private_data = block};
    if (is_tensor && i == 0) {
      node->schema.metadata = write_extension(&text, FIXED_SHAPE_TENSOR, lists->parameters);
    } else if (layout->extension != NULL && i == extended) {
      node->schema.metadata = write_extension(&text, layout->extension, opaque);
    }
  }
  *out = block->nodes[0].schema;
  return true;
}

// --- The array ---

struct array_node {
  struct ArrowArray array;
  struct ArrowArray* child;
  const void* buffers[2];
};

struct array_block {
  atomic_size_t users;  // nodes that are not released
  void* owner;          // owner of the memory
  void (*release)(void*);
  struct array_node nodes[];
};

static void release_array_node(struct ArrowArray* array) {
  struct array_block* block = array->private_data;
  struct ArrowArray* child = array->n_children > 0 ? array->children[0] : NULL;
  if (child != NULL && child->release != NULL) child->release(child);
  array->release = NULL;
  if (atomic_fetch_sub(&block->users, 1) != 1) return;
  if (block->release != NULL) block->release(block->owner);
  free(block);
}

static bool build_array(const struct FletchingTensorLayout* layout,
                        const struct tensor_lists* lists, void* owner, void (*release)(void*),
                        struct ArrowArray* out, struct failure* failure) {
  const size_t n_nodes = (size_t)lists->n_lists + 1;
  int64_t length = layout->ndim > 0 ? layout->shape[0] : 1;
  struct array_block* block =
      malloc(sizeof(struct array_block) + n_nodes * sizeof(struct array_node));
  if (block == NULL) return fail(failure, ENOMEM, "no memory");
  atomic_init(&block->users, n_nodes);
  block->owner = owner;
  block->release = release;
  for (int32_t i = 0; i <= lists->n_lists; ++i) {
    struct array_node* node = &block->nodes[i];
    const bool is_list = i < lists->n_lists;
    node->array = (struct ArrowArray){.length = length,
                                      .offset = is_list ? 0 : layout->offset,
                                      .n_buffers = is_list ? 1 : 2,
                                      .n_children = is_list ? 1 : 0,
                                      .buffers = node->buffers,
                                      .children = is_list ? &node->child : NULL,
                                      .release = release_array_node,
                                      .private_data = block};
    node->buffers[0] = NULL;
    if (!is_list) {
      node->buffers[1] = layout->buffer;
    } else {
      node->child = &block->nodes[i + 1].array;
      if (!multiply(length, lists->sizes[i], &length)) {
        free(block);  // overflows only without elements: others are counted
        return fail(failure, ENOTSUP,
                    "DLTensor.shape: too many lists: expected fewer than 2^63 rows of them");
      }
    }
  }
  *out = block->nodes[0].array;
  return true;
}

static bool wrap_tensor(const struct FletchingTensorLayout* layout, DLDevice device,
                        uint32_t options, void* owner, void (*release)(void*),
                        struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                        struct failure* failure) {
  struct tensor_lists lists;
  if (!find_lists(layout, options, &lists, failure) ||
      !build_schema(layout, &lists, schema, failure)) {
    return false;
  }
  if (!build_array(layout, &lists, owner, release, &array->array, failure)) {
    schema->release(schema);
    return false;
  }
  array->device_type = (ArrowDeviceType)device.device_type;
  array->device_id = device.device_type == kDLCPU ? -1 : device.device_id;
  return true;
}

int FletchingTensorWrap(const struct FletchingTensorLayout* layout, DLDevice device,
                        uint32_t options, void* owner, void (*release)(void* owner),
                        struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                        struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (layout == NULL || schema == NULL || array == NULL) {
    (void)fail(&failure, EINVAL, "tensor: layout, schema or array is NULL: expected structs");
    return report(&failure, message);
  }
  memset(schema, 0, sizeof *schema);
  memset(array, 0, sizeof *array);
  (void)wrap_tensor(layout, device, options, owner, release, schema, array, &failure);
  return report(&failure, message);
}

#endif  // FLETCHING_CORE_TENSOR_BUILD_H

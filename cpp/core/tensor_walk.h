// SPDX-License-Identifier: Apache-2.0
//
// Descends from an array through its lists to the values of its tensor.
#ifndef FLETCHING_CORE_TENSOR_WALK_H
#define FLETCHING_CORE_TENSOR_WALK_H

#include "tensor_extension.h"

// One array of the walk.
struct walk_level {
  const struct ArrowSchema* schema;
  const struct ArrowArray* array;
  int64_t first;  // first element, relative to the start of the array's buffers
  int64_t count;
  int32_t depth;
};

struct walk {
  uint32_t options;
  struct FletchingTensorView* view;
  // Index, from the outside, of each dimension's list. Strides count elements of the level below
  // until scale_strides().
  int32_t list_of[FLETCHING_TENSOR_DIMENSIONS];
  struct failure* failure;
};

static bool bad_array(struct walk* walk, const char* what, int64_t got) {
  return fail(walk->failure, EINVAL, "ArrowArray: %s, got %lld; hint: fix the producer", what,
              (long long)got);
}

static bool too_many_dimensions(struct walk* walk) {
  return fail(walk->failure, ENOTSUP,
              "tensor: too many dimensions: expected at most %d; hint: export the values of the "
              "inner lists",
              FLETCHING_TENSOR_DIMENSIONS);
}

static bool add_dimension(struct walk* walk, int32_t depth, int64_t extent, int64_t stride) {
  struct FletchingTensorView* view = walk->view;
  if (view->ndim == FLETCHING_TENSOR_DIMENSIONS) return too_many_dimensions(walk);
  walk->list_of[view->ndim] = depth;
  view->shape[view->ndim] = extent;
  view->strides[view->ndim++] = stride;
  return true;
}

// Adds the dimensions of arrow.fixed_shape_tensor: the memory order in `shape`, permuted.
static bool add_tensor_shape(struct walk* walk, const struct extension* extension, int64_t size,
                             int32_t depth) {
  struct tensor_shape tensor;
  int64_t steps[FLETCHING_TENSOR_DIMENSIONS];
  int64_t step = 1;
  int64_t product = 1;
  bool fits = true;
  bool is_empty = false;
  if (!read_tensor_shape(extension->parameters, &tensor, walk->failure)) return false;
  if (tensor.ndim > FLETCHING_TENSOR_DIMENSIONS) return too_many_dimensions(walk);
  for (int32_t i = tensor.ndim; i-- > 0;) {
    steps[i] = step;
    step = next_step(step, tensor.shape[i]);
    is_empty = is_empty || tensor.shape[i] == 0;
    fits = multiply(product, tensor.shape[i], &product) && fits;
  }
  if (is_empty ? size != 0 : !fits || product != size) {
    return bad_array(walk,
                     "list size of arrow.fixed_shape_tensor differs from its shape: expected the "
                     "product of the sizes",
                     size);
  }
  for (int32_t i = 0; i < tensor.ndim; ++i) {
    const int64_t axis = tensor.permutation[i];
    if (!add_dimension(walk, depth, tensor.shape[axis], steps[axis])) return false;
  }
  return true;
}

static bool fail_released(struct walk* walk, const struct walk_level* level, const char* type,
                          const char* part) {
  char path[FLETCHING_TENSOR_DIMENSIONS * sizeof ".children[0]"] = "";
  char* at = path;
  for (int32_t i = 0; i < level->depth; ++i) at += sprintf(at, ".children[0]");
  (void)fail(walk->failure, EINVAL, "%s%s%s: released: expected a live struct, got release NULL",
             type, path, part);
  return false;
}

// Fails if a struct or its dictionary is released.
static bool check_alive(struct walk* walk, const struct walk_level* level) {
  const struct ArrowSchema* schema = level->schema;
  const struct ArrowArray* array = level->array;
  if (schema->release == NULL) return fail_released(walk, level, "ArrowSchema", "");
  if (schema->dictionary != NULL && schema->dictionary->release == NULL) {
    return fail_released(walk, level, "ArrowSchema", ".dictionary");
  }
  if (array->release == NULL) return fail_released(walk, level, "ArrowArray", "");
  if (array->dictionary != NULL && array->dictionary->release == NULL) {
    return fail_released(walk, level, "ArrowArray", ".dictionary");
  }
  return true;
}

static bool is_every_bit_set(const void* bitmap, int64_t first, int64_t count) {
  const unsigned char* bytes = bitmap;
  for (int64_t i = first; i < first + count; ++i) {
    if ((bytes[i / 8] & (1u << (unsigned)(i % 8))) == 0) return false;
  }
  return true;
}

static bool check_nulls(struct walk* walk, const struct walk_level* level) {
  const struct ArrowArray* array = level->array;
  const bool is_readable = (walk->options & FLETCHING_TENSOR_HOST_READABLE) != 0;
  if ((walk->options & FLETCHING_TENSOR_IGNORE_NULLS) != 0 || array->null_count == 0) return true;
  const void* bitmap = array->buffers[0];
  if (bitmap == NULL && array->null_count > 0) {
    return bad_array(walk, "validity bitmap is NULL: expected one for the null_count",
                     array->null_count);
  }
  const bool is_masked = (walk->options & FLETCHING_TENSOR_MASK) != 0 && level->depth == 0;
  if (bitmap == NULL || level->count == 0 || is_masked) return true;
  if (is_readable && is_every_bit_set(bitmap, level->first, level->count)) return true;
  return fail(walk->failure, ENOTSUP,
              "ArrowArray: %s nulls: expected none in a tensor; hint: fill them, or let the export "
              "ignore nulls",
              is_readable || array->null_count > 0 ? "has" : "may have");
}

static bool check_level(struct walk* walk, const struct walk_level* level,
                        const struct tensor_format* format) {
  const int64_t needed = format->is_list ? 1 : 2;
  const struct ArrowArray* array = level->array;
  if (array->n_buffers < needed || array->buffers == NULL) {
    return bad_array(walk,
                     needed == 1 ? "n_buffers is too small: expected at least 1"
                                 : "n_buffers is too small: expected at least 2",
                     array->buffers == NULL ? 0 : array->n_buffers);
  }
  if (level->schema->dictionary == NULL || (walk->options & FLETCHING_TENSOR_AS_STORAGE) != 0) {
    return true;
  }
  return no_tensor_type(level->schema->format, "the values are indices into a dictionary",
                        "; hint: pass as_storage to export the storage", walk->failure);
}

static bool unknown_extension(struct walk* walk, const struct extension* extension) {
  const struct piece parameters = extension->parameters;
  const bool is_opaque = is_text(extension->name, OPAQUE_TYPE);
  return fail(walk->failure, ENOTSUP,
              "ArrowSchema: extension type %s%s%s would be lost: expected a plain type; hint: pass "
              "as_storage to export the storage",
              quote_bytes(extension->name.text, extension->name.size).text, is_opaque ? " " : "",
              is_opaque ? quote_bytes(parameters.text, parameters.size).text : "");
}

// Moves the level to the only child of a list with `size` elements per value.
static bool descend(struct walk* walk, struct walk_level* level, int64_t size) {
  const struct ArrowSchema* schema = level->schema;
  const struct ArrowArray* array = level->array;
  int64_t end = 0;
  if (schema->n_children != 1 || array->n_children != 1) {
    return bad_array(walk, "children of a fixed-size list: expected one",
                     schema->n_children != 1 ? schema->n_children : array->n_children);
  }
  if (schema->children == NULL || schema->children[0] == NULL || array->children == NULL ||
      array->children[0] == NULL) {
    return fail(walk->failure, EINVAL,
                "ArrowArray: child of a fixed-size list: NULL: expected one; hint: fix the "
                "producer");
  }
  level->schema = schema->children[0];
  level->array = array->children[0];
  ++level->depth;
  if (!check_alive(walk, level)) return false;
  if (level->array->offset < 0) {
    return bad_array(walk, "offset of a child is negative: expected 0 or more",
                     level->array->offset);
  }
  if (!multiply(level->first + level->count, size, &end) || level->array->length < end ||
      level->array->offset > INT64_MAX - end) {
    return bad_array(walk,
                     "child of a fixed-size list is too short: expected length * list size "
                     "elements",
                     level->array->length);
  }
  level->first = level->array->offset + level->first * size;
  level->count *= size;
  return true;
}

// Ends the walk at the values, of `bytes` bytes each.
static bool end_walk(struct walk* walk, const struct walk_level* level, int64_t bytes) {
  struct FletchingTensorView* view = walk->view;
  int64_t end = 0;
  if (!multiply(level->first + level->count, bytes, &end)) {
    return bad_array(walk, "size out of range: expected less than 2^63 bytes", level->count);
  }
  view->values = level->schema;
  view->buffer = level->array->buffers[1];
  view->byte_offset = (uint64_t)(level->first * bytes);
  view->bytes = (uint64_t)(level->count * bytes);
  if (view->buffer == NULL && view->bytes > 0) {
    return fail(walk->failure, EINVAL,
                "ArrowArray: buffers[1] is NULL: expected values; hint: fix the producer");
  }
  return true;
}

static bool bad_storage(struct walk* walk, const char* extension, const struct tensor_type* row) {
  return fail(
      walk->failure, EINVAL,
      "ArrowSchema: storage of %s differs: expected format \"%s\"%s; hint: fix the producer",
      extension, row->format, row->parts > 1 ? " in a fixed-size list" : "");
}

static bool check_storage(struct walk* walk, const char* format, const struct tensor_type* row) {
  return strcmp(format, row->format) == 0 ||
         bad_storage(walk, row->type_name != NULL ? row->type_name : row->extension, row);
}

// Handles a DLPack type that Arrow lacks.
static bool walk_opaque(struct walk* walk, struct walk_level* level,
                        const struct tensor_format* format, const struct tensor_type* row) {
  struct tensor_format parts;
  struct extension extension;
  walk->view->dtype = (DLDataType){row->code, row->bits, row->lanes};
  walk->view->is_padded = row->is_padded;
  if (!check_nulls(walk, level)) return false;
  if (row->parts == 1) {
    return check_storage(walk, level->schema->format, row) &&
           end_walk(walk, level, row->part_bytes);
  }
  if (!format->is_list || format->size != row->parts) {
    return bad_storage(walk, row->type_name, row);
  }
  return descend(walk, level, row->parts) &&
         find_extension(level->schema, &extension, walk->failure) &&
         (extension.name.size == 0 || unknown_extension(walk, &extension)) &&
         read_tensor_format(level->schema->format, &parts, walk->failure) &&
         check_level(walk, level, &parts) && check_storage(walk, level->schema->format, row) &&
         check_nulls(walk, level) && end_walk(walk, level, row->part_bytes);
}

static bool walk_values(struct walk* walk, const struct walk_level* level,
                        const struct tensor_format* format, const struct extension* extension) {
  const bool as_storage = (walk->options & FLETCHING_TENSOR_AS_STORAGE) != 0;
  const char* text = level->schema->format;
  const bool is_time = (walk->options & FLETCHING_TENSOR_TIMES) != 0 && is_plain_time(text);
  if (format->lost != NULL && !as_storage && !is_time) {
    return no_tensor_type(text, format->lost, "; hint: pass as_storage to export the storage",
                          walk->failure);
  }
  walk->view->dtype = format->type;
  if (is_text(extension->name, BOOL8)) {
    if (strcmp(text, "c") != 0) {
      return fail(walk->failure, EINVAL,
                  "ArrowSchema: storage of arrow.bool8 differs: expected int8; hint: fix the "
                  "producer");
    }
    walk->view->dtype.code = kDLBool;
  } else if (extension->name.size > 0 && !as_storage) {
    return unknown_extension(walk, extension);
  }
  if (!check_nulls(walk, level)) return false;
  if (format->is_binary && !add_dimension(walk, level->depth + 1, format->size, 1)) return false;
  return end_walk(walk, level, format->size * (format->type.bits / 8));
}

// Converts strides within each list to strides in elements of the tensor.
static void scale_strides(struct walk* walk) {
  struct FletchingTensorView* view = walk->view;
  int64_t step = 1;   // the next inner list's step
  int64_t below = 1;  // product over the inner lists, including this one
  for (int32_t i = view->ndim; i-- > 0;) {
    const bool is_next_list = i + 1 < view->ndim && walk->list_of[i] != walk->list_of[i + 1];
    if (is_next_list) step = below;
    view->strides[i] = next_step(view->strides[i], step);
    below = next_step(below, view->shape[i]);
  }
}

// Descends to the values. The limit on dimensions bounds the depth.
static bool walk_down(struct walk* walk, struct walk_level* level) {
  const bool as_storage = (walk->options & FLETCHING_TENSOR_AS_STORAGE) != 0;
  struct tensor_format format;
  struct extension extension;
  if (!check_alive(walk, level)) return false;
  if (level->first > INT64_MAX - level->count) {
    return fail(walk->failure, EINVAL,
                "ArrowArray: offset plus length out of range: expected at most "
                "9223372036854775807, got %lld + %lld",
                (long long)level->first, (long long)level->count);
  }
  for (;;) {
    if (!read_tensor_format(level->schema->format, &format, walk->failure) ||
        !check_level(walk, level, &format) ||
        !find_extension(level->schema, &extension, walk->failure)) {
      return false;
    }
    const struct tensor_type* row = as_storage ? NULL : opaque_of(&extension);
    if (row != NULL) return walk_opaque(walk, level, &format, row);
    if (!format.is_list) return walk_values(walk, level, &format, &extension);
    const bool is_tensor = is_text(extension.name, FIXED_SHAPE_TENSOR);
    if (!is_tensor && extension.name.size > 0 && !as_storage) {
      return unknown_extension(walk, &extension);
    }
    if (!check_nulls(walk, level) || !descend(walk, level, format.size)) return false;
    const bool is_added = is_tensor ? add_tensor_shape(walk, &extension, format.size, level->depth)
                                    : add_dimension(walk, level->depth, format.size, 1);
    if (!is_added) return false;
  }
}

// Reads no memory except validity bitmaps, and only `release` of a released struct.
static bool describe_tensor(const struct ArrowSchema* schema, const struct ArrowArray* array,
                            uint32_t options, struct FletchingTensorView* view,
                            struct failure* failure) {
  struct walk walk = {.options = options, .view = view, .failure = failure};
  struct walk_level level = {schema, array, array->offset, array->length, 0};
  view->ndim = 0;
  view->is_padded = 0;
  if (array->offset < 0 || array->length < 0) {
    return bad_array(&walk, "length or offset is negative: expected 0 or more",
                     array->offset < 0 ? array->offset : array->length);
  }
  if (!add_dimension(&walk, 0, array->length, 1) || !walk_down(&walk, &level)) return false;
  scale_strides(&walk);
  return true;
}

int FletchingTensorDescribe(const struct ArrowSchema* schema, const struct ArrowArray* array,
                            uint32_t options, struct FletchingTensorView* view,
                            struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (schema == NULL || array == NULL || view == NULL) {
    (void)fail(&failure, EINVAL, "tensor: schema, array or view is NULL: expected structs");
  } else {
    (void)describe_tensor(schema, array, options, view, &failure);
  }
  return report(&failure, message);
}

#endif  // FLETCHING_CORE_TENSOR_WALK_H

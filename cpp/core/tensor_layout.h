// SPDX-License-Identifier: Apache-2.0
//
// Memory layout of a foreign tensor: reads, checks and orders its elements.
#ifndef FLETCHING_CORE_TENSOR_LAYOUT_H
#define FLETCHING_CORE_TENSOR_LAYOUT_H

#include "tables/devices.h"
#include "tensor_types.h"

#define MOST_EXTENTS (FLETCHING_TENSOR_DIMENSIONS + 2)  // including those within an element

// Checked layout of a tensor. A value is a whole complex number, or one of its parts with
// FLETCHING_TENSOR_AS_STORAGE.
struct tensor_layout {
  const struct tensor_type* type;
  int64_t item_bytes;  // size of a value
  int64_t part_bytes;  // size and alignment of one part of a value
  int64_t n_values;
  uint64_t bytes;
  int32_t ndim;
  int64_t shape[MOST_EXTENTS];
  int64_t strides[MOST_EXTENTS];  // in values
};

static bool bad_tensor(struct failure* failure, const char* what) {
  return fail(failure, EINVAL, "DLTensor.%s; hint: fix the producer", what);
}

// Computes the absolute value. Returns false for INT64_MIN, which has none.
static bool magnitude(int64_t number, int64_t* out) {
  if (number == INT64_MIN) return false;
  *out = number < 0 ? -number : number;
  return true;
}

// Copies shape and strides. Unused strides may have any value and become 0.
static bool read_dimensions(const DLTensor* tensor, struct tensor_layout* out,
                            struct failure* failure) {
  if (tensor->ndim < 0 || tensor->ndim > FLETCHING_TENSOR_DIMENSIONS) {
    return fail(failure, EINVAL,
                "DLTensor.ndim: out of range: expected 0 to %d, got %d; hint: fix the producer",
                FLETCHING_TENSOR_DIMENSIONS, (int)tensor->ndim);
  }
  if (tensor->ndim > 0 && tensor->shape == NULL) {
    return bad_tensor(failure, "shape: NULL: expected ndim sizes");
  }
  for (out->ndim = 0; out->ndim < tensor->ndim; ++out->ndim) {
    const int64_t extent = tensor->shape[out->ndim];
    if (extent < 0) {
      return fail(failure, EINVAL,
                  "DLTensor.shape: negative size: expected 0 or more, got %lld; hint: fix the "
                  "producer",
                  (long long)extent);
    }
    const bool is_used = extent > 1 && tensor->strides != NULL;
    out->shape[out->ndim] = extent;
    out->strides[out->ndim] = is_used ? tensor->strides[out->ndim] : 0;
  }
  return true;
}

// Adds a dimension for elements with several values.
static bool add_repeat(int64_t repeat, struct tensor_layout* out, struct failure* failure) {
  if (repeat == 1) return true;
  for (int32_t i = 0; i < out->ndim; ++i) {
    int64_t product = 0;
    if (!magnitude(out->strides[i], &product) || !multiply(product, repeat, &product)) {
      return bad_tensor(failure, "strides: out of range: expected an offset below 2^63 bytes");
    }
    out->strides[i] *= repeat;
  }
  if (out->ndim == 0) {  // a single element becomes an array of length 1
    out->shape[out->ndim] = 1;
    out->strides[out->ndim++] = 0;
  }
  out->shape[out->ndim] = repeat;
  out->strides[out->ndim++] = 1;
  return true;
}

static bool count_values(struct tensor_layout* out, struct failure* failure) {
  bool is_empty = false;
  bool fits = true;
  int64_t bytes = 0;
  out->n_values = 1;
  for (int32_t i = 0; i < out->ndim; ++i) is_empty = is_empty || out->shape[i] == 0;
  for (int32_t i = 0; i < out->ndim && !is_empty; ++i) {
    fits = fits && multiply(out->n_values, out->shape[i], &out->n_values);
  }
  if (is_empty) out->n_values = 0;
  if (!fits || !multiply(out->n_values, out->item_bytes, &bytes)) {
    return bad_tensor(failure, "shape: size out of range: expected less than 2^63 bytes");
  }
  out->bytes = (uint64_t)bytes;
  return true;
}

// Sets the strides of contiguous values in C order.
static void make_compact(struct tensor_layout* out) {
  int64_t step = 1;
  for (int32_t i = out->ndim; i-- > 0;) {
    out->strides[i] = step;
    step = next_step(step, out->shape[i]);
  }
}

static bool read_layout(const DLTensor* tensor, uint32_t options, bool is_padded,
                        struct tensor_layout* out, struct failure* failure) {
  const bool as_storage = (options & FLETCHING_TENSOR_AS_STORAGE) != 0;
  out->type = type_of(tensor->dtype, is_padded, as_storage, failure);
  if (out->type == NULL) return false;
  const int32_t parts = out->type->parts;
  out->part_bytes = out->type->part_bytes;
  out->item_bytes = out->part_bytes * (as_storage ? 1 : parts);
  if (!read_dimensions(tensor, out, failure) ||
      !add_repeat(tensor->dtype.lanes / out->type->lanes, out, failure) ||
      !add_repeat(as_storage ? parts : 1, out, failure) || !count_values(out, failure)) {
    return false;
  }
  if (tensor->strides == NULL) make_compact(out);
  return true;
}

// --- Order ---

// Whether the inner dimensions are contiguous in this order.
static bool is_compact(const struct tensor_layout* layout, const int32_t* order) {
  int64_t step = 1;
  for (int32_t i = layout->ndim - 1; i-- > 0;) {
    const int32_t axis = order[i];
    if (layout->shape[axis] > 1 && layout->strides[axis] != step) return false;
    step = next_step(step, layout->shape[axis]);
  }
  return true;
}

// Sorts dimensions of size 1 outermost, because their strides are meaningless.
static int64_t sort_key(const struct tensor_layout* layout, int32_t axis) {
  return layout->shape[axis] == 1 ? INT64_MAX : layout->strides[axis];
}

static void plain_order(int32_t ndim, int32_t* order) {
  for (int32_t i = 1; i < ndim; ++i) order[i - 1] = i;
}

// Finds the memory order of the inner dimensions, from the outside in. Returns false if they have
// gaps or overlap, or if the options cannot express their order.
static bool find_order(const struct tensor_layout* layout, uint32_t options, int32_t* order) {
  plain_order(layout->ndim, order);
  if (is_compact(layout, order)) return true;
  if ((options & FLETCHING_TENSOR_LISTS) != 0) return false;
  for (int32_t end = 1; end < layout->ndim - 1; ++end) {  // insertion sort, which is stable
    for (int32_t i = end; i > 0; --i) {
      const int32_t inner = order[i];
      if (sort_key(layout, order[i - 1]) >= sort_key(layout, inner)) break;
      order[i] = order[i - 1];
      order[i - 1] = inner;
    }
  }
  return is_compact(layout, order);
}

// --- Place ---

static bool not_aligned(const char* field, int64_t align, struct failure* failure) {
  return fail(failure, ENOTSUP,
              "DLTensor.%s: not aligned: expected a multiple of %lld bytes; hint: copy the tensor",
              field, (long long)align);
}

// Sets the address of the first value. EINVAL if the address is invalid; ENOTSUP if the values are
// not aligned, in which case a copy helps.
static bool place_tensor(const DLTensor* tensor, const struct tensor_layout* layout,
                         struct FletchingTensorLayout* out, struct failure* failure) {
  out->buffer = NULL;
  out->offset = 0;
  if (layout->n_values == 0) return true;
  if (tensor->data == NULL) {
    return bad_tensor(failure, "data: NULL: expected an address, because there are elements");
  }
  if (!device_has_addresses((ArrowDeviceType)tensor->device.device_type)) {
    if (tensor->byte_offset > INT64_MAX - layout->bytes) {
      return bad_tensor(failure, "byte_offset: out of range: expected less than 2^63");
    }
    // A handle has no alignment, but the offset must be a multiple of the part size.
    const uint64_t part = (uint64_t)layout->part_bytes;
    if (tensor->byte_offset % part != 0)
      return not_aligned("byte_offset", layout->part_bytes, failure);
    out->buffer = tensor->data;
    out->offset = (int64_t)(tensor->byte_offset / part);
    return true;
  }
  const uintptr_t data = (uintptr_t)tensor->data;
  if (tensor->byte_offset > UINTPTR_MAX - data ||
      layout->bytes > UINTPTR_MAX - data - tensor->byte_offset) {
    return bad_tensor(failure,
                      "byte_offset: out of range: expected an end within the address space");
  }
  const uintptr_t first = data + (uintptr_t)tensor->byte_offset;
  const bool is_binary = layout->type->format[0] == 'w';  // its bytes need no alignment
  const uintptr_t align = is_binary ? 1 : (uintptr_t)layout->part_bytes;
  if (first % align != 0) return not_aligned("data", (int64_t)align, failure);
  out->buffer = (const void*)first;
  return true;
}

static void describe_layout(const struct tensor_layout* layout, uint32_t options,
                            struct FletchingTensorLayout* out) {
  const bool as_storage = (options & FLETCHING_TENSOR_AS_STORAGE) != 0;
  const bool is_opaque = layout->type->type_name != NULL && !as_storage;
  out->format = layout->type->format;
  out->extension = layout->type->type_name == NULL || is_opaque ? layout->type->extension : NULL;
  out->type_name = is_opaque ? layout->type->type_name : NULL;
  out->parts = is_opaque ? layout->type->parts : 1;
  out->n_values = layout->n_values;
  out->ndim = layout->ndim;
  memcpy(out->shape, layout->shape, sizeof out->shape[0] * (size_t)layout->ndim);
}

// ENOTSUP if Arrow needs a copy with another order or alignment.
static bool arrange_tensor(const DLTensor* tensor, const struct tensor_layout* layout,
                           uint32_t options, struct FletchingTensorLayout* out,
                           struct failure* failure) {
  describe_layout(layout, options, out);
  if (!place_tensor(tensor, layout, out, failure)) return false;
  if (layout->ndim == 0 || layout->n_values == 0) {
    plain_order(layout->ndim, out->order);
    return true;
  }
  int64_t cell = 1;
  for (int32_t i = 1; i < layout->ndim; ++i) cell *= layout->shape[i];
  const bool rows_follow = layout->shape[0] == 1 || layout->strides[0] == cell;
  return (find_order(layout, options, out->order) && rows_follow) ||
         fail(failure, ENOTSUP,
              "DLTensor.strides: not contiguous: expected an order that Arrow can express; hint: "
              "copy the tensor");
}

int FletchingTensorArrange(const DLTensor* tensor, uint32_t options,
                           struct FletchingTensorLayout* layout, struct FletchingMessage* message) {
  struct failure failure;
  struct tensor_layout read;
  no_failure(&failure);
  if (tensor == NULL || layout == NULL) {
    (void)fail(&failure, EINVAL, "tensor: NULL: expected a tensor and a layout");
  } else if (read_layout(tensor, options, false, &read, &failure)) {
    (void)arrange_tensor(tensor, &read, options, layout, &failure);
  }
  return report(&failure, message);
}

// --- Copy ---

// Copies the values one by one in C order.
static void gather(const unsigned char* first, const struct tensor_layout* layout,
                   unsigned char* out) {
  const size_t item = (size_t)layout->item_bytes;
  int64_t index[MOST_EXTENTS] = {0};
  int64_t at = 0;
  for (int64_t value = 0; value < layout->n_values; ++value) {
    memcpy(out + (size_t)value * item, first + at * layout->item_bytes, item);
    for (int32_t i = layout->ndim; i-- > 0;) {
      if (++index[i] < layout->shape[i]) {
        at += layout->strides[i];
        break;
      }
      at -= layout->strides[i] * (layout->shape[i] - 1);
      index[i] = 0;
    }
  }
}

// Adds the extent of one dimension before or after the first value.
static bool add_reach(const struct tensor_layout* layout, int32_t axis, int64_t* before,
                      int64_t* after) {
  int64_t reach = 0;
  int64_t* side = layout->strides[axis] < 0 ? before : after;
  if (!magnitude(layout->strides[axis], &reach) ||
      !multiply(reach, layout->shape[axis] - 1, &reach) || reach > INT64_MAX - *side) {
    return false;
  }
  *side += reach;
  return true;
}

// Whether all values that the strides reach are within the address space.
static bool fits_address_space(const DLTensor* tensor, const struct tensor_layout* layout) {
  int64_t before = 0;
  int64_t after = 1;
  for (int32_t i = 0; i < layout->ndim; ++i) {
    if (!add_reach(layout, i, &before, &after)) return false;
  }
  const uintptr_t data = (uintptr_t)tensor->data;
  if (!multiply(before, layout->item_bytes, &before) ||
      !multiply(after, layout->item_bytes, &after) || tensor->byte_offset > UINTPTR_MAX - data) {
    return false;
  }
  const uintptr_t first = data + (uintptr_t)tensor->byte_offset;
  return (uint64_t)before <= first && (uint64_t)after <= UINTPTR_MAX - first;
}

// Copies the values in C order to new memory. On failure, returns NULL and fills `failure`.
static void* copy_values(const DLTensor* tensor, const struct tensor_layout* layout,
                         struct failure* failure) {
  if (!fits_address_space(tensor, layout)) {
    (void)bad_tensor(failure, "strides: out of range: expected elements within the address space");
    return NULL;
  }
  // If size_t has 32 bits, the cast below would truncate the size.
  void* bytes = layout->bytes <= PTRDIFF_MAX ? malloc((size_t)layout->bytes) : NULL;
  if (bytes == NULL) {
    (void)fail(failure, ENOMEM, "no memory");
    return NULL;
  }
  gather((const unsigned char*)tensor->data + tensor->byte_offset, layout, bytes);
  return bytes;
}

#endif  // FLETCHING_CORE_TENSOR_LAYOUT_H

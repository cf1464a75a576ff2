// SPDX-License-Identifier: Apache-2.0
//
// Exports a device array, or the caller's memory, as a DLPack tensor.
#ifndef FLETCHING_CORE_TENSOR_EXPORT_H
#define FLETCHING_CORE_TENSOR_EXPORT_H

#include "tensor_stream.h"
#include "tensor_walk.h"

// Alignment of DLTensor.data.
#define DATA_ALIGNMENT 256

// A tensor and the array that it keeps alive, followed by its shape and strides.
struct exported_tensor {
  union {
    DLManagedTensorVersioned versioned;
    DLManagedTensor legacy;
  } managed;
  struct ArrowDeviceArray array;
  void* owner;
  void (*release)(void*);
  int64_t extents[];
};

static void destroy_exported(struct exported_tensor* exported) {
  FletchingDeviceArrayRelease(&exported->array);
  if (exported->release != NULL) exported->release(exported->owner);
  free(exported);
}

static void delete_exported(DLManagedTensorVersioned* tensor) {
  destroy_exported(tensor->manager_ctx);
}

static void delete_exported_legacy(DLManagedTensor* tensor) {
  destroy_exported(tensor->manager_ctx);
}

// Allocates room for the shape and strides, and sets the tensor's pointers to them.
static struct exported_tensor* new_exported(int32_t ndim, DLTensor* tensor,
                                            struct failure* failure) {
  struct exported_tensor* exported =
      malloc(sizeof *exported + 2 * (size_t)ndim * sizeof exported->extents[0]);
  if (exported == NULL) {
    (void)fail(failure, ENOMEM, "no memory");
    return NULL;
  }
  exported->array.array.release = NULL;
  exported->release = NULL;
  tensor->ndim = ndim;
  tensor->shape = exported->extents;
  tensor->strides = exported->extents + ndim;
  return exported;
}

static DLManagedTensorVersioned* as_versioned(struct exported_tensor* exported, uint64_t flags,
                                              const DLTensor* tensor) {
  exported->managed.versioned =
      (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                 .manager_ctx = exported,
                                 .deleter = delete_exported,
                                 .flags = flags,
                                 .dl_tensor = *tensor};
  return &exported->managed.versioned;
}

static DLManagedTensor* as_legacy(struct exported_tensor* exported, const DLTensor* tensor) {
  exported->managed.legacy = (DLManagedTensor){
      .dl_tensor = *tensor, .manager_ctx = exported, .deleter = delete_exported_legacy};
  return &exported->managed.legacy;
}

// Host-readable memory has id 0 in DLPack and any id in Arrow (DLDevice.device_id).
static bool to_dlpack_device(const struct ArrowDeviceArray* array, DLDevice* out,
                             struct failure* failure) {
  out->device_type = (DLDeviceType)array->device_type;
  out->device_id = 0;
  if (device_is_host_readable(array->device_type)) return true;
  if (array->device_id < INT32_MIN || array->device_id > INT32_MAX) {
    return fail(failure, ERANGE,
                "ArrowDeviceArray.device_id: out of range for DLPack: expected an int32, got %lld",
                (long long)array->device_id);
  }
  out->device_id = (int32_t)array->device_id;
  return true;
}

static bool point_at(const struct FletchingTensorView* view, ArrowDeviceType type, uint32_t options,
                     DLTensor* out, struct failure* failure) {
  out->data = NULL;
  out->byte_offset = 0;
  if (view->bytes == 0) return true;
  const uintptr_t address = (uintptr_t)view->buffer;
  if (!device_has_addresses(type)) {
    out->data = (void*)address;
    out->byte_offset = view->byte_offset;
    return true;
  }
  if (view->byte_offset + view->bytes > UINTPTR_MAX - address) {
    return fail(failure, EINVAL,
                "ArrowArray: offset or length out of range: expected elements within the address "
                "space; hint: fix the producer");
  }
  const uintptr_t first = address + (uintptr_t)view->byte_offset;
  if ((options & FLETCHING_TENSOR_ALIGNED) != 0) out->byte_offset = first % DATA_ALIGNMENT;
  out->data = (void*)(first - (uintptr_t)out->byte_offset);
  return true;
}

// Rejects released structs and an event that is not handled.
static bool check_exportable(const struct ArrowSchema* schema, const struct ArrowDeviceArray* array,
                             bool is_handled, struct failure* failure) {
  if (schema == NULL || array == NULL) {
    return fail(failure, EINVAL, "schema or array is NULL: expected structs");
  }
  if (schema->release == NULL || array->array.release == NULL) {
    return fail(failure, EINVAL, "schema or array is released: expected live ones");
  }
  return array->sync_event == NULL || is_handled ||
         fail(
             failure, EINVAL,
             "ArrowDeviceArray.sync_event: not NULL: expected NULL, because a tensor has no event; "
             "hint: pass the consumer's stream, or wait and pass event_handled");
}

// Creates the tensor without moving the array. On failure, returns NULL and fills `failure`.
static struct exported_tensor* export_tensor(const struct ArrowSchema* schema,
                                             const struct ArrowDeviceArray* array,
                                             const struct FletchingTensorStream* order,
                                             uint32_t options, DLTensor* tensor, uint64_t* flags,
                                             struct failure* failure) {
  struct FletchingEvent event;
  struct FletchingTensorView view;
  const bool is_handled = order != NULL || (options & FLETCHING_TENSOR_EVENT_HANDLED) != 0;
  if (!check_ordering(order, failure) || !check_exportable(schema, array, is_handled, failure) ||
      !event_of(array, &event, failure) ||
      (order != NULL && !order_behind(&event, order, failure))) {
    return NULL;
  }
  const bool has_waited = order != NULL && order->ordering == FLETCHING_ORDER_HOST;
  const bool is_readable = (options & FLETCHING_TENSOR_NO_READS) == 0 &&
                           (has_waited || array->sync_event == NULL) &&
                           device_is_host_readable(array->device_type);
  const uint32_t walk_options =
      (options & (FLETCHING_TENSOR_AS_STORAGE | FLETCHING_TENSOR_IGNORE_NULLS)) |
      (is_readable ? FLETCHING_TENSOR_HOST_READABLE : 0u);
  if (!describe_tensor(schema, &array->array, walk_options, &view, failure) ||
      !to_dlpack_device(array, &tensor->device, failure) ||
      !point_at(&view, array->device_type, options, tensor, failure)) {
    return NULL;
  }
  tensor->dtype = view.dtype;
  *flags = view.is_padded != 0 ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0;
  if ((options & FLETCHING_TENSOR_WRITABLE) == 0) *flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  if ((options & FLETCHING_TENSOR_COPIED) != 0) *flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
  struct exported_tensor* exported = new_exported(view.ndim, tensor, failure);
  if (exported == NULL) return NULL;
  const size_t size = (size_t)view.ndim * sizeof view.shape[0];
  memcpy(tensor->shape, view.shape, size);
  memcpy(tensor->strides, view.strides, size);
  return exported;
}

int FletchingTensorExport(const struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                          const struct FletchingTensorStream* stream, uint32_t options,
                          DLManagedTensorVersioned** tensor, struct FletchingMessage* message) {
  struct failure failure;
  DLTensor made;
  uint64_t flags = 0;
  no_failure(&failure);
  if (!check_result(tensor, &failure)) return report(&failure, message);
  *tensor = NULL;
  struct exported_tensor* exported =
      export_tensor(schema, array, stream, options, &made, &flags, &failure);
  if (exported != NULL) {
    FletchingDeviceArrayMove(array, &exported->array);
    *tensor = as_versioned(exported, flags, &made);
  }
  return report(&failure, message);
}

// The legacy struct has no flags, so it cannot be read-only.
static bool check_legacy(uint32_t options, struct failure* failure) {
  return (options & FLETCHING_TENSOR_WRITABLE) != 0 ||
         fail(failure, EINVAL,
              "DLManagedTensor: no flag for read-only memory; hint: export a versioned tensor, or "
              "mark the memory as writable");
}

int FletchingLegacyTensorExport(const struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                                const struct FletchingTensorStream* stream, uint32_t options,
                                DLManagedTensor** tensor, struct FletchingMessage* message) {
  struct failure failure;
  DLTensor made;
  uint64_t flags = 0;
  no_failure(&failure);
  if (!check_result(tensor, &failure)) return report(&failure, message);
  *tensor = NULL;
  struct exported_tensor* exported =
      check_legacy(options, &failure)
          ? export_tensor(schema, array, stream, options, &made, &flags, &failure)
          : NULL;
  if ((flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0 && exported != NULL) {
    (void)fail(&failure, ENOTSUP,
               "DLManagedTensor: no flag for padded values; hint: export a versioned tensor");
    free(exported);
    exported = NULL;
  }
  if (exported != NULL) {
    FletchingDeviceArrayMove(array, &exported->array);
    *tensor = as_legacy(exported, &made);
  }
  return report(&failure, message);
}

// --- Without a schema ---

static bool check_shape(const DLTensor* like, int64_t* elements, struct failure* failure) {
  bool is_empty = false;
  bool fits = true;
  *elements = 1;
  if (like == NULL || like->ndim < 0 || like->ndim > FLETCHING_TENSOR_DIMENSIONS ||
      (like->ndim > 0 && like->shape == NULL)) {
    return fail(failure, EINVAL, "DLTensor.shape: invalid: expected 0 to %d sizes",
                FLETCHING_TENSOR_DIMENSIONS);
  }
  for (int32_t i = 0; i < like->ndim; ++i) {
    if (like->shape[i] < 0) {
      return fail(failure, EINVAL, "DLTensor.shape: negative size: expected 0 or more, got %lld",
                  (long long)like->shape[i]);
    }
    is_empty = is_empty || like->shape[i] == 0;
    fits = fits && multiply(*elements, like->shape[i], elements);
  }
  if (is_empty) *elements = 0;
  return fits || is_empty ||
         fail(failure, EINVAL, "DLTensor.shape: out of range: expected fewer than 2^63 elements");
}

static bool check_flags(uint64_t flags, struct failure* failure) {
  static const uint64_t known = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED |
                                DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  return (flags & ~known) == 0 ||
         fail(failure, EINVAL, "tensor: unknown flag: expected those of version %d.%d, got %llu",
              DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION, (unsigned long long)flags);
}

int FletchingTensorCreate(const DLTensor* like, uint64_t flags, void* owner,
                          void (*release)(void* owner), DLManagedTensorVersioned** tensor,
                          struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (!check_result(tensor, &failure)) return report(&failure, message);
  *tensor = NULL;
  int64_t elements = 0;
  if (!check_shape(like, &elements, &failure) || !check_flags(flags, &failure)) {
    return report(&failure, message);
  }
  DLTensor made = *like;
  struct exported_tensor* exported = new_exported(like->ndim, &made, &failure);
  if (exported == NULL) return report(&failure, message);
  int64_t step = 1;
  for (int32_t i = like->ndim; i-- > 0;) {
    made.shape[i] = like->shape[i];
    made.strides[i] = like->strides != NULL ? like->strides[i] : step;
    step = next_step(step, like->shape[i]);
  }
  exported->owner = owner;
  exported->release = release;
  *tensor = as_versioned(exported, flags, &made);
  return report(&failure, message);
}

#endif  // FLETCHING_CORE_TENSOR_EXPORT_H

// SPDX-License-Identifier: Apache-2.0
//
// Imports a DLPack tensor as a device array.
#ifndef FLETCHING_CORE_TENSOR_IMPORT_H
#define FLETCHING_CORE_TENSOR_IMPORT_H

#include "tensor_build.h"
#include "tensor_stream.h"

// A tensor with the flags and deleter of its managing struct.
struct foreign_tensor {
  const DLTensor* tensor;
  uint64_t flags;
  void* owner;
  void (*release)(void*);
};

static void delete_tensor(void* owner) {
  DLManagedTensorVersioned* tensor = owner;
  if (tensor != NULL && tensor->deleter != NULL) tensor->deleter(tensor);
}

static void delete_legacy_tensor(void* owner) {
  DLManagedTensor* tensor = owner;
  if (tensor != NULL && tensor->deleter != NULL) tensor->deleter(tensor);
}

static bool read_versioned(DLManagedTensorVersioned* tensor, struct foreign_tensor* out,
                           struct failure* failure) {
  static const uint64_t known = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED |
                                DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  out->owner = tensor;
  out->release = delete_tensor;
  if (tensor == NULL) {
    return fail(failure, EINVAL, "tensor is NULL or moved from: expected a tensor");
  }
  if (tensor->version.major != DLPACK_MAJOR_VERSION) {
    return fail(failure, ENOTSUP,
                "DLManagedTensorVersioned.version: unknown layout: expected major version %d, got "
                "%u.%u; hint: pass max_version to the producer",
                DLPACK_MAJOR_VERSION, (unsigned)tensor->version.major,
                (unsigned)tensor->version.minor);
  }
  // A later minor version may add bits that do not change the meaning of the other fields.
  if ((tensor->flags & ~known) != 0 && tensor->version.minor <= DLPACK_MINOR_VERSION) {
    return fail(failure, ENOTSUP,
                "DLManagedTensorVersioned.flags: unknown bit: expected those of version %d.%d, got "
                "%llu; hint: fix the producer",
                DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION, (unsigned long long)tensor->flags);
  }
  out->tensor = &tensor->dl_tensor;
  out->flags = tensor->flags;
  return true;
}

static bool read_legacy(DLManagedTensor* tensor, struct foreign_tensor* out,
                        struct failure* failure) {
  out->owner = tensor;
  out->release = delete_legacy_tensor;
  if (tensor == NULL) {
    return fail(failure, EINVAL, "tensor is NULL or moved from: expected a tensor");
  }
  out->tensor = &tensor->dl_tensor;
  out->flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  return true;
}

// Results of an import.
struct imported {
  struct ArrowSchema* schema;
  struct ArrowDeviceArray* array;
  uint64_t flags;
};

// The copy is a CPU array, whatever memory the tensor was in.
static bool import_copy(const DLTensor* tensor, const struct tensor_layout* layout,
                        uint32_t options, struct imported* out, struct failure* failure) {
  const DLDevice cpu = {kDLCPU, 0};
  struct FletchingTensorLayout copied;
  void* bytes = copy_values(tensor, layout, failure);
  if (bytes == NULL) return false;
  describe_layout(layout, options, &copied);
  plain_order(layout->ndim, copied.order);
  copied.buffer = bytes;
  copied.offset = 0;
  out->flags = DLPACK_FLAG_BITMASK_IS_COPIED;
  if (wrap_tensor(&copied, cpu, options, bytes, free, out->schema, out->array, failure)) {
    return true;
  }
  free(bytes);
  return false;
}

// Imports without a copy. The array takes ownership of the tensor's memory.
static bool import_view(struct foreign_tensor* foreign, const struct FletchingTensorLayout* layout,
                        const struct FletchingStream* stream, uint32_t options,
                        struct imported* out, struct failure* failure) {
  out->flags = foreign->flags & (DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED);
  if (!wrap_tensor(layout, foreign->tensor->device, options, foreign->owner, foreign->release,
                   out->schema, out->array, failure)) {
    return false;
  }
  foreign->release = NULL;
  if (stream == NULL || record_producer(out->array, *stream, failure)) return true;
  out->array->array.release(&out->array->array);
  out->schema->release(out->schema);
  return false;
}

static bool import_tensor(struct foreign_tensor* foreign, const struct FletchingTensorStream* order,
                          uint32_t options, struct imported* out, struct failure* failure) {
  const DLTensor* tensor = foreign->tensor;
  const ArrowDeviceType type = (ArrowDeviceType)tensor->device.device_type;
  const bool is_padded = (foreign->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0;
  const struct FletchingStream* stream =
      order != NULL && order->ordering == FLETCHING_ORDER_STREAM ? &order->stream : NULL;
  struct tensor_layout layout;
  struct FletchingTensorLayout arranged;
  if (!read_layout(tensor, options, is_padded, &layout, failure)) return false;
  if (arrange_tensor(tensor, &layout, options, &arranged, failure)) {
    return import_view(foreign, &arranged, stream, options, out, failure);
  }
  if (failure->code != ENOTSUP || (options & FLETCHING_TENSOR_COPY) == 0 ||
      !device_is_host_readable(type)) {
    return false;
  }
  no_failure(failure);
  return (stream == NULL || finish_producer(type, tensor->device.device_id, *stream, failure)) &&
         import_copy(tensor, &layout, options, out, failure);
}

// Consumes the tensor. `read` is whether its managing struct was readable.
static int end_import(bool read, struct foreign_tensor* foreign,
                      const struct FletchingTensorStream* order, uint32_t options,
                      struct imported* out, uint64_t* flags, struct failure* failure,
                      struct FletchingMessage* message) {
  if (out->schema == NULL || out->array == NULL) {
    read = fail(failure, EINVAL, "schema or array is NULL: expected structs");
  } else {
    memset(out->schema, 0, sizeof *out->schema);
    memset(out->array, 0, sizeof *out->array);
  }
  if (read && check_ordering(order, failure) &&
      import_tensor(foreign, order, options, out, failure) && flags != NULL) {
    *flags = out->flags;
  }
  if (foreign->release != NULL) foreign->release(foreign->owner);
  return report(failure, message);
}

int FletchingTensorImport(DLManagedTensorVersioned* tensor,
                          const struct FletchingTensorStream* stream, uint32_t options,
                          struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                          uint64_t* flags, struct FletchingMessage* message) {
  struct failure failure;
  struct foreign_tensor foreign;
  struct imported out = {.schema = schema, .array = array};
  no_failure(&failure);
  const bool read = read_versioned(tensor, &foreign, &failure);
  return end_import(read, &foreign, stream, options, &out, flags, &failure, message);
}

int FletchingLegacyTensorImport(DLManagedTensor* tensor, const struct FletchingTensorStream* stream,
                                uint32_t options, struct ArrowSchema* schema,
                                struct ArrowDeviceArray* array, uint64_t* flags,
                                struct FletchingMessage* message) {
  struct failure failure;
  struct foreign_tensor foreign;
  struct imported out = {.schema = schema, .array = array};
  no_failure(&failure);
  const bool read = read_legacy(tensor, &foreign, &failure);
  return end_import(read, &foreign, stream, options, &out, flags, &failure, message);
}

#endif  // FLETCHING_CORE_TENSOR_IMPORT_H

// SPDX-License-Identifier: Apache-2.0
//
// DLPack's exchange table: our allocator for new tensors, and calls through a foreign table.
#ifndef FLETCHING_CORE_TENSOR_EXCHANGE_H
#define FLETCHING_CORE_TENSOR_EXCHANGE_H

#include "tensor_export.h"
#include "tensor_import.h"
#include "tensor_layout.h"

// Computes the bytes for the elements. Packed values may share a byte.
static bool count_bytes(DLDataType type, int64_t elements, uint64_t* bytes,
                        struct failure* failure) {
  const uint64_t bits = (uint64_t)type.bits * type.lanes;
  if (bits > 0 && (uint64_t)elements > (UINT64_MAX - 7) / bits) {
    return fail(failure, EINVAL, "DLTensor.shape: size out of range: expected less than 2^64 bits");
  }
  *bytes = ((uint64_t)elements * bits + 7) / 8;
  return true;
}

// Reads the type, shape and device of the prototype.
static int allocate_tensor(const DLTensor* prototype, DLManagedTensorVersioned** tensor,
                           struct FletchingMessage* message) {
  struct failure failure;
  int64_t elements = 0;
  uint64_t bytes = 0;
  void* memory = NULL;
  no_failure(&failure);
  if (!check_result(tensor, &failure)) return report(&failure, message);
  *tensor = NULL;
  if (!check_shape(prototype, &elements, &failure)) return report(&failure, message);
  if (prototype->device.device_type != kDLCPU) {
    (void)fail(&failure, ENOTSUP, "DLTensor.device: not supported: expected the CPU, got %s",
               label_of((ArrowDeviceType)prototype->device.device_type).text);
    return report(&failure, message);
  }
  if (!count_bytes(prototype->dtype, elements, &bytes, &failure)) return report(&failure, message);
  DLTensor like = *prototype;
  like.data = NULL;
  like.strides = NULL;
  like.byte_offset = 0;
  if (bytes > 0) {
    memory = bytes <= PTRDIFF_MAX - DATA_ALIGNMENT ? malloc((size_t)bytes + DATA_ALIGNMENT) : NULL;
    if (memory == NULL) {
      (void)fail(&failure, ENOMEM, "tensor: no memory");
      return report(&failure, message);
    }
    const uintptr_t skipped = DATA_ALIGNMENT - (uintptr_t)memory % DATA_ALIGNMENT;
    like.data = (unsigned char*)memory + skipped;
  }
  const int code = FletchingTensorCreate(&like, 0, memory, free, tensor, message);
  if (code != 0) free(memory);
  return code;
}

int FletchingTensorAllocate(DLTensor* prototype, DLManagedTensorVersioned** tensor,
                            void* error_context,
                            void (*set_error)(void* error_context, const char* kind,
                                              const char* text)) {
  struct FletchingMessage message;
  const int code = allocate_tensor(prototype, tensor, &message);
  if (code == 0) return 0;
  if (set_error != NULL) {
    set_error(error_context, code == ENOMEM ? "MemoryError" : "BufferError", message.text);
  }
  return -1;
}

// --- Foreign tables ---

const DLPackExchangeAPI* FletchingExchangeFind(const DLPackExchangeAPIHeader* first) {
  while (first != NULL && first->version.major != DLPACK_MAJOR_VERSION) first = first->prev_api;
  return (const DLPackExchangeAPI*)(const void*)first;
}

// SetError for the foreign allocator: copies the message into `failure`.
static void copy_error(void* error_context, const char* kind, const char* text) {
  char shown_kind[80] = "";
  char shown[800] = "";
  if (kind != NULL) copy_printable(shown_kind, sizeof shown_kind, kind);
  if (text != NULL) copy_printable(shown, sizeof shown, text);
  (void)fail(error_context, strcmp(shown_kind, "MemoryError") == 0 ? ENOMEM : EIO,
             "managed_tensor_allocator: %s: %s", shown_kind, shown);
}

static bool check_table(const DLPackExchangeAPI* api, bool has_function, const char* name,
                        struct failure* failure) {
  if (api == NULL) return fail(failure, EINVAL, "exchange: NULL: expected a table of version 1");
  return has_function || fail(failure, ENOSYS, "exchange: the table lacks %s", name);
}

int FletchingExchangeAllocate(const DLPackExchangeAPI* api, const DLTensor* prototype,
                              DLManagedTensorVersioned** tensor, struct FletchingMessage* message) {
  struct failure failure;
  int64_t elements = 0;
  no_failure(&failure);
  if (!check_result(tensor, &failure)) return report(&failure, message);
  *tensor = NULL;
  const bool has_function = api != NULL && api->managed_tensor_allocator != NULL;
  if (check_table(api, has_function, "managed_tensor_allocator", &failure) &&
      check_shape(prototype, &elements, &failure)) {
    DLTensor copy = *prototype;
    const int result = api->managed_tensor_allocator(&copy, tensor, &failure, copy_error);
    if (result != 0 || *tensor == NULL) {
      (void)fail(&failure, EIO, "managed_tensor_allocator: expected a tensor, got the result %d",
                 result);
    }
    if (failure.code != 0) {  // some implementations set an error and also return a tensor
      if (result == 0) delete_tensor(*tensor);
      *tensor = NULL;
    }
  }
  return report(&failure, message);
}

int FletchingExchangeWorkStream(const DLPackExchangeAPI* api, DLDevice device,
                                struct FletchingTensorStream* stream,
                                struct FletchingMessage* message) {
  struct failure failure;
  const ArrowDeviceType type = (ArrowDeviceType)device.device_type;
  void* handle = NULL;
  no_failure(&failure);
  const bool has_function = api != NULL && api->current_work_stream != NULL;
  if (!check_result(stream, &failure) ||
      !check_table(api, has_function, "current_work_stream", &failure)) {
    return report(&failure, message);
  }
  stream->stream = FletchingStreamOfArray(NULL);
  stream->stream.runtime = device_runtime(type);
  stream->ordering = FLETCHING_ORDER_NOTHING;
  if (device_has_no_event(type)) return report(&failure, message);
  if (!has_stream_argument(type)) {
    (void)fail(&failure, ENOTSUP,
               "current_work_stream: not supported on %s: expected CUDA or ROCm; hint: wait for "
               "the framework's work, and pass no stream",
               label_of(type).text);
    return report(&failure, message);
  }
  const int result = api->current_work_stream(device.device_type, device.device_id, &handle);
  if (result != 0) {
    (void)fail(&failure, EIO, "current_work_stream: expected a stream, got the result %d", result);
  }
  stream->ordering = FLETCHING_ORDER_STREAM;
  stream->stream.handle = handle;
  stream->stream.device_id = device.device_id;
  if (result == 0) (void)get_device_of_streams(type, &stream->stream.device_id, &failure);
  return report(&failure, message);
}

#endif  // FLETCHING_CORE_TENSOR_EXCHANGE_H

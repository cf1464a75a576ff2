// SPDX-License-Identifier: Apache-2.0
//
// CUDA streams and memory for exchanges other than device arrays.
#ifndef FLETCHING_CORE_CUDA_EXCHANGE_H
#define FLETCHING_CORE_CUDA_EXCHANGE_H

#include "fletching/cuda.h"
#include "streams.h"

void FletchingCountInherited(void) { count_inherited(); }

int FletchingStreamResolve(struct FletchingStream* stream, struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (!check_result(stream, &failure)) return report(&failure, message);
  const struct runtime* runtime = recorder_of(stream->runtime, &failure);
  if (runtime != NULL) (void)runtime->resolve(runtime, stream, &failure);
  return report(&failure, message);
}

// Runs `body` in the stream's context and in the relaxed capture mode, in which captures of other
// threads do not interfere.
static bool in_cuda_stream(const struct FletchingStream* stream,
                           bool (*body)(void* data, struct failure* failure), void* data,
                           struct failure* failure) {
  struct relaxed mode = {0};
  struct scope scope = {0};
  const bool is_done = initialize(&cuda_parts, failure) && relax(&cuda_parts, &mode, failure) &&
                       cuda_enter_stream(&scope, stream, failure) && body(data, failure);
  const bool has_left = cuda_leave(&scope, failure);
  return restore(&cuda_parts, &mode, failure) && has_left && is_done;
}

static bool create_cuda_stream(void* data, struct failure* failure) {
  return CUDA_CALL(cuStreamCreate, (data, CU_STREAM_NON_BLOCKING), failure);
}

struct stream_to_destroy {
  CUstream stream;
  bool is_tried;
};

static bool destroy_cuda_stream(void* data, struct failure* failure) {
  struct stream_to_destroy* self = data;
  self->is_tried = true;
  return CUDA_CALL(cuStreamDestroy, (self->stream), failure);
}

int FletchingCudaStreamCreate(int64_t device_id, struct FletchingStream* stream,
                              struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (!check_result(stream, &failure)) return report(&failure, message);
  *stream = (struct FletchingStream){.device_id = device_id, .runtime = FLETCHING_RUNTIME_CUDA};
  const struct FletchingStream place = *stream;
  CUstream made = NULL;
  if (in_cuda_stream(&place, create_cuda_stream, &made, &failure)) {
    stream->handle = made;
  } else if (made != NULL) {
    stream->handle = made;
    (void)FletchingCudaStreamDestroy(*stream, NULL);
    stream->handle = NULL;
  }
  return report(&failure, message);
}

int FletchingCudaStreamDestroy(struct FletchingStream stream, struct FletchingMessage* message) {
  struct failure failure;
  struct stream_to_destroy data = {stream.handle, false};
  // No other call destroys the stream: retry once if its context could not be entered.
  for (int attempt = 0; attempt < 2 && !data.is_tried; ++attempt) {
    no_failure(&failure);
    (void)in_cuda_stream(&stream, destroy_cuda_stream, &data, &failure);
  }
  return report(&failure, message);
}

static bool ask_pointer(void* value, CUpointer_attribute attribute, CUdeviceptr address,
                        struct failure* failure) {
  return CUDA_CALL(cuPointerGetAttribute, (value, attribute, address), failure);
}

// The ordinal can be queried in any context, the device address only in a context of the device.
// The memory's own context is alive; its device's primary context may be inactive. Pool memory has
// none.
static bool find_cuda_memory(CUdeviceptr address, struct FletchingCudaMemory* memory,
                             struct failure* failure) {
  uint32_t kind = 0;
  uint32_t is_managed = 0;
  int32_t device = 0;
  CUdeviceptr on_device = address;
  CUcontext own = NULL;
  struct scope scope = {0};
  if (!ask_pointer(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, failure)) return false;
  memory->device_id = device;
  const CUresult asked = cuda.cuPointerGetAttribute(&own, CU_POINTER_ATTRIBUTE_CONTEXT, address);
  if (asked == CUDA_ERROR_INVALID_VALUE || asked == CUDA_ERROR_INVALID_CONTEXT) {
    own = NULL;
  } else if (!cuda_check("cuPointerGetAttribute", asked, failure)) {
    return false;
  }
  bool is_found = cuda_enter_device(&scope, own, device, failure) &&
                  ask_pointer(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address, failure) &&
                  ask_pointer(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address, failure);
  if (is_found && kind != CU_MEMORYTYPE_HOST) {
    is_found = ask_pointer(&on_device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address, failure);
  }
  const bool has_left = cuda_leave(&scope, failure);
  if (!is_found || !has_left) return false;
  memory->address = on_device;
  memory->device_type = ARROW_DEVICE_CUDA;
  if (kind == CU_MEMORYTYPE_HOST) memory->device_type = ARROW_DEVICE_CUDA_HOST;
  if (is_managed != 0) memory->device_type = ARROW_DEVICE_CUDA_MANAGED;
  return true;
}

int FletchingCudaMemoryFind(uint64_t address, struct FletchingCudaMemory* memory,
                            struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (!check_result(memory, &failure)) return report(&failure, message);
  memset(memory, 0, sizeof *memory);
  if (address > UINTPTR_MAX) {
    fail(&failure, EINVAL, "address: expected one of this process, got %llu",
         (unsigned long long)address);
  } else if (initialize(&cuda_parts, &failure)) {
    (void)find_cuda_memory((CUdeviceptr)address, memory, &failure);
  }
  return report(&failure, message);
}

#endif  // FLETCHING_CORE_CUDA_EXCHANGE_H

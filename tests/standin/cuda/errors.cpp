// SPDX-License-Identifier: Apache-2.0
// Names of the results, from a table that the build generates from cuda.h.
#include "../engine/errors.hpp"

#include "face.hpp"

using fletching::standin::CaptureMode;
using fletching::standin::CaptureStatus;
using fletching::standin::Status;

namespace fletching::standin::face {
namespace {

constexpr Error kTable[] = {
#include "cuda_errors.inc"
};

}  // namespace

const char* const kName = "cuda";
const char* const kPrefix = "cu";
const Queues kQueues{"CUDA_DEVICE_MAX_CONNECTIONS", 8};
const char* const kEager = "CUDA_MODULE_LOADING";
constinit const std::span<const Error> kErrors(kTable);

}  // namespace fletching::standin::face

namespace {

constexpr int number(Status status) { return static_cast<int>(status); }
static_assert(number(Status::kInvalidValue) == CUDA_ERROR_INVALID_VALUE);
static_assert(number(Status::kOutOfMemory) == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(number(Status::kNotInitialized) == CUDA_ERROR_NOT_INITIALIZED);
static_assert(number(Status::kNoDevice) == CUDA_ERROR_NO_DEVICE);
static_assert(number(Status::kInvalidDevice) == CUDA_ERROR_INVALID_DEVICE);
static_assert(number(Status::kInvalidImage) == CUDA_ERROR_INVALID_IMAGE);
static_assert(number(Status::kInvalidContext) == CUDA_ERROR_INVALID_CONTEXT);
static_assert(number(Status::kNoBinaryForGpu) == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(number(Status::kInvalidHandle) == CUDA_ERROR_INVALID_HANDLE);
static_assert(number(Status::kNotFound) == CUDA_ERROR_NOT_FOUND);
static_assert(number(Status::kNotReady) == CUDA_ERROR_NOT_READY);
static_assert(number(Status::kIllegalAddress) == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(number(Status::kContextIsDestroyed) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
static_assert(number(Status::kNotSupported) == CUDA_ERROR_NOT_SUPPORTED);
static_assert(number(Status::kIllegalState) == CUDA_ERROR_ILLEGAL_STATE);
static_assert(number(Status::kCaptureUnsupported) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(number(Status::kCaptureInvalidated) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
static_assert(number(Status::kCaptureMerge) == CUDA_ERROR_STREAM_CAPTURE_MERGE);
static_assert(number(Status::kCaptureUnmatched) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
static_assert(number(Status::kCaptureUnjoined) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
static_assert(number(Status::kCaptureIsolation) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
static_assert(number(Status::kCaptureImplicit) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
static_assert(number(Status::kCapturedEvent) == CUDA_ERROR_CAPTURED_EVENT);
static_assert(number(Status::kCaptureWrongThread) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
static_assert(static_cast<int>(CaptureMode::kGlobal) == CU_STREAM_CAPTURE_MODE_GLOBAL);
static_assert(static_cast<int>(CaptureMode::kThreadLocal) == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(static_cast<int>(CaptureMode::kRelaxed) == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(static_cast<int>(CaptureStatus::kActive) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
static_assert(static_cast<int>(CaptureStatus::kInvalidated) ==
              CU_STREAM_CAPTURE_STATUS_INVALIDATED);
static_assert(number(Status::kUnknown) == CUDA_ERROR_UNKNOWN);

}  // namespace

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuGetErrorName(CUresult error, const char** text) {
  return static_cast<CUresult>(fletching::standin::call(__func__, [&] {
    const auto* found = fletching::standin::find_error(fletching::standin::number_of(error));
    fletching::standin::cuda::store(text, found != nullptr ? found->name : nullptr);
    fletching::standin::require(found != nullptr, Status::kInvalidValue);
  }));
}

FLETCHING_STANDIN_EXPORT CUresult CUDAAPI cuGetErrorString(CUresult error, const char** text) {
  return static_cast<CUresult>(fletching::standin::call(__func__, [&] {
    const auto* found = fletching::standin::find_error(fletching::standin::number_of(error));
    fletching::standin::cuda::store(text, found != nullptr ? found->text : nullptr);
    fletching::standin::require(found != nullptr, Status::kInvalidValue);
  }));
}

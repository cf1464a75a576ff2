// SPDX-License-Identifier: Apache-2.0
// Names of the results, from a table that the build generates from HIP's header.
#include "../engine/errors.hpp"

#include "face.hpp"

using fletching::standin::CaptureMode;
using fletching::standin::CaptureStatus;
using fletching::standin::find_error;
using fletching::standin::number_of;
using fletching::standin::Status;
using fletching::standin::face::Error;

namespace fletching::standin::face {
namespace {

constexpr Error kTable[] = {
#include "hip_errors.inc"
};

}  // namespace

const char* const kName = "hip";
const char* const kPrefix = "hip";
const Queues kQueues{"GPU_MAX_HW_QUEUES", 4};
const char* const kEager = nullptr;
constinit const std::span<const Error> kErrors(kTable);

}  // namespace fletching::standin::face

namespace {

constexpr int number(Status status) { return static_cast<int>(status); }
static_assert(number(Status::kInvalidValue) == hipErrorInvalidValue);
static_assert(number(Status::kOutOfMemory) == hipErrorOutOfMemory);
static_assert(number(Status::kNotInitialized) == hipErrorNotInitialized);
static_assert(number(Status::kNoDevice) == hipErrorNoDevice);
static_assert(number(Status::kInvalidDevice) == hipErrorInvalidDevice);
static_assert(number(Status::kInvalidImage) == hipErrorInvalidImage);
static_assert(number(Status::kInvalidContext) == hipErrorInvalidContext);
static_assert(number(Status::kNoBinaryForGpu) == hipErrorNoBinaryForGpu);
static_assert(number(Status::kInvalidHandle) == hipErrorInvalidHandle);
static_assert(number(Status::kNotFound) == hipErrorNotFound);
static_assert(number(Status::kNotReady) == hipErrorNotReady);
static_assert(number(Status::kIllegalAddress) == hipErrorIllegalAddress);
static_assert(number(Status::kContextIsDestroyed) == hipErrorContextIsDestroyed);
static_assert(number(Status::kNotSupported) == hipErrorNotSupported);
static_assert(number(Status::kIllegalState) == hipErrorIllegalState);
static_assert(number(Status::kCaptureUnsupported) == hipErrorStreamCaptureUnsupported);
static_assert(number(Status::kCaptureInvalidated) == hipErrorStreamCaptureInvalidated);
static_assert(number(Status::kCaptureMerge) == hipErrorStreamCaptureMerge);
static_assert(number(Status::kCaptureUnmatched) == hipErrorStreamCaptureUnmatched);
static_assert(number(Status::kCaptureUnjoined) == hipErrorStreamCaptureUnjoined);
static_assert(number(Status::kCaptureIsolation) == hipErrorStreamCaptureIsolation);
static_assert(number(Status::kCaptureImplicit) == hipErrorStreamCaptureImplicit);
static_assert(number(Status::kCapturedEvent) == hipErrorCapturedEvent);
static_assert(number(Status::kCaptureWrongThread) == hipErrorStreamCaptureWrongThread);
static_assert(static_cast<int>(CaptureMode::kGlobal) == hipStreamCaptureModeGlobal);
static_assert(static_cast<int>(CaptureMode::kThreadLocal) == hipStreamCaptureModeThreadLocal);
static_assert(static_cast<int>(CaptureMode::kRelaxed) == hipStreamCaptureModeRelaxed);
static_assert(static_cast<int>(CaptureStatus::kActive) == hipStreamCaptureStatusActive);
static_assert(static_cast<int>(CaptureStatus::kInvalidated) == hipStreamCaptureStatusInvalidated);
static_assert(number(Status::kUnknown) == hipErrorUnknown);

// As in HIP, an unknown number gets hipErrorUnknown's description. NULL if a fault is injected.
const char* text_of(const char* function, const hipError_t& error,
                    const char* const Error::* member) {
  const char* text = nullptr;
  (void)fletching::standin::call(function, [&] {
    const Error* found = find_error(number_of(error));
    if (found == nullptr) found = find_error(hipErrorUnknown);
    text = found->*member;
  });
  return text;
}

}  // namespace

FLETCHING_STANDIN_EXPORT const char* hipGetErrorName(hipError_t error) {
  return text_of(__func__, error, &Error::name);
}

FLETCHING_STANDIN_EXPORT const char* hipGetErrorString(hipError_t error) {
  return text_of(__func__, error, &Error::text);
}

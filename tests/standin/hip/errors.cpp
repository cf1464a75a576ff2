// SPDX-License-Identifier: Apache-2.0
// Names of the results, from a table that the build makes of HIP's header.
#include <array>
#include <cstring>
#include <optional>
#include <string_view>

#include "../engine/face.hpp"
#include "face.hpp"
#include "hip_errors.inc"

using fletching::standin::Status;

namespace fletching::standin::face {

const char* const kName = "hip";
const char* const kPrefix = "hip";

std::optional<int> error_number(std::string_view name) {
  for (const auto& each : kErrors) {
    if (each.name == name) return each.number;
  }
  return std::nullopt;
}

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
static_assert(number(Status::kUnknown) == hipErrorUnknown);

// As the real one: an unknown number has the name of hipErrorUnknown. NULL when it fails on demand.
const char* text_of(const char* function, const hipError_t& error,
                    const char* const Error::* member) {
  const char* text = nullptr;
  int number = 0;  // copied as bytes: callers ask about numbers that are no enumerator
  std::memcpy(&number, &error, sizeof(number));
  (void)fletching::standin::call(function, [&] {
    for (const auto& each : kErrors) {
      if (each.number == hipErrorUnknown && text == nullptr) text = each.*member;
      if (each.number == number) text = each.*member;
    }
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

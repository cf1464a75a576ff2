// SPDX-License-Identifier: Apache-2.0
//
// The environment variable FLETCHING_VALIDATE: validation of what owners import and export, in code
// that is compiled with the macro FLETCHING_VALIDATE_OWNERS. Other code has no calls.
#ifndef FLETCHING_DETAIL_HANDOVER_HPP
#define FLETCHING_DETAIL_HANDOVER_HPP

#include "fletching/version.h"

#ifdef FLETCHING_VALIDATE_OWNERS
#include <cstdint>
#include <cstdlib>

#include "fletching/abi.h"
#include "fletching/dlpack.h"
#include "fletching/handover.h"
#endif

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

#ifdef FLETCHING_VALIDATE_OWNERS
constexpr std::int32_t kind_of(const ArrowSchema* /*raw*/) { return FLETCHING_HANDOVER_SCHEMA; }
constexpr std::int32_t kind_of(const ArrowArray* /*raw*/) { return FLETCHING_HANDOVER_ARRAY; }
constexpr std::int32_t kind_of(const ArrowDeviceArray* /*raw*/) {
  return FLETCHING_HANDOVER_DEVICE_ARRAY;
}
constexpr std::int32_t kind_of(const ArrowArrayStream* /*raw*/) {
  return FLETCHING_HANDOVER_STREAM;
}
constexpr std::int32_t kind_of(const ArrowDeviceArrayStream* /*raw*/) {
  return FLETCHING_HANDOVER_DEVICE_STREAM;
}
constexpr std::int32_t kind_of(ArrowAsyncDeviceStreamHandler* const* /*raw*/) {
  return FLETCHING_HANDOVER_HANDLER;
}
constexpr std::int32_t kind_of(DLManagedTensorVersioned* const* /*raw*/) {
  return FLETCHING_HANDOVER_TENSOR;
}
constexpr std::int32_t kind_of(DLManagedTensor* const* /*raw*/) {
  return FLETCHING_HANDOVER_LEGACY_TENSOR;
}

inline const bool kIsValidated = [] {
  const char* const value = std::getenv("FLETCHING_VALIDATE");
  return value != nullptr && *value != '\0';
}();

template <class Raw>
void hand_over(std::int32_t direction, Raw* raw) noexcept {
  if (kIsValidated) [[unlikely]]
    FletchingHandOver(direction, kind_of(raw), raw);
}
#endif

/// Validates a struct that the program takes from a producer.
template <class Raw>
Raw& imported(Raw& raw) noexcept {
#ifdef FLETCHING_VALIDATE_OWNERS
  hand_over(FLETCHING_HANDOVER_IMPORT, &raw);
#endif
  return raw;
}

/// Validates a struct that the program hands to a consumer.
template <class Raw>
Raw& exported(Raw& raw) noexcept {
#ifdef FLETCHING_VALIDATE_OWNERS
  hand_over(FLETCHING_HANDOVER_EXPORT, &raw);
#endif
  return raw;
}

/// Selects the constructor for a struct that the program has made.
struct Exported {};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_HANDOVER_HPP

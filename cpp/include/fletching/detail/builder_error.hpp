// SPDX-License-Identifier: Apache-2.0
//
// Errors of the array builder and their messages.
#ifndef FLETCHING_DETAIL_BUILDER_ERROR_HPP
#define FLETCHING_DETAIL_BUILDER_ERROR_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// The first invalid request to a builder.
enum class BuilderError : uint8_t {
  kNone,
  kSetTwice,
  kNotAdded,
  kValues,
  kTooFewBuffers,
  kTooFewArrays,
  kParentNotSet,
  kHasChildren,
  kHasDictionary,
  kNegativeCount,
  kNotSet,
  kEvent,
  kCapacity,
};

/// A builder error with the required capacity if the given one was too small.
struct BuilderFault {
  BuilderError what = BuilderError::kNone;
  int64_t expected = 0;
  int64_t got = 0;
};

FLETCHING_DETAIL_COLD inline Error builder_error(BuilderFault fault) noexcept {
  constexpr const char* kTexts[] = {
      "",
      "array set twice, or not added: expected one call for each added array",
      "no such child or dictionary: expected an index in range, of a request that succeeded",
      "length, offset or null_count out of range: expected 0 or more, null_count -1 to length",
      "capacity.buffers is too small",
      "capacity.arrays is too small",
      "children or dictionary added too early: expected the array to be set before",
      "children added twice: expected one call",
      "dictionary added twice: expected one call",
      "number of children is negative: expected 0 or more",
      "array added and not set: expected every array to be set",
      "sync_event not NULL: expected NULL, because the device type has no event",
      "capacity is negative: expected 0 or more",
  };
  return error_with(EINVAL, [&] {
    std::string text("ArrayBuilder: ");
    text.append(kTexts[static_cast<size_t>(fault.what)]);
    if (fault.expected == 0) return text;
    return text.append(": expected at least " + std::to_string(fault.expected) + ", got " +
                       std::to_string(fault.got));
  });
}
FLETCHING_DETAIL_COLD inline Error builder_error(BuilderError what) noexcept {
  return builder_error(BuilderFault{what});
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_BUILDER_ERROR_HPP

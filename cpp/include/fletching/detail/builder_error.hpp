// SPDX-License-Identifier: Apache-2.0
//
// What the builder of arrays refuses, and the text of its error.
#ifndef FLETCHING_DETAIL_BUILDER_ERROR_HPP
#define FLETCHING_DETAIL_BUILDER_ERROR_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// The first request that a builder could not meet.
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

/// The same with the capacity that the request needed, where that was too small.
struct BuilderFault {
  BuilderError what = BuilderError::kNone;
  int64_t expected = 0;
  int64_t got = 0;
};

FLETCHING_DETAIL_COLD inline Error builder_error(BuilderFault fault) noexcept {
  constexpr const char* kTexts[] = {
      "",
      "an array was set twice, or one that was not added here",
      "a child or dictionary does not exist: index out of range, or its request failed",
      "length or offset is less than 0, or null_count not between -1 and length",
      "capacity.buffers is too small",
      "capacity.arrays is too small",
      "an array was given children or a dictionary before it was set",
      "an array was given children twice",
      "an array was given a dictionary twice",
      "the number of children is less than 0",
      "an array was added and not set",
      "sync_event is not NULL, and the device type has no event type",
      "the capacity is less than 0",
  };
  return error_with(EINVAL, [&] {
    std::string text("array builder: ");
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

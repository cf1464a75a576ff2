// SPDX-License-Identifier: Apache-2.0
//
// Copies of what the other side of an async stream hands over for the length of a call.
#ifndef FLETCHING_ASYNC_COPY_HPP
#define FLETCHING_ASYNC_COPY_HPP

#include <cstddef>
#include <string>

#include "fletching/metadata.hpp"
#include "fletching/result.hpp"

namespace fletching::detail {

/// The bytes of a block that is encoded as ArrowSchema.metadata; empty for NULL. Errors: EINVAL for
/// a block that cannot be read, ENOMEM.
inline Result<std::string> copy_metadata(const char* block) noexcept {
  if (block == nullptr) return std::string();
  Result<MetadataView> view = MetadataView::read(block);
  if (!view.ok()) return std::move(view).error();
  return guarded([&]() -> Result<std::string> { return std::string(view->block()); });
}

/// The length of the UTF-8 character at `at`, 0 when there is none; at the end of the text too.
inline std::size_t utf8_length(const unsigned char* at) noexcept {
  const unsigned char first = at[0];
  if (first < 0x80) return first == 0 ? 0 : 1;
  const std::size_t length = first >= 0xF0 ? 4 : (first >= 0xE0 ? 3 : 2);
  if (first < 0xC2 || first > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at[i] & 0xC0) != 0x80) return 0;  // the end of the text is one of these
  }
  const unsigned second = at[1];
  const bool too_long = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool no_character = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  return too_long || no_character ? 0 : length;
}

/// What the other side says of its error, as UTF-8: at most 64 KiB of it, '?' for every byte that
/// is none. NULL, and memory that runs out, give an empty text.
inline std::string copy_message(const char* message) noexcept {
  constexpr std::size_t kMost = std::size_t{64} * 1024;
  std::string copy;
  if (message == nullptr) return copy;
  try {
    while (*message != 0 && copy.size() < kMost) {
      const std::size_t length = utf8_length(reinterpret_cast<const unsigned char*>(message));
      copy.append(length == 0 ? "?" : message, length == 0 ? 1 : length);
      message += length == 0 ? 1 : length;
    }
  } catch (...) {
    copy.clear();
  }
  return copy;
}

}  // namespace fletching::detail

#endif  // FLETCHING_ASYNC_COPY_HPP

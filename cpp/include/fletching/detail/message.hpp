// SPDX-License-Identifier: Apache-2.0
//
// Writes error messages into C buffers.
#ifndef FLETCHING_DETAIL_MESSAGE_HPP
#define FLETCHING_DETAIL_MESSAGE_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "fletching/detail/text.hpp"
#include "fletching/message.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Writes one line of valid UTF-8: replaces invalid bytes with U+FFFD and control characters with
/// spaces, and truncates at a character boundary. Does not allocate. `message` may be NULL.
inline void write_message(FletchingMessage* message, std::string_view text) noexcept {
  if (message == nullptr) return;
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    std::string_view character = length == 0 ? "\xEF\xBF\xBD" : text.substr(0, length);
    const auto first = static_cast<std::uint8_t>(character.front());
    if (first < 0x20 || first == 0x7F) character = " ";
    if (used + character.size() >= sizeof message->text) break;
    std::memcpy(message->text + used, character.data(), character.size());
    used += character.size();
    text.remove_prefix(length == 0 ? 1 : length);
  }
  message->text[used] = '\0';
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_MESSAGE_HPP

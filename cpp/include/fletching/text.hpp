// SPDX-License-Identifier: Apache-2.0
//
// Foreign text in our own messages.
#ifndef FLETCHING_TEXT_HPP
#define FLETCHING_TEXT_HPP

#include <cstddef>
#include <string>
#include <string_view>

namespace fletching::detail {

/// How much of a foreign text a message shows.
inline constexpr std::size_t kQuotedBytes = 64;

/// `text` in quotes, fit for a message whatever is in it: printable ASCII only, and cut when it is
/// long. Throws std::bad_alloc.
inline std::string quote(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text.substr(0, kQuotedBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    } else {
      quoted.append("\\x").append(1, digits[byte >> 4U]).append(1, digits[byte & 15U]);
    }
  }
  return quoted + (text.size() > kQuotedBytes ? "...\"" : "\"");
}

}  // namespace fletching::detail

#endif  // FLETCHING_TEXT_HPP

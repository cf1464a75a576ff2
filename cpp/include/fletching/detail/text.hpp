// SPDX-License-Identifier: Apache-2.0
//
// Sanitizes foreign text for output: valid UTF-8 without NULs and of bounded length.
#ifndef FLETCHING_DETAIL_TEXT_HPP
#define FLETCHING_DETAIL_TEXT_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "fletching/result.hpp"
#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Maximum length of a foreign string in bytes; longer ones are truncated.
inline constexpr std::size_t kMaxText = 4096;

/// Returns the size in bytes of the UTF-8 character at the start of `text`, or 0 if it is not
/// valid.
constexpr std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  if (text.empty()) return 0;
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) > 0x9F;
  const bool too_high = first == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || too_high ? 0 : length;
}

/// Returns the text with "\xNN" for each invalid byte and control character other than a line feed
/// or tab. Texts longer than kMaxText are truncated and end with "...".
inline std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const bool cut = text.size() > kMaxText;
  if (cut) {
    // Do not split a character.
    std::size_t end = kMaxText;
    while (end > kMaxText - 4 && (static_cast<std::uint8_t>(text[end]) & 0xC0) == 0x80) --end;
    text = text.substr(0, end);
  }
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const char first = text.front();
    const bool control = (static_cast<std::uint8_t>(first) < 0x20 || first == 0x7F) &&
                         first != '\n' && first != '\t';
    const std::size_t length = control ? 0 : utf8_length(text);
    if (length > 0) {
      result.append(text.substr(0, length));
    } else {
      const auto byte = static_cast<std::uint8_t>(first);
      result.append({'\\', 'x', kDigits[byte >> 4], kDigits[byte & 0xF]});
    }
    text.remove_prefix(length > 0 ? length : 1);
  }
  if (cut) result.append("...");
  return result;
}

/// Overload for a C string. Returns an empty string for NULL.
inline std::string printable(const char* text) {
  if (text == nullptr) return {};
  // The string may lack its NUL: read only one byte past the limit, to detect a longer string.
  const void* end = std::memchr(text, '\0', kMaxText + 1);
  return printable(
      end == nullptr
          ? std::string_view(text, kMaxText + 1)
          : std::string_view(text, static_cast<std::size_t>(static_cast<const char*>(end) - text)));
}

/// Returns a printable error for an error of foreign code. A non-positive code becomes EIO and the
/// message ends with "(code N)". The message is empty if out of memory.
inline Error foreign_error(int code, const char* message) noexcept {
  Result<std::string> text = guarded([&]() -> Result<std::string> {
    std::string copy = printable(message);
    if (code > 0) return copy;
    copy.append(copy.empty() ? "(code " : " (code ").append(std::to_string(code)).append(")");
    return copy;
  });
  return {code, text.ok() ? *std::move(text) : std::string()};
}

/// Maximum number of bytes of a foreign string quoted in a message.
inline constexpr std::size_t kQuotedBytes = 64;

/// Returns `text` in quotes for a message: printable ASCII only, truncated if long. Throws
/// std::bad_alloc.
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

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_TEXT_HPP

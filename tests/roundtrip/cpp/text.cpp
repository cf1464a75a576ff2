#include "text.hpp"

#include <cstring>

namespace fletching::roundtrip {
namespace {

unsigned char byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

struct Range {
  unsigned char lowest;
  unsigned char highest;
};

/// The range of the byte after `lead`: narrower where the character would be overlong, a surrogate,
/// or past U+10FFFF.
Range second_byte(unsigned char lead) {
  switch (lead) {
    case 0xE0:
      return {0xA0, 0xBF};
    case 0xED:
      return {0x80, 0x9F};
    case 0xF0:
      return {0x90, 0xBF};
    case 0xF4:
      return {0x80, 0x8F};
    default:
      return {0x80, 0xBF};
  }
}

/// Bytes of the character at the front of `text`, which is not empty; 0 when there is none.
std::size_t character_size(std::string_view text) {
  const unsigned char lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  std::size_t size = 2;
  if (lead >= 0xE0) ++size;
  if (lead >= 0xF0) ++size;
  if (text.size() < size) return 0;
  const auto [lowest, highest] = second_byte(lead);
  if (byte_at(text, 1) < lowest || byte_at(text, 1) > highest) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return 0;
  }
  return size;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const bool control = size == 1 && (byte_at(text, 0) < 0x20 || text[0] == 0x7F);
    if (size == 0) {
      valid += "\uFFFD";
    } else if (control) {
      valid += ' ';
    } else {
      valid += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return valid;
}

std::string printable(const char* text) {
  return text == nullptr ? "(NULL)" : printable(std::string_view(text));
}

void write_message(std::string_view text, char* buffer, std::size_t capacity) noexcept {
  if (buffer == nullptr || capacity == 0) return;
  std::size_t used = 0;
  while (used < text.size()) {
    const std::size_t size = character_size(text.substr(used));
    if (size == 0 || used + size >= capacity) break;
    used += size;
  }
  if (used > 0) std::memcpy(buffer, text.data(), used);
  buffer[used] = '\0';
}

}  // namespace fletching::roundtrip

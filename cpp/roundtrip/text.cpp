#include "text.hpp"

#include <cstring>

#include "fletching/detail/text.hpp"

namespace fletching::roundtrip {
namespace {

unsigned char byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t size = fletching::detail::utf8_length(text);
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
    const std::size_t size = fletching::detail::utf8_length(text.substr(used));
    if (size == 0 || used + size >= capacity) break;
    used += size;
  }
  if (used > 0) std::memcpy(buffer, text.data(), used);
  buffer[used] = '\0';
}

}  // namespace fletching::roundtrip

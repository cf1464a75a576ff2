#include "message.hpp"

#include <cstdint>
#include <cstring>

namespace fletching::producer {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// The bytes of the character that `text` begins with, or 0 when it begins with none.
size_t CharacterSize(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(byte(i))) return 0;
  }
  const unsigned char second = byte(1);
  if (lead == 0xE0 && second < 0xA0) return 0;   // longer than it needs to be
  if (lead == 0xED && second >= 0xA0) return 0;  // half of a surrogate pair
  if (lead == 0xF0 && second < 0x90) return 0;   // longer than it needs to be
  if (lead == 0xF4 && second >= 0x90) return 0;  // above U+10FFFF
  return size;
}

bool IsControl(std::string_view character) {
  const auto byte = static_cast<unsigned char>(character[0]);
  return byte < 0x20 || byte == 0x7F;
}

}  // namespace

void WriteMessage(FletchingMessage* message, std::string_view text) noexcept {
  if (message == nullptr) return;
  size_t used = 0;
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    std::string_view character = size == 0 ? kReplacement : text.substr(0, size);
    if (IsControl(character)) character = " ";
    if (used + character.size() >= sizeof(message->text)) break;
    std::memcpy(message->text + used, character.data(), character.size());
    used += character.size();
    text.remove_prefix(size == 0 ? 1 : size);
  }
  message->text[used] = '\0';
}

std::string ForeignText(const char* text) {
  if (text == nullptr) return "(NULL)";
  return std::string(text, strnlen(text, sizeof(FletchingMessage::text)));
}

bool IsUtf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace fletching::producer

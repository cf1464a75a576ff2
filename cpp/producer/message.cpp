#include "message.hpp"

#include <cstring>

#include "fletching/detail/message.hpp"

namespace fletching::producer {

void write_message(FletchingMessage* message, std::string_view text) noexcept {
  detail::write_message(message, text);
}

std::string foreign_text(const char* text) {
  if (text == nullptr) return "(NULL)";
  return std::string(text, strnlen(text, sizeof(FletchingMessage::text)));
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const size_t size = detail::utf8_length(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace fletching::producer

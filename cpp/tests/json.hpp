// Reads JSON that is known to be good, for test data. A mistake in it throws std::runtime_error.
#ifndef FLETCHING_TESTS_JSON_HPP
#define FLETCHING_TESTS_JSON_HPP

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fletching::testing {

struct Json {
  enum class Kind { kNull, kBoolean, kNumber, kText, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;               // of a text, or the digits of a number
  std::vector<std::string> keys;  // of an object; their values are the elements
  std::vector<Json> elements;     // of an array or an object

  [[nodiscard]] const Json* find(std::string_view key) const {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == key) return &elements[i];
    }
    return nullptr;
  }

  [[nodiscard]] const Json& at(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr) throw std::runtime_error("no " + std::string(key));
    return *value;
  }
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  Json read() {
    Json value;
    switch (peek()) {
      case '{':
        value.kind = Json::Kind::kObject;
        read_list('}', [&] {
          value.keys.push_back(read_text());
          expect(":");
          value.elements.push_back(read());
        });
        return value;
      case '[':
        value.kind = Json::Kind::kArray;
        read_list(']', [&] { value.elements.push_back(read()); });
        return value;
      case '"':
        value.kind = Json::Kind::kText;
        value.text = read_text();
        return value;
      case 'n':
        expect("null");
        return value;
      case 't':
      case 'f':
        value.kind = Json::Kind::kBoolean;
        value.boolean = peek() == 't';
        expect(value.boolean ? "true" : "false");
        return value;
      default:
        value.kind = Json::Kind::kNumber;
        value.text = take(rest_.find_first_not_of("+-.0123456789eE"));
        if (value.text.empty()) fail("a value");
        return value;
    }
  }

 private:
  template <typename ReadEntry>
  void read_list(char end, const ReadEntry& read_entry) {
    take(1);
    if (peek() == end) {
      take(1);
      return;
    }
    while (true) {
      read_entry();
      if (peek() == end) break;
      expect(",");
    }
    take(1);
  }

  std::string read_text() {
    expect("\"");
    std::string text;
    while (!rest_.empty() && rest_.front() != '"') {
      const char c = take(1)[0];
      text += c == '\\' ? read_escape() : std::string(1, c);
    }
    expect("\"");
    return text;
  }

  std::string read_escape() {
    const char c = take(1)[0];
    if (c == 'n') return "\n";
    if (c != 'u') return std::string(1, c);
    const auto code = static_cast<std::uint32_t>(std::stoul(take(4), nullptr, 16));
    if (code < 0x80) return std::string(1, static_cast<char>(code));
    if (code >= 0x800) fail("a character below U+0800");
    return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
  }

  char peek() {
    const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }

  void expect(std::string_view text) {
    peek();
    if (!rest_.starts_with(text)) fail(text);
    rest_.remove_prefix(text.size());
  }

  std::string take(std::size_t length) {
    if (length > rest_.size()) fail("more");
    std::string text(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return text;
  }

  [[noreturn]] void fail(std::string_view wanted) const {
    throw std::runtime_error("JSON: " + std::string(wanted) + " is missing before '" +
                             std::string(rest_.substr(0, 40)) + "'");
  }

  std::string_view rest_;
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_JSON_HPP

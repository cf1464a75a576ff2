// The dump of an exported struct (tests/roundtrip/README.md), and its comparison with a consumer's.
#ifndef FLETCHING_PRODUCER_DUMP_HPP
#define FLETCHING_PRODUCER_DUMP_HPP

#include <cstdint>
#include <string>
#include <string_view>

namespace fletching::producer {

// The lines of one struct and of everything below it. Made while the struct is exported, from what
// is put into it: no struct is read.
class Dump {
 public:
  // "schema.children[0]"; empty for a device array.
  explicit Dump(std::string_view path) : begin_(path) {
    if (!begin_.empty()) begin_ += '.';
  }

  void number(std::string_view field, int64_t value) { line(field, std::to_string(value)); }
  void address(std::string_view field, const void* value);
  // Empty: the pointer is NULL.
  void bytes(std::string_view field, std::string_view value);
  void add(const Dump& below) { text_ += below.text_; }

  const std::string& text() const { return text_; }
  // "schema.children[0].dictionary"
  std::string path_of(std::string_view field) const { return begin_ + std::string(field); }

 private:
  void line(std::string_view field, const std::string& value);

  std::string begin_;
  std::string text_;
};

// "children[2]"
std::string element(std::string_view field, size_t index);

// Compares with what was exported, and returns the number of lines. Throws an Error of EBADMSG that
// names the first difference.
int64_t verify_dump(std::string_view dump);

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_DUMP_HPP

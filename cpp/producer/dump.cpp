#include "dump.hpp"

#include <charconv>

#include "export.hpp"
#include "message.hpp"
#include "registry.hpp"

namespace fletching::producer {
namespace {

std::string hex(uintptr_t value, int width = 1) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  for (; value != 0 || width > 0; value >>= 4, --width) {
    digits.insert(digits.begin(), kDigits[value & 15]);
  }
  return digits;
}

// Lines of a text, one by one.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  std::string_view next() {
    const std::string_view line = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(rest_.size(), line.size() + 1));
    return line;
  }

 private:
  std::string_view rest_;
};

// What was exported in the struct whose private_data is in the line "schema.private_data=0x1f".
std::string exported(Kind kind, const std::string& field, std::string_view dump) {
  const std::string begin = field + "=";
  for (Lines lines(dump); !lines.at_end();) {
    const std::string_view line = lines.next();
    if (!line.starts_with(begin)) continue;
    const std::string_view value = line.substr(begin.size());
    uintptr_t number = 0;
    if (value.starts_with("0x")) {
      std::from_chars(value.data() + 2, value.data() + value.size(), number, 16);
    }
    std::string text = dump_of(kind, reinterpret_cast<const void*>(number));
    if (!text.empty()) return text;
    fail(EBADMSG,
         "dump: " + field + ": expected the value of a live export, got " + std::string(value));
  }
  fail(EBADMSG, "dump: no line has " + field + ": expected the value of a live export");
}

// Two of them fit into a message. The field and the value are at the end.
std::string shortened(const std::string& line) {
  constexpr size_t kKept = 200;
  if (line.size() <= 2 * kKept) return line;
  return line.substr(0, kKept) + "..." + line.substr(line.size() - kKept);
}

std::string next_of(Lines& lines) {
  return lines.at_end() ? "the end of the dump" : std::string(lines.next());
}

}  // namespace

void Dump::line(std::string_view field, const std::string& value) {
  text_ += path_of(field) + "=" + value + "\n";
}

void Dump::address(std::string_view field, const void* value) {
  line(field, "0x" + hex(reinterpret_cast<uintptr_t>(value)));
}

void Dump::bytes(std::string_view field, std::string_view value) {
  if (value.empty()) return line(field, "NULL");
  std::string quoted = "\"";
  for (const char c : value) {
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '%';
    quoted += plain ? std::string(1, c) : "%" + hex(static_cast<uint8_t>(c), 2);
  }
  line(field, quoted + '"');
}

std::string element(std::string_view field, size_t index) {
  return std::string(field) + "[" + std::to_string(index) + "]";
}

int64_t verify_dump(std::string_view dump) {
  std::string text = exported(Kind::kSchema, "schema.private_data", dump);
  text += exported(Kind::kArray, "array.private_data", dump);
  Lines seen(dump);
  Lines expected(text);
  int64_t compared = 0;
  while (!seen.at_end() || !expected.at_end()) {
    ++compared;
    const std::string wanted = next_of(expected);
    const std::string got = next_of(seen);
    if (got == wanted) continue;
    fail(EBADMSG, "dump: line " + std::to_string(compared) + " differs: expected " +
                      shortened(wanted) + ", got " + shortened(got));
  }
  return compared;
}

}  // namespace fletching::producer

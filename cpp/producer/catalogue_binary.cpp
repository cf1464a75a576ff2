// Text and binary cases in every layout.
#include "builders.hpp"

namespace fletching::producer {
namespace {

constexpr char kTwelve[] = "exactly 12 b";
constexpr char kLong[] = "longer than twelve bytes";
constexpr char kOther[] = "another one in the second buffer";
constexpr char kThird[] = "and a third, in the first again";

const std::string kZeros(3, '\0');  // contains NUL bytes, which no C string can

}  // namespace

NamedNodes binary_cases() {
  const Values<std::string> texts = {"a", "", kNull, "h\u00e9llo", "\U0001F3F9"};
  const Values<std::string> blobs = {"\x01\xFF", "", kNull, kZeros, "\x80\x81\x82\x83"};
  const Values<std::string> views = {"short", kLong, kNull, kOther, "", kTwelve, kThird};
  NamedNodes cases;
  cases.emplace_back("utf8", text("u", texts));
  cases.emplace_back("large_utf8", large_text("U", {"large", kNull, "", "\u77e2"}));
  cases.emplace_back("binary", text("z", blobs));
  cases.emplace_back("large_binary", large_text("Z", blobs));
  cases.emplace_back("fixed_size_binary",
                     fixed_size_binary("w:3", {"abc", kNull, kZeros, "\x80yz"}));
  cases.emplace_back("utf8_view", view_array("vu", 2, views));
  cases.emplace_back("binary_view",
                     view_array("vz", 2, {"\xFF\xFE", kLong, kNull, kZeros, kOther}));
  cases.emplace_back("utf8_view_inline", view_array("vu", 0, {"short", kNull, "", kTwelve}));
  cases.emplace_back("utf8_slice", shorten(1, skip(1, text("u", texts))));
  cases.emplace_back("large_binary_slice", shorten(1, skip(1, large_text("Z", blobs))));
  cases.emplace_back(
      "fixed_size_binary_slice",
      shorten(1, skip(2, fixed_size_binary("w:2", {"ab", kNull, "cd", kNull, "ef"}))));
  cases.emplace_back("utf8_view_slice", shorten(2, skip(2, view_array("vu", 2, views))));
  return cases;
}

}  // namespace fletching::producer

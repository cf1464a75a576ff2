// Cases of text and binary, in every layout.
#include "builders.hpp"

namespace fletching::producer {
namespace {

constexpr char kTwelve[] = "exactly 12 b";
constexpr char kLong[] = "longer than twelve bytes";
constexpr char kOther[] = "another one in the second buffer";
constexpr char kThird[] = "and a third, in the first again";

const std::string kZeros(3, '\0');  // bytes that no C string holds

}  // namespace

NamedNodes BinaryCases() {
  const Values<std::string> texts = {"a", "", kNull, "h\u00e9llo", "\U0001F3F9"};
  const Values<std::string> blobs = {"\x01\xFF", "", kNull, kZeros, "\x80\x81\x82\x83"};
  const Values<std::string> views = {"short", kLong, kNull, kOther, "", kTwelve, kThird};
  NamedNodes cases;
  cases.emplace_back("utf8", Text("u", texts));
  cases.emplace_back("large_utf8", LargeText("U", {"large", kNull, "", "\u77e2"}));
  cases.emplace_back("binary", Text("z", blobs));
  cases.emplace_back("large_binary", LargeText("Z", blobs));
  cases.emplace_back("fixed_size_binary", FixedSizeBinary("w:3", {"abc", kNull, kZeros, "\x80yz"}));
  cases.emplace_back("utf8_view", Views("vu", 2, views));
  cases.emplace_back("binary_view", Views("vz", 2, {"\xFF\xFE", kLong, kNull, kZeros, kOther}));
  cases.emplace_back("utf8_view_inline", Views("vu", 0, {"short", kNull, "", kTwelve}));
  cases.emplace_back("utf8_slice", Shorten(1, Skip(1, Text("u", texts))));
  cases.emplace_back("large_binary_slice", Shorten(1, Skip(1, LargeText("Z", blobs))));
  cases.emplace_back("fixed_size_binary_slice",
                     Shorten(1, Skip(2, FixedSizeBinary("w:2", {"ab", kNull, "cd", kNull, "ef"}))));
  cases.emplace_back("utf8_view_slice", Shorten(2, Skip(2, Views("vu", 2, views))));
  return cases;
}

}  // namespace fletching::producer

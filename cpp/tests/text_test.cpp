// SPDX-License-Identifier: Apache-2.0
#include "fletching/detail/text.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fletching::testing {
namespace {

using detail::kMaxText;
using detail::printable;

TEST(Text, KeepsUtf8) {
  EXPECT_EQ(printable("plain\n\ttext"), "plain\n\ttext");
  const std::string_view several =
      "\xC2\x80 \xE0\xA0\x80 \xED\x9F\xBF \xEF\xBF\xBF \xF4\x8F\xBF\xBF";
  EXPECT_EQ(printable(several), several);
  EXPECT_EQ(printable(""), "");
}

TEST(Text, EscapesNonUtf8) {
  EXPECT_EQ(printable("\xC3("), "\\xc3(");                  // no continuation byte
  EXPECT_EQ(printable("\xC0\xAF"), "\\xc0\\xaf");           // overlong, two bytes
  EXPECT_EQ(printable("\xE0\x80\xAF"), "\\xe0\\x80\\xaf");  // overlong, three bytes
  EXPECT_EQ(printable("\xF0\x80\x80\xAF"), "\\xf0\\x80\\x80\\xaf");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(printable("\xE2\x82"), "\\xe2\\x82");                    // truncated
  EXPECT_EQ(printable("\x80\xFF"), "\\x80\\xff");
  EXPECT_EQ(printable("\x1B[0m\x7F\r"), "\\x1b[0m\\x7f\\x0d");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(Text, ReadsNullAsEmpty) { EXPECT_EQ(printable(static_cast<const char*>(nullptr)), ""); }

TEST(Text, TruncatesBetweenCharacters) {
  const std::string fits(kMaxText, 'x');
  EXPECT_EQ(printable(fits.c_str()), fits);
  EXPECT_EQ(printable((fits + "y").c_str()), fits + "...");
  for (const std::string_view split : {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}) {
    for (std::size_t kept = 1; kept < split.size(); ++kept) {
      const std::string before(kMaxText - kept, 'x');
      EXPECT_EQ(printable((before + std::string(split)).c_str()), before + "...") << kept;
    }
  }
}

TEST(Text, StopsReadingAtLimit) {
  const std::vector<char> without_nul(kMaxText + 1, 'x');  // a sanitizer detects reads past the end
  EXPECT_EQ(printable(without_nul.data()), std::string(kMaxText, 'x') + "...");
}

}  // namespace
}  // namespace fletching::testing

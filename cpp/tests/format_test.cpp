// All format strings of the C data interface, and invalid ones.
#include "fletching/format.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

namespace fletching::testing {
namespace {

Format parsed(std::string_view text) {
  Result<Format> format = parse_format(text);
  if (!format) ADD_FAILURE() << format.error().message();
  return format ? *format : Format{};
}

std::string refused(std::string_view text) {
  const Result<Format> format = parse_format(text);
  if (format) ADD_FAILURE() << detail::quote(text) << " was taken";
  if (format) return "";
  EXPECT_EQ(format.error().code(), EINVAL);
  return format.error().message();
}

struct Row {
  std::string_view text;
  TypeId id;
  std::int64_t bit_width;
  std::int32_t n_buffers;
  std::int32_t n_children;
};

constexpr Row kPublished[] = {
    {"n", TypeId::kNull, 0, 0, 0},
    {"b", TypeId::kBool, 1, 2, 0},
    {"c", TypeId::kInt8, 8, 2, 0},
    {"C", TypeId::kUInt8, 8, 2, 0},
    {"s", TypeId::kInt16, 16, 2, 0},
    {"S", TypeId::kUInt16, 16, 2, 0},
    {"i", TypeId::kInt32, 32, 2, 0},
    {"I", TypeId::kUInt32, 32, 2, 0},
    {"l", TypeId::kInt64, 64, 2, 0},
    {"L", TypeId::kUInt64, 64, 2, 0},
    {"e", TypeId::kFloat16, 16, 2, 0},
    {"f", TypeId::kFloat32, 32, 2, 0},
    {"g", TypeId::kFloat64, 64, 2, 0},
    {"z", TypeId::kBinary, 0, 3, 0},
    {"Z", TypeId::kLargeBinary, 0, 3, 0},
    {"vz", TypeId::kBinaryView, 0, 2, 0},
    {"u", TypeId::kString, 0, 3, 0},
    {"U", TypeId::kLargeString, 0, 3, 0},
    {"vu", TypeId::kStringView, 0, 2, 0},
    {"d:19,10", TypeId::kDecimal, 128, 2, 0},
    {"d:9,2,32", TypeId::kDecimal, 32, 2, 0},
    {"d:18,2,64", TypeId::kDecimal, 64, 2, 0},
    {"d:76,-2,256", TypeId::kDecimal, 256, 2, 0},
    {"w:42", TypeId::kFixedSizeBinary, 336, 2, 0},
    {"tdD", TypeId::kDate32, 32, 2, 0},
    {"tdm", TypeId::kDate64, 64, 2, 0},
    {"tts", TypeId::kTime32, 32, 2, 0},
    {"ttm", TypeId::kTime32, 32, 2, 0},
    {"ttu", TypeId::kTime64, 64, 2, 0},
    {"ttn", TypeId::kTime64, 64, 2, 0},
    {"tss:", TypeId::kTimestamp, 64, 2, 0},
    {"tsm:", TypeId::kTimestamp, 64, 2, 0},
    {"tsu:Europe/Berlin", TypeId::kTimestamp, 64, 2, 0},
    {"tsn:+01:00", TypeId::kTimestamp, 64, 2, 0},
    {"tDs", TypeId::kDuration, 64, 2, 0},
    {"tDm", TypeId::kDuration, 64, 2, 0},
    {"tDu", TypeId::kDuration, 64, 2, 0},
    {"tDn", TypeId::kDuration, 64, 2, 0},
    {"tiM", TypeId::kIntervalMonths, 32, 2, 0},
    {"tiD", TypeId::kIntervalDayTime, 64, 2, 0},
    {"tin", TypeId::kIntervalMonthDayNano, 128, 2, 0},
    {"+l", TypeId::kList, 0, 2, 1},
    {"+L", TypeId::kLargeList, 0, 2, 1},
    {"+vl", TypeId::kListView, 0, 3, 1},
    {"+vL", TypeId::kLargeListView, 0, 3, 1},
    {"+w:123", TypeId::kFixedSizeList, 0, 1, 1},
    {"+s", TypeId::kStruct, 0, 1, Format::kAnyNumber},
    {"+m", TypeId::kMap, 0, 2, 1},
    {"+ud:0,5", TypeId::kDenseUnion, 0, 2, 2},
    {"+us:7", TypeId::kSparseUnion, 0, 1, 1},
    {"+us:", TypeId::kSparseUnion, 0, 1, 0},
    {"+r", TypeId::kRunEndEncoded, 0, 0, 2},
};

TEST(Format, ParsesEveryPublishedFormat) {
  for (const Row& row : kPublished) {
    const Format format = parsed(row.text);
    EXPECT_EQ(format.id, row.id) << row.text;
    EXPECT_EQ(format.bit_width, row.bit_width) << row.text;
    EXPECT_EQ(format.n_buffers, row.n_buffers) << row.text;
    EXPECT_EQ(format.n_children, row.n_children) << row.text;
  }
}

TEST(Format, ParsesParameters) {
  EXPECT_EQ(parsed("d:19,-10").precision, 19);
  EXPECT_EQ(parsed("d:19,-10").scale, -10);
  EXPECT_EQ(parsed("w:42").size, 42);
  EXPECT_EQ(parsed("+w:0").size, 0);
  EXPECT_EQ(parsed("+w:2147483647").size, INT32_MAX);
  EXPECT_EQ(parsed("+ud:0,5,127").type_ids, "0,5,127");
  EXPECT_EQ(parsed("tsu:Europe/Berlin").timezone, "Europe/Berlin");
  EXPECT_EQ(parsed("tsu:").timezone, "");
}

TEST(Format, ParsesUnits) {
  EXPECT_EQ(parsed("tts").unit, TimeUnit::kSecond);
  EXPECT_EQ(parsed("tDm").unit, TimeUnit::kMilli);
  EXPECT_EQ(parsed("tsu:").unit, TimeUnit::kMicro);
  EXPECT_EQ(parsed("tsn:").unit, TimeUnit::kNano);
  EXPECT_EQ(parsed("i").unit, TimeUnit::kNone);
}

TEST(Format, ClassifiesIntegersAndViews) {
  constexpr std::string_view integers = "cCsSiIlL";
  for (const Row& row : kPublished) {
    EXPECT_EQ(parsed(row.text).is_integer(),
              row.text.size() == 1 && integers.find(row.text) != std::string_view::npos)
        << row.text;
    EXPECT_EQ(parsed(row.text).is_view(), row.text == "vz" || row.text == "vu") << row.text;
  }
}

TEST(Format, ErrorEscapesUnprintableBytes) {
  const std::string text = refused(std::string("\xff\0\"q", 4));
  EXPECT_NE(text.find(R"("\xff\x00\"q")"), std::string::npos) << text;
  const std::string longest = refused(std::string(1U << 20U, 'x'));
  EXPECT_LT(longest.size(), 200U);
}

TEST(Format, RejectsNull) {
  const Result<Format> format = parse_format(static_cast<const char*>(nullptr));
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().code(), EINVAL);
  EXPECT_NE(format.error().message().find("NULL"), std::string::npos);
}

TEST(Rules, FormatKnown) {
  for (const std::string_view text : {"",
                                      "x",
                                      "ii",
                                      "i ",
                                      "v",
                                      "t",
                                      "td",
                                      "tdd",
                                      "tt",
                                      "tiX",
                                      "+",
                                      "+x",
                                      "+w",
                                      "+w:",
                                      "+w:-1",
                                      "+w:1,",
                                      "+w:1,2",
                                      "+w:2147483648",
                                      "w:",
                                      "w:1x",
                                      "w:99999999999999999999",
                                      "d",
                                      "d:",
                                      "d:1",
                                      "d:1,",
                                      "d:0,0",
                                      "d:39,0",
                                      "d:10,0,32",
                                      "d:19,0,64",
                                      "d:77,0,256",
                                      "d:1,0,16",
                                      "d:1,0,",
                                      "d:1,0,128,",
                                      "d:1,0,128,1",
                                      "d:a,0",
                                      "d:1,b",
                                      "+ud",
                                      "+ud:128",
                                      "+ud:-1",
                                      "+ud:1,",
                                      "+ud:,",
                                      "+ud:1,1",
                                      "+us:a",
                                      "+ux:1",
                                      "ts",
                                      "tsx:",
                                      "tDx",
                                      "tsq:UTC"}) {
    refused(text);
  }
}

TEST(Rules, FormatTimestampColon) {
  EXPECT_NE(refused("tss").find("colon"), std::string::npos);
  EXPECT_NE(refused("tsuUTC").find("colon"), std::string::npos);
}

TEST(Rules, FormatTimezoneUnquoted) {
  EXPECT_NE(refused("tss:\"UTC\"").find("quotes"), std::string::npos);
  EXPECT_NE(refused("tss:'UTC'").find("quotes"), std::string::npos);
}

}  // namespace
}  // namespace fletching::testing

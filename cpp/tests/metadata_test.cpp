// Schema metadata: encoding, reading in place, and rejection of malformed blocks.
#include "fletching/metadata.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"

namespace fletching {
namespace {

using std::string_literals::operator""s;
using testing::code_of;
using testing::fail_each_allocation;
using testing::Injection;

static_assert(std::ranges::forward_range<MetadataView>);
static_assert(std::ranges::borrowed_range<MetadataView>);

std::string int32(int32_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::string text(std::string_view bytes) {
  return int32(static_cast<int32_t>(bytes.size())) + std::string(bytes);
}

std::vector<KeyValue> pairs_of(const MetadataView& view) { return {view.begin(), view.end()}; }

// A block in a separate heap allocation, so that a sanitizer detects reads past its end.
struct ExactBlock {
  explicit ExactBlock(const std::string& bytes)
      : memory(std::make_unique<char[]>(bytes.size())), size(bytes.size()) {
    std::ranges::copy(bytes, memory.get());
  }
  std::unique_ptr<char[]> memory;
  size_t size;
};

TEST(Metadata, ReadsNullAsEmpty) {
  const MetadataView view = MetadataView::read(nullptr).value();
  EXPECT_TRUE(view.empty());
  EXPECT_EQ(view.begin(), view.end());
  EXPECT_EQ(view.block(), "");
  EXPECT_FALSE(view.find("k").has_value());
}

TEST(Metadata, EncodesEmptyAsFourBytes) {
  EXPECT_EQ(encode_metadata({}).value(), int32(0));
  const ExactBlock block(int32(0));
  EXPECT_TRUE(MetadataView::read(block.memory.get()).value().empty());
}

TEST(Metadata, EncodesAnyRangeOfPairs) {
  const std::string expected = int32(2) + text("a") + text("1") + text("b") + text("");
  EXPECT_EQ(encode_metadata({{"a", "1"}, {"b", ""}}).value(), expected);
  EXPECT_EQ(encode_metadata(std::map<std::string, std::string>{{"b", ""}, {"a", "1"}}).value(),
            expected);
  const std::vector<std::pair<const char*, std::string_view>> pairs{{"a", "1"}, {"b", ""}};
  EXPECT_EQ(encode_metadata(pairs).value(), expected);
}

TEST(Metadata, RoundTripsBytes) {
  const std::string block = encode_metadata({{"k", "v"}, {"", ""}, {"k", "again"}}).value();
  const MetadataView view = MetadataView::read(block.data()).value();
  EXPECT_EQ(view.size(), 3U);
  EXPECT_EQ(view.block(), block);
  EXPECT_EQ(encode_metadata(view).value(), block);
  EXPECT_EQ(view.find("k"), "v");
  EXPECT_EQ(view.find(""), "");
  EXPECT_EQ(view.find("no"), std::nullopt);
}

TEST(Metadata, ReadsUnalignedBlock) {
  const std::string block = "x" + encode_metadata({{"key", "value"}}).value();
  EXPECT_EQ(MetadataView::read(block.data() + 1).value().find("key"), "value");
}

// The test allocates no such string: the encoder rejects it before reading its bytes.
TEST(Metadata, RejectsTextLongerThanInt32) {
  if constexpr (sizeof(size_t) > sizeof(int32_t)) {
    const char byte = 'x';
    const std::string_view huge(&byte, size_t{1} << 31U);
    const std::vector<KeyValue> pairs{{"k", "v"}, {"k", huge}};
    const Result<std::string> block = encode_metadata(pairs);
    ASSERT_FALSE(block);
    EXPECT_EQ(block.error().code(), EINVAL);
    EXPECT_EQ(
        block.error().message(),
        "metadata: text of pair 1 too long: expected at most 2147483647 bytes, got 2147483648");
  }
}

TEST(Rules, MetadataEncoding) {
  struct Case {
    std::string block;
    std::string message;
  };
  const Case cases[] = {
      {int32(-1), "metadata: number of pairs at byte 0: negative: expected 0 or more, got -1"},
      {int32(1) + int32(-5),
       "metadata: length of key 0 at byte 4: negative: expected 0 or more, got -5"},
      {int32(1) + text("k") + int32(std::numeric_limits<int32_t>::min()),
       "metadata: length of value 0 at byte 9: negative: expected 0 or more, got -2147483648"},
      {"", "metadata: number of pairs at byte 0: truncated: expected 4 bytes, got 0"},
      {"\1\0\0"s, "metadata: number of pairs at byte 0: truncated: expected 4 bytes, got 3"},
      {int32(2) + text("k") + text("v"),
       "metadata: length of key 1 at byte 14: truncated: expected 4 bytes, got 0"},
      {int32(1) + int32(2) + "k",
       "metadata: length of key 0 at byte 4: too large: expected at most the 1 bytes that follow, "
       "got 2"},
      {int32(std::numeric_limits<int32_t>::max()) + text(""),
       "metadata: length of value 0 at byte 8: truncated: expected 4 bytes, got 0"},
      {int32(1) + int32(std::numeric_limits<int32_t>::max()),
       "metadata: length of key 0 at byte 4: too large: expected at most the 0 bytes that follow, "
       "got 2147483647"},
  };
  for (const Case& malformed : cases) {
    const ExactBlock block(malformed.block);
    const Result<MetadataView> view = MetadataView::read(block.memory.get(), block.size);
    ASSERT_FALSE(view) << malformed.message;
    EXPECT_EQ(view.error().code(), EINVAL);
    EXPECT_EQ(view.error().message(), malformed.message);
  }
}

TEST(Rules, MetadataNativeEndian) {
  const std::string block = encode_metadata({{"key", ""}}).value();
  int32_t length = 0;
  std::memcpy(&length, block.data() + 4, sizeof length);
  EXPECT_EQ(length, 3);
}

TEST(Rules, MetadataNotNulTerminated) {
  const std::string with_nul("a\0b", 3);
  const ExactBlock block(encode_metadata({{with_nul, "v"}, {"k", with_nul}}).value());
  const MetadataView view = MetadataView::read(block.memory.get()).value();
  EXPECT_EQ(pairs_of(view), (std::vector<KeyValue>{{with_nul, "v"}, {"k", with_nul}}));
  EXPECT_EQ(view.find("k"), with_nul);
}

TEST(Metadata, EncodeAllocationFailureReturnsEnomem) {
  const int64_t failed = fail_each_allocation([](Injection& inject) {
    const Result<std::string> block =
        inject([] { return encode_metadata({{"a key", "a value that is longer than a word"}}); });
    EXPECT_EQ(code_of(block), inject.fired() ? ENOMEM : 0);
  });
  EXPECT_EQ(failed, 1);
}

TEST(Metadata, AllocationFailureInErrorTextReturnsEnomem) {
  const std::string block = int32(1) + int32(-5);
  const int64_t failed = fail_each_allocation([&](Injection& inject) {
    const Result<MetadataView> view = inject([&] { return MetadataView::read(block.data()); });
    ASSERT_FALSE(view);
    EXPECT_EQ(view.error().code(), inject.fired() ? ENOMEM : EINVAL);
  });
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace fletching

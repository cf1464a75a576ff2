// Aspects of check_data that the corpus (tests/corpus/data.json) does not cover: alignment, the
// number of findings, paths, allocation failures, and the null count at every bit offset.
#include "fletching/check_data.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "alloc_failure.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/array_capacity.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/tables.hpp"

namespace fletching {
namespace {

using testing::code_of;
using testing::fail_each_allocation;
using testing::Injection;

/// A copy of the values at an odd address.
class UnalignedBuffer {
 public:
  template <class Value, std::size_t kCount>
  explicit UnalignedBuffer(const std::array<Value, kCount>& values) : bytes_(sizeof values + 1) {
    std::memcpy(bytes_.data() + 1, values.data(), sizeof values);
  }
  [[nodiscard]] const void* get() const { return bytes_.data() + 1; }

 private:
  std::vector<char> bytes_;
};

/// A struct of `count` columns, each an int8 with one index that is out of range of an empty
/// dictionary.
struct Batch {
  explicit Batch(std::size_t count) {
    const SchemaNode column{.format = "c", .dictionary = {{.format = "n"}}};
    schema = make_schema({.format = "+s", .children = std::vector(count, column)}).value();
    auto builder = build_array_for(*schema, std::make_unique<int>(0)).value();
    builder.set(builder.root(), {.length = 1}, std::array<const void*, 1>{});
    for (ArrowArray& child : builder.add_children(builder.root(), schema->n_children)) {
      builder.set(child, {.length = 1}, std::array<const void*, 2>{nullptr, &index});
      builder.set(builder.add_dictionary(child), {}, std::array<const void*, 0>{});
    }
    array = builder.finish_cpu().value();
  }

  static constexpr std::int8_t index = 0;
  Schema schema;
  DeviceArray array;
};

TEST(CheckDataTest, NamesPlaceAndValues) {
  const Batch batch(2);
  const ArrayFindings found = check_data(*batch.schema, *batch.array).value();
  ASSERT_EQ(found.list.size(), 2U);
  EXPECT_FALSE(found.more);
  EXPECT_EQ(found.list[1].rule, "layout.dictionary-indices-in-range");
  EXPECT_EQ(found.list[1].path, "array.children[1]");
  EXPECT_EQ(found.list[1].message,
            "indices[0] is not in the dictionary: expected 0 or more and less than 0, got 0");
}

TEST(CheckDataTest, StopsAtMaximum) {
  const Batch batch(kMostFindings + 1);
  EXPECT_TRUE(check_data(*batch.schema, *batch.array).value().more);
  EXPECT_EQ(check_data(*batch.schema, *batch.array).value().list.size(), kMostFindings);
  EXPECT_EQ(check_data(*batch.schema, *batch.array, 3).value().list.size(), 3U);
  EXPECT_EQ(code_of(verify_data(*batch.schema, *batch.array)), EINVAL);
}

TEST(CheckDataTest, FailsWithoutMemoryForTexts) {
  const Batch batch(1);
  const std::int64_t failed = fail_each_allocation([&](Injection& inject) {
    const Status status = inject([&] { return verify_data(*batch.schema, *batch.array); });
    EXPECT_EQ(code_of(status), inject.fired() ? ENOMEM : EINVAL);
  });
  EXPECT_GT(failed, 2);
}

TEST(CheckDataTest, DoesNotReadDeviceMemory) {
  Batch batch(1);
  batch.array->device_type = ARROW_DEVICE_CUDA;
  EXPECT_TRUE(verify_data(*batch.schema, *batch.array));
  EXPECT_FALSE(verify_data(*batch.schema, batch.array->array)) << "taken for an array of the host";
}

TEST(CheckDataTest, ReportsOnlyStructsOfBadShape) {
  Batch batch(1);
  batch.array->array.null_count = 2;
  const ArrayFindings found = check_data(*batch.schema, *batch.array).value();
  ASSERT_EQ(found.list.size(), 2U);
  EXPECT_EQ(found.list[0].rule, "array.null-count-range");
  EXPECT_EQ(found.list[1].rule, "array.buffers-null-only-when");
}

TEST(CheckDataTest, ReadsUnalignedBuffers) {
  const UnalignedBuffer offsets(std::array<std::int64_t, 3>{0, 1, 2});
  const Schema schema = make_schema({.format = "U"}).value();
  auto builder = build_array_for(*schema, std::make_unique<int>(0)).value();
  builder.set(builder.root(), {.length = 2},
              std::array<const void*, 3>{nullptr, offsets.get(), "ab"});
  const DeviceArray array = builder.finish_cpu().value();
  EXPECT_TRUE(verify_data(*schema, *array));
}

TEST(CheckDataTest, DetectsMemoryEnd) {
  const Schema schema = make_schema({.format = "i"}).value();
  const void* const last16 = reinterpret_cast<const void*>(UINTPTR_MAX - 15);
  for (const std::int64_t length : {3, 4}) {
    auto builder = build_array_for(*schema, std::make_unique<int>(0)).value();
    builder.set(builder.root(), {.length = length}, std::array<const void*, 2>{nullptr, last16});
    const DeviceArray array = builder.finish_cpu().value();
    EXPECT_EQ(verify_data(*schema, *array).ok(), length == 3) << length;
  }
}

// The view's index is out of range as well, but no view is read.
TEST(CheckDataTest, ReadsNoViewAfterWrongBuffer) {
  const Schema schema = make_schema({.format = "vu"}).value();
  constexpr std::array<std::int32_t, 4> kView{20, 0, 5, 0};
  constexpr std::int64_t kSize = 100;
  const void* const last16 = reinterpret_cast<const void*>(UINTPTR_MAX - 15);
  for (const void* const buffer : {last16, static_cast<const void*>(nullptr)}) {
    auto builder = build_array_for(*schema, std::make_unique<int>(0), 1).value();
    builder.set(builder.root(), {.length = 1},
                std::array<const void*, 4>{nullptr, kView.data(), buffer, &kSize});
    const DeviceArray array = builder.finish_cpu().value();
    const ArrayFindings found = check_data(*schema, *array).value();
    ASSERT_EQ(found.list.size(), 1U);
    EXPECT_EQ(found.list[0].rule,
              buffer == nullptr ? "array.buffers-null-only-when" : "array.buffers-large-enough");
  }
}

TEST(CheckDataTest, CountsNullsAtEveryBit) {
  constexpr std::array<std::uint8_t, 5> kBits{0x00, 0xA5, 0xFF, 0x7F, 0x10};
  constexpr int kCount = 8 * kBits.size();
  for (int offset = 0; offset < kCount; ++offset) {
    std::int64_t nulls = 0;
    for (int length = 0; length <= kCount - offset; ++length) {
      const detail::Validity validity{kBits.data(), offset};
      EXPECT_EQ(validity.nulls(length), nulls) << offset << " + " << length;
      const int bit = offset + length;
      if (bit < kCount) nulls += (kBits.at(bit / 8) >> bit % 8 & 1) == 0 ? 1 : 0;
    }
  }
}

TEST(IsHostReadableTest, KnowsDevicesOfTable) {
  std::string readable;
  for (const DeviceInfo& device : kDevices) {
    if (is_host_readable(device.value)) readable.append(device.name).append(" ");
  }
  EXPECT_EQ(readable, "cpu cuda_host rocm_host cuda_managed ");
  EXPECT_FALSE(is_host_readable(9999));
}

}  // namespace
}  // namespace fletching

// Values and validity read as C++ types, on devices that the host can read.
#include "fletching/buffer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "alloc_failure.hpp"
#include "fletching/array_builder.hpp"

namespace fletching {
namespace {

using testing::code_of;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
alignas(8) constexpr std::array<std::int32_t, 6> kValues{1, 2, 3, 4, 5, 6};
constexpr std::uint8_t kBits[] = {0b1011'0111, 0b0000'0010};  // values 3, 6, 8 are null

DeviceArray array_of(ArrayValues values, std::initializer_list<const void*> buffers,
                     ArrowDeviceType type = ARROW_DEVICE_CPU) {
  return make_device_array(values, buffers, std::make_unique<int>(0), type, 0).value();
}

template <class T>
std::vector<T> all(const Result<std::span<const T>>& values) {
  EXPECT_TRUE(values);
  if (!values) return {};
  return {values->begin(), values->end()};
}

std::string message(const auto& result) { return result ? "" : result.error().message(); }

TEST(Buffer, AppliesOffsetAndLength) {
  const DeviceArray array = array_of({.length = 3, .offset = 2}, {nullptr, kValues.data()});
  EXPECT_EQ(all(buffer<std::int32_t>(array, 1)), (std::vector<std::int32_t>{3, 4, 5}));
  EXPECT_EQ(all(buffer<std::int32_t>(array, 1, 4)), (std::vector<std::int32_t>{3, 4, 5, 6}));
  EXPECT_EQ(buffer<std::int32_t>(array, 1)->data(), kValues.data() + 2);
  ArrowArray raw = array->array;
  raw.release = [](ArrowArray* self) { self->release = nullptr; };
  EXPECT_EQ(all(buffer<std::int32_t>(Array(&raw), 1)), (std::vector<std::int32_t>{3, 4, 5}));
}

TEST(Buffer, EmptyArrayReturnsEmptySpan) {
  const DeviceArray array = array_of({}, {nullptr, nullptr});
  EXPECT_TRUE(buffer<std::int64_t>(array, 1)->empty());
}

TEST(Buffer, RejectsDeviceMemory) {
  for (const DeviceInfo& device : kDevices) {
    const DeviceArray array =
        array_of({.length = 1, .null_count = 1}, {kBits, kValues.data()}, device.value);
    const bool readable = is_accessible(device.value, ARROW_DEVICE_CPU);
    EXPECT_EQ(code_of(buffer<std::int32_t>(array, 1)), readable ? 0 : ENOTSUP) << device.name;
    EXPECT_EQ(code_of(validity(array)), readable ? 0 : ENOTSUP) << device.name;
  }
  const DeviceArray unknown = array_of({.length = 1}, {nullptr, kValues.data()}, 9999);
  EXPECT_EQ(message(buffer<std::int32_t>(unknown, 1)),
            "buffer: memory not readable by the host: expected cpu, cuda_host, rocm_host, "
            "cuda_managed, got unknown(9999)");
}

TEST(Buffer, RejectsMissingBuffer) {
  const DeviceArray array = array_of({.length = 3}, {nullptr, kValues.data()});
  for (const int64_t index : {int64_t{-1}, int64_t{2}, kMost}) {
    EXPECT_EQ(code_of(buffer<std::int32_t>(array, index)), EINVAL) << index;
  }
  EXPECT_EQ(message(buffer<std::int32_t>(array, 2)),
            "buffer: no such buffer: expected an index below 2, got 2");
  EXPECT_EQ(message(buffer<std::int32_t>(array, 0)), "buffer: NULL: expected 3 values");
  EXPECT_EQ(code_of(buffer<std::int32_t>(DeviceArray(), 0)), EINVAL);
  EXPECT_EQ(code_of(validity(DeviceArray())), EINVAL);
  EXPECT_EQ(code_of(validity(array_of({.length = 3}, {}))), EINVAL);
  DeviceArray listless = array_of({.length = 3}, {nullptr, kValues.data()});
  listless->array.buffers = nullptr;
  EXPECT_EQ(code_of(buffer<std::int32_t>(listless, 1)), EINVAL);
}

TEST(Buffer, RejectsMisalignedBuffer) {
  const auto* odd = reinterpret_cast<const char*>(kValues.data()) + 2;
  const DeviceArray array = array_of({.length = 2}, {nullptr, odd});
  EXPECT_EQ(code_of(buffer<std::int16_t>(array, 1)), 0);
  EXPECT_EQ(message(buffer<std::int32_t>(array, 1)),
            "buffer: not aligned: expected a multiple of 4");
}

TEST(Buffer, RejectsNumbersOutOfRange) {
  for (const auto& [length, offset, count] :
       std::initializer_list<std::array<int64_t, 3>>{{-1, 0, 1},
                                                     {1, -1, 1},
                                                     {1, kMost, 0},
                                                     {1, 0, -1},
                                                     {1, 1, kMost},
                                                     {1, 0, kMost / 4 + 1}}) {
    DeviceArray array = array_of({}, {nullptr, kValues.data()});
    array->array.length = length;
    array->array.offset = offset;
    EXPECT_EQ(code_of(buffer<std::int32_t>(array, 1, count)), EINVAL)
        << length << ' ' << offset << ' ' << count;
  }
}

TEST(Validity, AppliesBitmapOffset) {
  const DeviceArray array = array_of({.length = 7, .null_count = 3, .offset = 2}, {kBits});
  const Validity valid = validity(array).value();
  ASSERT_EQ(valid.size(), 7);
  std::string text;
  for (int64_t i = 0; i < valid.size(); ++i) text += valid[i] ? '1' : '0';
  EXPECT_EQ(text, "1011010");
}

TEST(Validity, AllValidWithoutNulls) {
  for (const ArrayValues values : {ArrayValues{.length = 9}, {.length = 9, .null_count = -1}}) {
    const Validity valid = validity(array_of(values, {nullptr})).value();
    for (int64_t i = 0; i < valid.size(); ++i) EXPECT_TRUE(valid[i]);
  }
  EXPECT_TRUE(validity(array_of({.length = 9}, {kBits})).value()[3]) << "null_count is 0";
  EXPECT_FALSE(validity(array_of({.length = 9, .null_count = -1}, {kBits})).value()[3]);
}

TEST(Validity, RejectsNullsWithoutBitmap) {
  EXPECT_EQ(message(validity(array_of({.length = 3, .null_count = 2}, {nullptr}))),
            "buffer: no validity bitmap: expected one, got NULL and a null_count of 2");
}

TEST(Buffer, AllocationFailureInErrorTextReturnsEnomem) {
  const DeviceArray array = array_of({.length = 3}, {nullptr}, ARROW_DEVICE_CUDA);
  const int64_t failed = testing::fail_each_allocation([&](testing::Injection& inject) {
    const auto values = inject([&] { return buffer<std::int32_t>(array, 1); });
    EXPECT_EQ(code_of(values), inject.fired() ? ENOMEM : ENOTSUP);
  });
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace fletching

// SPDX-License-Identifier: Apache-2.0
//
// Arrays with nulls, or with an unknown null count, exported as tensors.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>

#include "dlpack_data.hpp"
#include "dlpack_exported.hpp"
#include "error_messages.hpp"
#include "fletching/dlpack.hpp"

namespace fletching::testing {
namespace {

constexpr std::array<std::int32_t, 48> kValues{};

TEST(DlpackNulls, AreRejected) {
  Data some("i", 3, kValues.data());
  expect_mentions(refused(some.nulls(1, "\5")), "nulls");
  Data uncounted("i", 3, kValues.data());
  expect_mentions(refused(uncounted.nulls(-1, "\5")), "nulls");
  EXPECT_TRUE(exported(uncounted, {.nulls = Nulls::kIgnore}));
}

TEST(DlpackNulls, AreCountedInRangeOnly) {
  Data none("i", 3, kValues.data());
  EXPECT_TRUE(exported(none.nulls(-1, "\x7f\x1f").offset(8)));
  Data later("i", 4, kValues.data());
  EXPECT_EQ(refused(later.nulls(-1, "\xff\x17").offset(8)).code(), ENOTSUP);
  Data absent("i", 3, kValues.data());
  EXPECT_TRUE(exported(absent.nulls(-1, nullptr)));
  Data malformed("i", 3, kValues.data());
  EXPECT_EQ(refused(malformed.nulls(1, nullptr)).code(), EINVAL);
}

TEST(DlpackNulls, AreNotReadOnDevice) {
  // An invalid address: reading the bitmap would crash.
  const void* elsewhere = reinterpret_cast<const void*>(16);
  Data data("i", 3, kValues.data());
  expect_mentions(refused(data.nulls(-1, elsewhere).on(ARROW_DEVICE_CUDA, 0)), "may have nulls");
  Data pending("i", 3, kValues.data());
  pending.nulls(-1, elsewhere).on(ARROW_DEVICE_CUDA_HOST, 0).event(&pending);
  EXPECT_EQ(refused(pending, {.event_handled = true}).code(), ENOTSUP);
}

TEST(DlpackNulls, AreRejectedAtEveryLevel) {
  Data values("i", 6, kValues.data());
  Data lists("+w:3", 2);
  EXPECT_EQ(refused(lists.child(values).nulls(1, "\1")).code(), ENOTSUP);
  Data inner("i", 6, kValues.data());
  Data outer("+w:3", 2);
  EXPECT_EQ(refused(outer.child(inner.nulls(1, "\x1f"))).code(), ENOTSUP);
}

using Bitmap = std::array<std::uint8_t, 8>;

/// Every element but one is valid.
Bitmap all_but(std::int64_t element) {
  Bitmap bits;
  bits.fill(0xFF);
  bits[static_cast<std::size_t>(element / 8)] ^= static_cast<std::uint8_t>(1U << (element % 8));
  return bits;
}

// Three lists of two int32 values; `first` to `last` are the child elements of the slice.
TEST(DlpackNulls, AreCountedInSlicedListElements) {
  for (const std::int64_t null_count : {-1, 1}) {
    for (std::int64_t lists_offset = 0; lists_offset < 4; ++lists_offset) {
      for (std::int64_t values_offset = 0; values_offset < 10; ++values_offset) {
        const std::int64_t first = values_offset + 2 * lists_offset;
        const std::int64_t last = first + 5;
        for (std::int64_t null = 0; null < 48; ++null) {
          SCOPED_TRACE("lists from " + std::to_string(lists_offset) + ", values from " +
                       std::to_string(values_offset) + ", null at " + std::to_string(null));
          const Bitmap bits = all_but(null);
          Data values("i", 24, kValues.data());
          values.offset(values_offset).nulls(null_count, bits.data());
          Data lists("+w:2", 3);
          lists.child(values).offset(lists_offset);
          if (null < first || null > last) {
            EXPECT_TRUE(exported(lists));
          } else {
            expect_mentions(refused(lists), "has nulls");
          }
        }
      }
    }
  }
}

// The inner lists have a separate range.
TEST(DlpackNulls, AreCountedInSlicedInnerLists) {
  for (std::int64_t null = 0; null < 16; ++null) {
    const Bitmap bits = all_but(null);
    Data values("i", 48, kValues.data());
    Data inner("+w:3", 15);
    inner.child(values).offset(1).nulls(-1, bits.data());
    Data outer("+w:2", 2);
    outer.child(inner).offset(2);
    if (null < 1 + 2 * 2 || null > 1 + 2 * 2 + 2 * 2 - 1) {
      EXPECT_TRUE(exported(outer)) << null;
    } else {
      expect_mentions(refused(outer), "has nulls");
    }
  }
}

// The bitmap is not read, because the sum overflows 64 bits.
TEST(DlpackNulls, OverflowingOffsetReturnsEinval) {
  const Bitmap bits = all_but(63);
  for (const std::int64_t offset : {INT64_MAX, INT64_MAX - 4}) {
    Data plain("c", 5, kValues.data());
    const Error error = refused(plain.offset(offset).nulls(-1, bits.data()));
    EXPECT_EQ(error.code(), EINVAL);
    expect_mentions(error, "offset plus length");
    Data values("c", 10, kValues.data());
    Data lists("+w:2", 5);
    EXPECT_EQ(refused(lists.child(values).offset(offset).nulls(-1, bits.data())).code(), EINVAL);
    Data shifted("c", 10, kValues.data());
    Data around("+w:2", 5);
    EXPECT_EQ(refused(around.child(shifted.offset(offset).nulls(-1, bits.data()))).code(), EINVAL);
  }
}

}  // namespace
}  // namespace fletching::testing

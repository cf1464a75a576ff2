// SPDX-License-Identifier: Apache-2.0
//
// Compares the contents of an array's buffers with its schema.
#ifndef FLETCHING_CHECK_DATA_HPP
#define FLETCHING_CHECK_DATA_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fletching/abi.h"
#include "fletching/check_array.hpp"
#include "fletching/detail/array_shape.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/device_type.hpp"
#include "fletching/format.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Whether the host can read the buffers of a device type: main memory, pinned memory and managed
/// memory.
constexpr bool is_host_readable(DeviceType type) noexcept {
  const DeviceInfo* known = type.info();
  return known != nullptr &&
         (known->buffers == Buffers::kHostAddress || known->buffers == Buffers::kSharedAddress);
}

namespace detail {

/// Reads an item of a possibly unaligned buffer.
template <class Item>
Item item_at(const void* buffer, int64_t index) noexcept {
  Item item;
  std::memcpy(&item, static_cast<const char*>(buffer) + index * int64_t{sizeof item}, sizeof item);
  return item;
}

/// The validity bitmap of an array, from its first value on. NULL: every value is valid.
struct Validity {
  const void* bits = nullptr;
  int64_t offset = 0;

  [[nodiscard]] bool at(int64_t index) const noexcept {
    const int64_t bit = offset + index;
    return bits == nullptr || (item_at<std::uint8_t>(bits, bit / 8) >> (bit % 8) & 1) != 0;
  }

  /// The number of nulls among the first `length` values.
  [[nodiscard]] int64_t nulls(int64_t length) const noexcept {
    int64_t found = 0;
    int64_t i = 0;
    for (; i < length && (offset + i) % 8 != 0; ++i) found += at(i) ? 0 : 1;
    for (; bits != nullptr && length - i >= 8; i += 8) {
      found += 8 - std::popcount(item_at<std::uint8_t>(bits, (offset + i) / 8));
    }
    for (; bits != nullptr && i < length; ++i) found += at(i) ? 0 : 1;
    return found;
  }
};

/// The fields of a view (Columnar format, "Variable-size Binary View Layout").
struct View {
  static constexpr std::int32_t kMostInline = 12;
  static constexpr std::size_t kPrefix = 4;

  std::array<char, 16> bytes;

  [[nodiscard]] std::int32_t length() const noexcept {
    return item_at<std::int32_t>(bytes.data(), 0);
  }
  [[nodiscard]] bool is_inline() const noexcept { return length() <= kMostInline; }
  [[nodiscard]] std::int32_t buffer() const noexcept {
    return item_at<std::int32_t>(bytes.data(), 2);
  }
  [[nodiscard]] std::int32_t offset() const noexcept {
    return item_at<std::int32_t>(bytes.data(), 3);
  }
  [[nodiscard]] std::string_view prefix() const noexcept { return {bytes.data() + 4, kPrefix}; }
  /// The data and padding of a short view.
  [[nodiscard]] std::string_view inlined() const noexcept {
    return std::string_view(bytes.data(), bytes.size()).substr(4);
  }
};

/// The index of the first byte that is not valid UTF-8, or npos.
inline std::size_t first_not_utf8(std::string_view text) noexcept {
  constexpr std::uint64_t kHighBits = 0x8080808080808080U;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_ascii = text.size() - at >= sizeof kHighBits &&
                          (item_at<std::uint64_t>(text.data() + at, 0) & kHighBits) == 0;
    const std::size_t length = is_ascii ? sizeof kHighBits : utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

/// Whether `bytes` bytes from `buffer` on fit into the address space.
inline bool fits_memory(const void* buffer, std::uint64_t bytes) noexcept {
  return bytes <= UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(buffer);
}

/// The traversal of check_data, for arrays without findings of check_array. Each check stops at its
/// first finding in an array. Allocates, and may throw, only to report a finding.
class DataCheck {
 public:
  explicit DataCheck(size_t most) noexcept : most_(most) {}

  void visit(const ArrowSchema& schema, const ArrowArray& array, const TreePlace& at) {
    const Result<Format> format = parse_format(schema.format);
    if (findings_.more || !format) return;
    if (fit_memory(*format, array, at)) {
      check_nulls(*format, array, at);
      if (array.length > 0) check_content(schema, *format, array, at);
    }
    const bool has_run_ends = format->id == TypeId::kRunEndEncoded && array.length > 0;
    for (int64_t i = 0; i < array.n_children; ++i) {
      const int64_t least = has_run_ends && i == 0 ? array.offset + array.length : 0;
      visit(*schema.children[i], *array.children[i], at.below(format->id, i, least));
    }
    if (schema.dictionary == nullptr) return;
    visit(*schema.dictionary, *array.dictionary, at.below(format->id, TreePlace::kDictionary));
  }

  [[nodiscard]] ArrayFindings take() && noexcept { return std::move(findings_); }

 private:
  FLETCHING_DETAIL_COLD void report(std::string_view rule, const TreePlace& at,
                                    std::string message) {
    if (findings_.list.size() == most_) {
      findings_.more = true;
    } else {
      findings_.list.push_back({rule, at.path("array"), std::move(message)});
    }
  }

  FLETCHING_DETAIL_COLD static std::string numbered(const char* what, int64_t index) {
    return std::string(what) + "[" + std::to_string(index) + "]";
  }

  /// Example: "offsets[3] is too large: expected at most 7, got 9".
  template <class Number>
  FLETCHING_DETAIL_COLD void report_item(std::string_view rule, const TreePlace& at,
                                         const char* what, int64_t index, const char* problem,
                                         const std::string& wanted, Number got) {
    report(rule, at,
           numbered(what, index) + " " + problem + ": expected " + wanted + ", got " +
               std::to_string(got));
  }

  // --- All layouts ---

  /// Whether the buffers of known size fit into the address space.
  bool fit_memory(const Format& format, const ArrowArray& array, const TreePlace& at) {
    for (int64_t i = 0; i < format.n_buffers; ++i) {
      const BufferWidth width = buffer_width(format, i);
      const int64_t values = array.offset + array.length + width.extra_values;
      const auto bytes = static_cast<std::uint64_t>(values * width.bits / 8);
      if (array.length > 0 && !fits_memory(array.buffers[i], bytes)) {
        too_large(i, array.offset + array.length, at);
        return false;
      }
    }
    return true;
  }

  FLETCHING_DETAIL_COLD void too_large(int64_t buffer, int64_t size, const TreePlace& at) {
    report("array.buffers-large-enough", at,
           numbered("buffers", buffer) + " does not fit behind its address: got " +
               std::to_string(size) + " items");
  }

  static Validity validity_of(const Format& format, const ArrowArray& array) noexcept {
    const bool has_bitmap = format.n_buffers > 0 && !format.has_no_nulls() && array.length > 0;
    return {has_bitmap ? array.buffers[0] : nullptr, array.offset};
  }

  /// Accepts any null_count of a null array, because implementations disagree (tests/corpus).
  void check_nulls(const Format& format, const ArrowArray& array, const TreePlace& at) {
    const bool is_null = format.id == TypeId::kNull;
    const int64_t nulls = is_null ? array.length : validity_of(format, array).nulls(array.length);
    if (!is_null && array.null_count != -1 && array.null_count != nulls) {
      report("array.null-count-correct", at,
             "null_count is wrong: expected " + std::to_string(nulls) + ", got " +
                 std::to_string(array.null_count));
    } else if (nulls > 0) {
      check_place_of_nulls(nulls, at);
    }
  }

  /// Applies check_array's rules for a positive null_count.
  void check_place_of_nulls(int64_t nulls, const TreePlace& at) {
    const auto refuse = [&](std::string_view rule, const char* what) {
      report(rule, at,
             std::string("nulls in ") + what + ": expected 0, got " + std::to_string(nulls));
    };
    if (at.parent_type == TypeId::kMap) return refuse("format.map-child", "a map's entries");
    if (at.index != 0) return;
    if (at.parent_type == TypeId::kRunEndEncoded) refuse("format.run-end-children", "run ends");
    if (at.parent != nullptr && at.parent->parent_type == TypeId::kMap) {
      refuse("format.map-child", "a map's keys");
    }
  }

  /// For arrays with a positive length.
  void check_content(const ArrowSchema& schema, const Format& format, const ArrowArray& array,
                     const TreePlace& at) {
    using enum TypeId;
    if (schema.dictionary != nullptr) return check_indices(format, array, at);
    switch (format.id) {
      case kBinary:
      case kString:
        return check_binary<std::int32_t>(format, array, at);
      case kLargeBinary:
      case kLargeString:
        return check_binary<std::int64_t>(format, array, at);
      case kBinaryView:
      case kStringView:
        return check_views(format, array, at);
      case kList:
      case kMap:
        return check_list<std::int32_t>(array, at);
      case kLargeList:
        return check_list<std::int64_t>(array, at);
      case kListView:
        return check_list_view<std::int32_t>(array, at);
      case kLargeListView:
        return check_list_view<std::int64_t>(array, at);
      case kDenseUnion:
      case kSparseUnion:
        return check_union(format, array, at);
      default:
        if (at.parent_type == kRunEndEncoded && at.index == 0) check_run_ends(format, array, at);
    }
  }

  // --- Offsets ---

  /// Returns the last offset, or -1 after a finding.
  template <class Offset>
  Offset check_offsets(const ArrowArray& array, const TreePlace& at) {
    auto before = item_at<Offset>(array.buffers[1], array.offset);
    if (before < 0) {
      report_item("layout.offsets-in-range", at, "offsets", array.offset, "is negative",
                  "0 or more", before);
      return -1;
    }
    for (int64_t i = array.offset + 1; i <= array.offset + array.length; ++i) {
      const auto offset = item_at<Offset>(array.buffers[1], i);
      if (offset < before) {
        report_item("layout.offsets-monotone", at, "offsets", i, "is less than the one before",
                    std::to_string(before) + " or more", offset);
        return -1;
      }
      before = offset;
    }
    return before;
  }

  template <class Offset>
  void check_list(const ArrowArray& array, const TreePlace& at) {
    const auto last = check_offsets<Offset>(array, at);
    const int64_t most = array.children[0]->length;
    if (last <= most) return;
    report_item("layout.offsets-in-range", at, "offsets", array.offset + array.length,
                "is behind the child", "at most " + std::to_string(most), last);
  }

  template <class Offset>
  void check_binary(const Format& format, const ArrowArray& array, const TreePlace& at) {
    const auto last = check_offsets<Offset>(array, at);
    if (last < 0) return;
    const auto first = item_at<Offset>(array.buffers[1], array.offset);
    const auto* const data = static_cast<const char*>(array.buffers[2]);
    if (data == nullptr && last > first) {
      return report(
          "array.buffers-null-only-when", at,
          "buffers[2] is NULL: the values have " + std::to_string(last - first) + " bytes");
    }
    if (!fits_memory(data, static_cast<std::uint64_t>(last))) return too_large(2, last, at);
    if (format.id != TypeId::kString && format.id != TypeId::kLargeString) return;
    const Validity validity = validity_of(format, array);
    for (int64_t i = 0; i < array.length; ++i) {
      const auto begin = item_at<Offset>(array.buffers[1], array.offset + i);
      const auto end = item_at<Offset>(array.buffers[1], array.offset + i + 1);
      if (begin == end || !validity.at(i)) continue;
      if (!check_utf8({data + begin, static_cast<std::size_t>(end - begin)}, i, at)) return;
    }
  }

  bool check_utf8(std::string_view text, int64_t index, const TreePlace& at) {
    const std::size_t wrong = first_not_utf8(text);
    if (wrong == std::string_view::npos) return true;
    report("layout.utf8", at,
           numbered("values", index) + " is not UTF-8: expected a character at byte " +
               std::to_string(wrong) + ", got byte " +
               std::to_string(static_cast<std::uint8_t>(text[wrong])));
    return false;
  }

  /// Checks null slots too.
  template <class Offset>
  void check_list_view(const ArrowArray& array, const TreePlace& at) {
    const int64_t most = array.children[0]->length;
    for (int64_t i = array.offset; i < array.offset + array.length; ++i) {
      const auto offset = item_at<Offset>(array.buffers[1], i);
      const auto size = item_at<Offset>(array.buffers[2], i);
      if (offset < 0 || offset > most) {
        return report_item("layout.list-view-in-range", at, "offsets", i, "is out of range",
                           "0 to " + std::to_string(most), offset);
      }
      if (size < 0 || size > most - offset) {
        return report_item("layout.list-view-in-range", at, "sizes", i, "is out of range",
                           "0 to " + std::to_string(most - offset), size);
      }
    }
  }

  // --- Views ---

  void check_views(const Format& format, const ArrowArray& array, const TreePlace& at) {
    if (!check_view_sizes(array, at)) return;
    const Validity validity = validity_of(format, array);
    for (int64_t i = 0; i < array.length; ++i) {
      if (!validity.at(i)) continue;
      const auto view = item_at<View>(array.buffers[1], array.offset + i);
      const bool sound = view.is_inline() ? check_short_view(format, view, i, at)
                                          : check_long_view(format, array, view, i, at);
      if (!sound) return;
    }
  }

  static int64_t variadic_of(const ArrowArray& array) noexcept { return array.n_buffers - 3; }
  static int64_t size_of_variadic(const ArrowArray& array, int64_t index) noexcept {
    return item_at<int64_t>(array.buffers[array.n_buffers - 1], index);
  }

  bool check_view_sizes(const ArrowArray& array, const TreePlace& at) {
    for (int64_t i = 0; i < variadic_of(array); ++i) {
      const int64_t size = size_of_variadic(array, i);
      const void* const buffer = array.buffers[2 + i];
      if (size < 0) {
        report_item("array.view-sizes-buffer", at, "sizes", i, "is negative", "0 or more", size);
        return false;
      }
      if (buffer == nullptr && size > 0) {
        report("array.buffers-null-only-when", at,
               numbered("buffers", 2 + i) + " is NULL: its size is " + std::to_string(size));
        return false;
      }
      if (!fits_memory(buffer, static_cast<std::uint64_t>(size))) {
        too_large(2 + i, size, at);
        return false;
      }
    }
    return true;
  }

  bool check_short_view(const Format& format, const View& view, int64_t index,
                        const TreePlace& at) {
    if (view.length() < 0) {
      report_item("layout.view-length", at, "views", index, "has a negative length", "0 or more",
                  view.length());
      return false;
    }
    const auto length = static_cast<std::size_t>(view.length());
    const std::string_view padding = view.inlined().substr(length);
    const std::size_t wrong = padding.find_first_not_of('\0');
    if (wrong != std::string_view::npos) {
      report_item("layout.view-padding", at, "views", index, "has padding", "0",
                  static_cast<std::uint8_t>(padding[wrong]));
      return false;
    }
    return format.id != TypeId::kStringView ||
           check_utf8(view.inlined().substr(0, length), index, at);
  }

  bool check_long_view(const Format& format, const ArrowArray& array, const View& view,
                       int64_t index, const TreePlace& at) {
    if (view.buffer() < 0 || view.buffer() >= variadic_of(array)) {
      report_item("layout.view-in-range", at, "views", index, "is in no variadic buffer",
                  "an index less than " + std::to_string(variadic_of(array)), view.buffer());
      return false;
    }
    const int64_t size = size_of_variadic(array, view.buffer());
    const int64_t end = int64_t{view.offset()} + view.length();
    if (view.offset() < 0 || end > size) {
      report_item("layout.view-in-range", at, "views", index, "is not within its buffer",
                  "an end of at most " + std::to_string(size),
                  view.offset() < 0 ? view.offset() : end);
      return false;
    }
    const auto* const data = static_cast<const char*>(array.buffers[2 + view.buffer()]);
    const std::string_view text(data + view.offset(), static_cast<std::size_t>(view.length()));
    if (text.substr(0, View::kPrefix) != view.prefix()) {
      report("layout.view-prefix", at,
             numbered("views", index) + " has a wrong prefix: expected " +
                 quote(text.substr(0, View::kPrefix)) + ", got " + quote(view.prefix()));
      return false;
    }
    return format.id != TypeId::kStringView || check_utf8(text, index, at);
  }

  // --- Unions ---

  struct UnionChild {
    int64_t index = -1;  // -1: no child has the type id
    std::int32_t offset = 0;
  };

  void check_union(const Format& format, const ArrowArray& array, const TreePlace& at) {
    std::array<UnionChild, 256> children;  // by type id as an unsigned byte
    std::string_view ids = format.type_ids;
    std::int32_t id = 0;
    for (int64_t i = 0; !ids.empty() && take_int32(ids, id); ++i) {
      children[static_cast<std::size_t>(id)].index = i;
    }
    for (int64_t i = array.offset; i < array.offset + array.length; ++i) {
      UnionChild& child = children[item_at<std::uint8_t>(array.buffers[0], i)];
      if (child.index < 0) {
        return report_item(
            "layout.union-type-ids", at, "types", i, "is not a type id of the format",
            "one of " + std::string(format.type_ids), item_at<std::int8_t>(array.buffers[0], i));
      }
      if (format.id == TypeId::kDenseUnion && !check_union_offset(array, i, child, at)) return;
    }
  }

  bool check_union_offset(const ArrowArray& array, int64_t index, UnionChild& child,
                          const TreePlace& at) {
    const auto offset = item_at<std::int32_t>(array.buffers[1], index);
    const int64_t length = array.children[child.index]->length;
    if (offset < 0 || offset >= length) {
      report_item("layout.union-offsets-in-range", at, "offsets", index, "is not in the child",
                  "0 or more and less than " + std::to_string(length), offset);
      return false;
    }
    if (offset < child.offset) {
      report_item("layout.union-offsets-ascending", at, "offsets", index,
                  "is less than the one before in the child",
                  std::to_string(child.offset) + " or more", offset);
      return false;
    }
    child.offset = offset;
    return true;
  }

  // --- Run ends and indices ---

  void check_run_ends(const Format& format, const ArrowArray& array, const TreePlace& at) {
    if (format.id == TypeId::kInt16) return check_run_ends<std::int16_t>(array, at);
    if (format.id == TypeId::kInt32) return check_run_ends<std::int32_t>(array, at);
    check_run_ends<std::int64_t>(array, at);
  }

  /// at.least_length is the parent's offset + length.
  template <class End>
  void check_run_ends(const ArrowArray& array, const TreePlace& at) {
    End before = 0;
    for (int64_t i = 0; i < array.length; ++i) {
      const auto end = item_at<End>(array.buffers[1], array.offset + i);
      if (end <= before) {
        return report_item("layout.run-ends-ascending", at, "run_ends", i, "is not ascending",
                           "more than " + std::to_string(before), end);
      }
      before = end;
    }
    if (before >= at.least_length) return;
    report_item("layout.run-ends-cover", at, "run_ends", array.length - 1,
                "is less than the parent's offset + length",
                "at least " + std::to_string(at.least_length), before);
  }

  void check_indices(const Format& format, const ArrowArray& array, const TreePlace& at) {
    using enum TypeId;
    switch (format.id) {
      case kInt8:
        return check_indices<std::int8_t>(format, array, at);
      case kUInt8:
        return check_indices<std::uint8_t>(format, array, at);
      case kInt16:
        return check_indices<std::int16_t>(format, array, at);
      case kUInt16:
        return check_indices<std::uint16_t>(format, array, at);
      case kInt32:
        return check_indices<std::int32_t>(format, array, at);
      case kUInt32:
        return check_indices<std::uint32_t>(format, array, at);
      case kInt64:
        return check_indices<std::int64_t>(format, array, at);
      default:
        return check_indices<std::uint64_t>(format, array, at);
    }
  }

  template <class Index>
  void check_indices(const Format& format, const ArrowArray& array, const TreePlace& at) {
    const Validity validity = validity_of(format, array);
    const int64_t length = array.dictionary->length;
    for (int64_t i = 0; i < array.length; ++i) {
      const auto index = item_at<Index>(array.buffers[1], array.offset + i);
      if ((std::cmp_greater_equal(index, 0) && std::cmp_less(index, length)) || !validity.at(i)) {
        continue;
      }
      return report_item("layout.dictionary-indices-in-range", at, "indices", i,
                         "is not in the dictionary",
                         "0 or more and less than " + std::to_string(length), index);
    }
  }

  size_t most_;
  ArrayFindings findings_;
};

}  // namespace detail

/// Compares the contents of `array` with `schema`. Runs check_array first and stops if it has
/// findings. Then checks that:
///
/// - null_count equals the number of nulls in the validity bitmap;
/// - offsets are non-negative, in ascending order, and within the child;
/// - offsets and sizes of list views are within the child, including null slots;
/// - strings are UTF-8;
/// - views have a valid length, padding and prefix, and lie within a variadic buffer;
/// - run ends are positive and ascending, and reach the end of the array;
/// - type ids are in the format; offsets of a dense union are within the child and in order;
/// - indices are within the dictionary;
/// - run ends, and the entries and keys of a map, have no nulls.
///
/// Each check reports its first finding in an array. Values of null slots are skipped, except where
/// the columnar format requires them to be valid. A child is checked from its offset for its whole
/// length, whether or not the parent refers to all of it.
///
/// Reads buffers in host memory only (is_host_readable); for other devices it is equivalent to
/// check_array. Wait for the event first. The structs contain the sizes of variadic buffers only:
/// any other buffer that is shorter than length, offset and offsets imply is read past its end.
/// Runs in time linear in the size of the data.
///
/// Ownership, errors and threads: see check_array. The buffers must not be written during the call.
template <RawArray Raw>
Result<ArrayFindings> check_data(const ArrowSchema& schema, const Raw& array,
                                 size_t most = kMostFindings) noexcept {
  Result<ArrayFindings> found = check_array(schema, array, most);
  if (!found || !found->empty()) return found;
  if constexpr (std::is_same_v<Raw, ArrowDeviceArray>) {
    if (!is_host_readable(array.device_type)) return found;
  }
  return detail::guarded([&]() -> Result<ArrayFindings> {
    detail::DataCheck check((std::min)(most, kMostFindings));
    check.visit(schema, detail::base(array), {});
    return std::move(check).take();
  });
}

/// Like check_data, but returns EINVAL with the first finding. ENOMEM.
template <RawArray Raw>
Status verify_data(const ArrowSchema& schema, const Raw& array) noexcept {
  const Result<ArrayFindings> found = check_data(schema, array, 1);
  return found.ok() ? found->status() : Status(found.error());
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_CHECK_DATA_HPP

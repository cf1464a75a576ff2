// SPDX-License-Identifier: Apache-2.0
//
// Minimum buffer widths and child lengths for each type, as far as the structs show them. Columnar
// format, "Buffer listing for each layout" and the sections of the layouts.
#ifndef FLETCHING_DETAIL_ARRAY_SHAPE_HPP
#define FLETCHING_DETAIL_ARRAY_SHAPE_HPP

#include <cstdint>
#include <string>

#include "fletching/detail/checked.hpp"
#include "fletching/format.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Position of a node in the schema and array trees, with its parent's requirements.
struct TreePlace {
  static constexpr int64_t kRoot = -2;
  static constexpr int64_t kDictionary = -1;

  const TreePlace* parent = nullptr;
  int64_t index = kRoot;
  int64_t least_length = 0;
  TypeId parent_type = TypeId::kNull;
  int depth = 0;

  [[nodiscard]] TreePlace below(TypeId type, int64_t at, int64_t least = 0) const noexcept {
    return {this, at, least, type, depth + 1};
  }

  [[nodiscard]] std::string path(const char* root) const {
    if (parent == nullptr) return root;
    if (index == kDictionary) return parent->path(root) + ".dictionary";
    return parent->path(root) + ".children[" + std::to_string(index) + "]";
  }
};

/// Width of one value in a buffer. `bits` is 0 if the structs do not determine it.
struct BufferWidth {
  int64_t bits = 0;
  int64_t extra_values = 0;  // more than offset + length
  bool is_validity = false;
};

/// Returns the width of buffer `index`, which must be less than format.n_buffers.
constexpr BufferWidth buffer_width(const Format& format, int64_t index) noexcept {
  using enum TypeId;
  if (format.is_union()) return {index == 0 ? 8 : 32};
  if (index == 0) return {.bits = 1, .is_validity = true};
  switch (format.id) {
    case kBinary:
    case kString:
    case kList:
    case kMap:
      return index == 1 ? BufferWidth{32, 1} : BufferWidth{};
    case kLargeBinary:
    case kLargeString:
    case kLargeList:
      return index == 1 ? BufferWidth{64, 1} : BufferWidth{};
    case kListView:
      return {32};
    case kLargeListView:
      return {64};
    case kBinaryView:
    case kStringView:
      return {128};
    default:
      return {format.bit_width};
  }
}

/// Returns the minimum length of an array's children, where `values` is offset + length. For other
/// types the buffers determine it.
constexpr Size least_child_length(const Format& format, Size values) noexcept {
  switch (format.id) {
    case TypeId::kStruct:
    case TypeId::kSparseUnion:
      return values;
    case TypeId::kFixedSizeList:
      return multiply(values, format.size);
    case TypeId::kRunEndEncoded:
      return values.value_or(0) > 0 ? 1 : 0;
    default:
      return 0;
  }
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_ARRAY_SHAPE_HPP

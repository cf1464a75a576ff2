// SPDX-License-Identifier: Apache-2.0
//
// How the elements of a foreign tensor lie in memory: read, checked, put in order.
#ifndef FLETCHING_DETAIL_DLPACK_LAYOUT_HPP
#define FLETCHING_DETAIL_DLPACK_LAYOUT_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/detail/checked.hpp"
#include "fletching/dlpack_types.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

struct Dimension {
  std::int64_t extent;
  std::int64_t stride;  ///< in values, of which an element may have several
};

/// A tensor, checked and in our terms.
struct TensorLayout {
  ArrowType type;
  std::vector<Dimension> dimensions;
  std::int64_t values = 0;
  std::uint64_t bytes = 0;
};

inline Error bad_tensor(std::string_view what) {
  return {EINVAL, "DLTensor." + std::string(what) + "; hint: fix the producer"};
}

/// Strides of elements that lie side by side, the last dimension varying fastest.
inline void make_compact(std::vector<Dimension>& dimensions) noexcept {
  std::int64_t step = 1;
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    dimensions[i].stride = step;
    step = next_step(step, dimensions[i].extent);
  }
}

constexpr Size magnitude(std::int64_t value) noexcept {
  if (value == INT64_MIN) return {};
  return value < 0 ? -value : value;
}

/// Copies shape and strides. A stride that is never used becomes 0: it may have any value.
inline Status read_dimensions(const DLTensor& tensor, TensorLayout& out) {
  if (tensor.ndim < 0 || tensor.ndim > static_cast<std::int32_t>(kDlpackDimensions)) {
    return bad_tensor("ndim: out of range: expected 0 to " + std::to_string(kDlpackDimensions) +
                      ", got " + std::to_string(tensor.ndim));
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr)
    return bad_tensor("shape: NULL: expected ndim sizes");
  for (std::int32_t i = 0; i < tensor.ndim; ++i) {
    const std::int64_t extent = tensor.shape[i];
    if (extent < 0)
      return bad_tensor("shape: negative size: expected 0 or more, got " + std::to_string(extent));
    const bool taken = extent > 1 && tensor.strides != nullptr;
    out.dimensions.push_back({extent, taken ? tensor.strides[i] : 0});
  }
  return {};
}

/// Counts the values, and makes the ones within an element a dimension of their own.
inline Status count_values(bool has_strides, TensorLayout& out) {
  std::vector<Dimension>& dimensions = out.dimensions;
  bool empty = false;
  for (const Dimension& dimension : dimensions) empty |= dimension.extent == 0;
  Size values = empty ? 0 : out.type.repeat;
  for (const Dimension& dimension : dimensions) {
    if (!empty) values = multiply(values, dimension.extent);
  }
  const Size bytes = multiply(values, out.type.item_bytes);
  if (!values || !bytes)
    return bad_tensor("shape: size out of range: expected less than 2^63 bytes");
  out.values = *values;
  out.bytes = static_cast<std::uint64_t>(*bytes);
  if (out.type.repeat == 1) {
    if (!has_strides) make_compact(dimensions);
    return {};
  }
  for (Dimension& dimension : dimensions) {
    if (!multiply(magnitude(dimension.stride), out.type.repeat)) {
      return bad_tensor("strides: out of range: expected an offset below 2^63 bytes");
    }
    dimension.stride *= out.type.repeat;
  }
  // One element of several values is an array of length 1, too.
  if (dimensions.empty()) dimensions.push_back({1, 0});
  dimensions.push_back({out.type.repeat, 1});
  if (!has_strides) make_compact(dimensions);
  return {};
}

/// Whether the dimensions from `first` on are contiguous in the order of `order`.
inline bool is_compact(const std::vector<Dimension>& dimensions,
                       const std::vector<std::int32_t>& order, std::size_t first) noexcept {
  std::int64_t step = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const Dimension& dimension = dimensions[first + static_cast<std::size_t>(order[i])];
    if (dimension.extent > 1 && dimension.stride != step) return false;
    step = next_step(step, dimension.extent);
  }
  return true;
}

/// The inner dimensions in their own order.
inline std::vector<std::int32_t> plain_order(const std::vector<Dimension>& dimensions) {
  std::vector<std::int32_t> order;
  for (std::size_t i = 1; i < dimensions.size(); ++i) {
    order.push_back(static_cast<std::int32_t>(i - 1));
  }
  return order;
}

/// The order in which the dimensions behind the first one lie in memory, from the outside in; empty
/// when they have gaps or overlap, or have no order that `wanted` can express.
inline std::vector<std::int32_t> memory_order(const std::vector<Dimension>& dimensions,
                                              Dimensions wanted) {
  std::vector<std::int32_t> order = plain_order(dimensions);
  if (is_compact(dimensions, order, 1)) return order;
  if (wanted == Dimensions::kFixedSizeLists) return {};
  // Of a dimension of size 1 the stride says nothing: the outside is as good a place as any.
  const auto step = [&](std::int32_t axis) {
    const Dimension& dimension = dimensions[static_cast<std::size_t>(axis) + 1];
    return dimension.extent == 1 ? INT64_MAX : dimension.stride;
  };
  // By insertion, which is stable: there are few, and <algorithm> is a tenth of the compile time.
  for (std::size_t end = 1; end < order.size(); ++end) {
    for (std::size_t i = end; i > 0 && step(order[i - 1]) < step(order[i]); --i) {
      std::swap(order[i - 1], order[i]);
    }
  }
  return is_compact(dimensions, order, 1) ? order : std::vector<std::int32_t>{};
}

/// Where the first value is: an address, or a handle and how many values to skip.
struct Place {
  const void* buffer = nullptr;
  std::int64_t offset = 0;
};

/// EINVAL for an address that is none; ENOTSUP when the values are not aligned, which a copy fixes.
inline Result<Place> place(const DLTensor& tensor, const TensorLayout& layout) {
  if (layout.values == 0) return Place{};
  if (tensor.data == nullptr)
    return bad_tensor("data: NULL: expected an address, because there are elements");
  const auto item = static_cast<std::uint64_t>(layout.type.item_bytes);
  const Error unaligned{ENOTSUP, "DLTensor.data: not aligned: expected a multiple of " +
                                     std::to_string(item) +
                                     " bytes, the size of an element; hint: copy the tensor"};
  if (!is_address(tensor.device.device_type)) {
    if (tensor.byte_offset > INT64_MAX - layout.bytes) {
      return bad_tensor("byte_offset: out of range: expected less than 2^63");
    }
    if (tensor.byte_offset % item != 0) return unaligned;
    return Place{tensor.data, static_cast<std::int64_t>(tensor.byte_offset / item)};
  }
  const auto data = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (tensor.byte_offset > UINTPTR_MAX - data ||
      layout.bytes > UINTPTR_MAX - data - tensor.byte_offset) {
    return bad_tensor("byte_offset: out of range: expected an end within the address space");
  }
  const std::uintptr_t first = data + static_cast<std::uintptr_t>(tensor.byte_offset);
  if (first % item != 0) return unaligned;
  return Place{reinterpret_cast<const void*>(first), 0};
}

/// Copies the values one by one to `out`, the last dimension varying fastest.
inline void gather(const unsigned char* first, const TensorLayout& layout, std::byte* out) {
  const auto item = layout.type.item_bytes;
  std::vector<std::int64_t> index(layout.dimensions.size());
  std::int64_t at = 0;
  for (std::int64_t value = 0; value < layout.values; ++value) {
    std::memcpy(out + value * item, first + at * item, static_cast<std::size_t>(item));
    for (std::size_t i = index.size(); i-- > 0;) {
      const Dimension& dimension = layout.dimensions[i];
      if (++index[i] < dimension.extent) {
        at += dimension.stride;
        break;
      }
      at -= dimension.stride * (dimension.extent - 1);
      index[i] = 0;
    }
  }
}

/// Whether every value that the strides reach has an address.
inline bool fits_address_space(const DLTensor& tensor, const TensorLayout& layout) noexcept {
  Size before = 0;
  Size after = 1;
  for (const Dimension& dimension : layout.dimensions) {
    Size& side = dimension.stride < 0 ? before : after;
    side = add(side, multiply(magnitude(dimension.stride), dimension.extent - 1));
  }
  before = multiply(before, layout.type.item_bytes);
  after = multiply(after, layout.type.item_bytes);
  const auto data = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (!before || !after || tensor.byte_offset > UINTPTR_MAX - data) return false;
  const std::uintptr_t first = data + static_cast<std::uintptr_t>(tensor.byte_offset);
  return static_cast<std::uint64_t>(*before) <= first &&
         static_cast<std::uint64_t>(*after) <= UINTPTR_MAX - first;
}

using Bytes = std::unique_ptr<std::byte[]>;

/// The values, which have a place, in order in new memory.
inline Result<Bytes> copy_values(const DLTensor& tensor, const TensorLayout& layout) {
  if (!fits_address_space(tensor, layout)) {
    return bad_tensor("strides: out of range: expected elements within the address space");
  }
  // Where size_t has 32 bits, the cast below would cut the size.
  if (layout.bytes > PTRDIFF_MAX) return out_of_memory();
  Bytes bytes(new std::byte[static_cast<std::size_t>(layout.bytes)]);
  gather(static_cast<const unsigned char*>(tensor.data) + tensor.byte_offset, layout, bytes.get());
  return bytes;
}

/// How a tensor can be imported without a copy.
struct Arrangement {
  std::vector<std::int32_t> order;  ///< of the inner dimensions in memory
  Place place;
};

/// ENOTSUP when only a copy has the order or the alignment that Arrow needs.
inline Result<Arrangement> arrange(const DLTensor& tensor, const TensorLayout& layout,
                                   Dimensions wanted) {
  Result<Place> at = place(tensor, layout);
  if (!at) return std::move(at).error();
  const std::vector<Dimension>& dimensions = layout.dimensions;
  if (dimensions.empty() || layout.values == 0) return Arrangement{plain_order(dimensions), *at};
  std::vector<std::int32_t> order = memory_order(dimensions, wanted);
  std::int64_t cell = 1;
  for (std::size_t i = 1; i < dimensions.size(); ++i) cell *= dimensions[i].extent;
  const bool rows_follow = dimensions[0].extent == 1 || dimensions[0].stride == cell;
  if (order.size() + 1 == dimensions.size() && rows_follow) return Arrangement{order, *at};
  return Error{ENOTSUP,
               "DLTensor.strides: not contiguous: expected an order that Arrow can express; hint: "
               "copy the tensor"};
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_DLPACK_LAYOUT_HPP

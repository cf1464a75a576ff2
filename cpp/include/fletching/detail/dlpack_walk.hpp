// SPDX-License-Identifier: Apache-2.0
//
// The way down from an array to the values of its tensor, through the lists around them.
#ifndef FLETCHING_DETAIL_DLPACK_WALK_HPP
#define FLETCHING_DETAIL_DLPACK_WALK_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/abi.h"
#include "fletching/detail/checked.hpp"
#include "fletching/dlpack_types.hpp"
#include "fletching/extension.hpp"
#include "fletching/format.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// The dimensions that one level of lists adds, in the order of the tensor: how long each is, and
/// how far its neighbors are apart in elements of the level below.
struct TensorLevel {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
};

/// What is found on the way down from an array to its values.
struct TensorView {
  std::vector<TensorLevel> levels;
  DLDataType type{};
  Format format;  ///< of the values; points into their schema
  const void* buffer = nullptr;
  std::int64_t first = 0;  ///< the first element, counted from `buffer` on
  std::int64_t count = 0;  ///< of elements
};

/// A level whose elements lie in order.
inline TensorLevel plain_level(std::int64_t extent) { return {{extent}, {1}}; }

/// The level of a tensor's dimensions: `shape` as it is in memory, permuted by `permutation`.
inline TensorLevel permuted_level(const TensorShape& tensor) {
  std::vector<std::int64_t> steps(tensor.shape.size());
  std::int64_t step = 1;
  for (std::size_t i = steps.size(); i-- > 0;) {
    steps[i] = step;
    step = next_step(step, tensor.shape[i]);
  }
  TensorLevel level;
  for (const std::int32_t axis : tensor.permutation) {
    level.extents.push_back(tensor.shape[static_cast<std::size_t>(axis)]);
    level.strides.push_back(steps[static_cast<std::size_t>(axis)]);
  }
  return level;
}

inline Size product(const std::vector<std::int64_t>& extents) noexcept {
  Size elements = 1;
  for (const std::int64_t extent : extents) elements = multiply(elements, size_of(extent));
  return elements;
}

/// Whether bits `first` to `first + count - 1` are all set. The sum must not overflow.
inline bool all_set(const void* bitmap, std::int64_t first, std::int64_t count) noexcept {
  const auto* bytes = static_cast<const unsigned char*>(bitmap);
  for (std::int64_t i = first; i < first + count; ++i) {
    if ((bytes[i / 8] & (1U << static_cast<unsigned>(i % 8))) == 0) return false;
  }
  return true;
}

/// A time or a time difference as NumPy has it: 64 bits, no time zone.
constexpr bool is_numpy_time(const Format& format) noexcept {
  return format.id == TypeId::kDuration ||
         (format.id == TypeId::kTimestamp && format.timezone.empty());
}

/// What a walk accepts.
struct WalkOptions {
  Nulls nulls = Nulls::kRefuse;
  bool as_storage = false;     ///< types that are not the target's
  bool host_readable = false;  ///< the host may read the validity bitmaps now
  bool numpy_times = false;    ///< the target has the types of is_numpy_time
  bool mask = false;           ///< the target describes the nulls of the outermost array
};

/// Walks down one array. The memory is touched for nothing but validity bitmaps that the host
/// reads. Nothing of a released struct is read but `release`.
class TensorWalk {
 public:
  explicit TensorWalk(const WalkOptions& options) noexcept : options_(options) {}

  Result<TensorView> run(const ArrowSchema& schema, const ArrowArray& array) {
    const Size first = size_of(array.offset);
    if (!first || array.length < 0)
      return malformed("length or offset is negative: expected 0 or more");
    Status walked = push(plain_level(array.length));
    if (walked) walked = level(schema, array, *first, array.length);
    if (!walked) return std::move(walked).error();
    return std::move(view_);
  }

 private:
  static Error malformed(std::string_view what) {
    return {EINVAL, "ArrowArray: " + std::string(what) + "; hint: fix the producer"};
  }

  /// An error when the struct, or its dictionary, is released. `name` is its type's.
  template <class Base>
  Status check_alive(const char* name, const Base& node) const {
    const char* released = nullptr;
    if (node.release == nullptr) {
      released = "";
    } else if (node.dictionary != nullptr && node.dictionary->release == nullptr) {
      released = ".dictionary";
    }
    if (released == nullptr) return {};
    std::string path = name;
    for (std::size_t i = 1; i < view_.levels.size(); ++i) path += ".children[0]";
    return Error{EINVAL, path + released + ": released: expected a live struct, got release NULL"};
  }

  /// The elements from `first` on, counted from the beginning of the array's buffers.
  Status level(const ArrowSchema& schema, const ArrowArray& array, std::int64_t first,
               std::int64_t count) {
    Status alive = check_alive("ArrowSchema", schema);
    if (alive) alive = check_alive("ArrowArray", array);
    if (!alive) return alive;
    if (!add(first, count)) {
      return Error{EINVAL, "ArrowArray: offset plus length out of range: expected at most " +
                               std::to_string(INT64_MAX) + ", got " + std::to_string(first) +
                               " + " + std::to_string(count)};
    }
    Result<Format> format = parse_format(schema.format);
    if (!format) return std::move(format).error();
    if (array.n_buffers < format->n_buffers || (array.buffers == nullptr && array.n_buffers > 0)) {
      return malformed("n_buffers is too small for format " + quote(schema.format) +
                       ": expected at least " + std::to_string(format->n_buffers) + ", got " +
                       std::to_string(array.buffers == nullptr ? 0 : array.n_buffers));
    }
    if (schema.dictionary != nullptr && !options_.as_storage) {
      return not_exported(schema.format, "the values are indices into a dictionary", true);
    }
    Result<Extension> extension = find_extension(schema);
    if (!extension) return std::move(extension).error();
    if (format->id == TypeId::kFixedSizeList)
      return list(schema, array, *format, *extension, first, count);
    return leaf(schema, array, *format, *extension, first, count);
  }

  Status check_nulls(const ArrowArray& array, std::int64_t first, std::int64_t count) const {
    if (options_.nulls == Nulls::kIgnore || array.null_count == 0) return {};
    const void* bitmap = array.buffers[0];
    if (bitmap == nullptr && array.null_count > 0) {
      return malformed("validity bitmap is NULL: expected one, because null_count is " +
                       std::to_string(array.null_count));
    }
    const bool is_outermost = view_.levels.size() == 1;
    if (bitmap == nullptr || count == 0 || (options_.mask && is_outermost)) return {};
    if (options_.host_readable && all_set(bitmap, first, count)) return {};
    return Error{
        ENOTSUP,
        std::string("ArrowArray: ") +
            (options_.host_readable || array.null_count > 0 ? "has nulls" : "may have nulls") +
            ": expected none in a tensor; hint: fill them, or pass Nulls::kIgnore"};
  }

  Status list(const ArrowSchema& schema, const ArrowArray& array, const Format& format,
              const Extension& extension, std::int64_t first, std::int64_t count) {
    if (schema.n_children != 1 || schema.children == nullptr || schema.children[0] == nullptr ||
        array.n_children != 1 || array.children == nullptr || array.children[0] == nullptr) {
      return malformed("children of a fixed-size list: expected one, got " +
                       std::to_string(array.n_children));
    }
    Status valid = check_nulls(array, first, count);
    if (!valid) return valid;
    const ArrowArray& child = *array.children[0];
    const Size end = multiply(add(first, count), format.size);
    if (!end || child.length < *end || !add(size_of(child.offset), end)) {
      return malformed(
          "child of a fixed-size list is too short: expected length * list size elements");
    }
    Status pushed = push_list(format.size, extension);
    if (!pushed) return pushed;
    return level(*schema.children[0], child, child.offset + first * format.size,
                 count * format.size);
  }

  /// Adds dimensions. Their number is bounded, and with it how deep the walk goes.
  Status push(TensorLevel level) {
    dimensions_ += level.extents.size();
    if (dimensions_ > kDlpackDimensions) {
      return Error{ENOTSUP, "tensor: too many dimensions: expected at most " +
                                std::to_string(kDlpackDimensions) +
                                "; hint: export the values of the inner lists"};
    }
    view_.levels.push_back(std::move(level));
    return {};
  }

  Status push_list(std::int32_t size, const Extension& extension) {
    if (extension.name != kFixedShapeTensorName) {
      if (!extension.name.empty() && !options_.as_storage) return unknown_extension(extension);
      return push(plain_level(size));
    }
    Result<TensorShape> tensor = parse_tensor_shape(extension.metadata);
    if (!tensor) return std::move(tensor).error();
    if (product(tensor->shape) != Size{size}) {
      return malformed(
          "list size of arrow.fixed_shape_tensor differs from its shape: expected the product of "
          "the sizes, got " +
          std::to_string(size));
    }
    return push(permuted_level(*tensor));
  }

  static Error unknown_extension(const Extension& extension) {
    return {
        ENOTSUP,
        "ArrowSchema: extension type " + quote(extension.name) +
            " would be lost: expected a plain type; hint: pass as_storage to export the storage"};
  }

  Status leaf(const ArrowSchema& schema, const ArrowArray& array, const Format& format,
              const Extension& extension, std::int64_t first, std::int64_t count) {
    const bool is_type = options_.numpy_times && is_numpy_time(format);
    Result<DlpackType> type = dlpack_type(schema.format, format, options_.as_storage || is_type);
    if (!type) return std::move(type).error();
    if (extension.name == kBool8) {
      if (format.id != TypeId::kInt8)
        return malformed("storage of arrow.bool8 differs: expected int8");
      type->type.code = kDLBool;
    } else if (!extension.name.empty() && !options_.as_storage) {
      return unknown_extension(extension);
    }
    Status valid = check_nulls(array, first, count);
    if (!valid) return valid;
    if (format.id == TypeId::kFixedSizeBinary) {
      Status pushed = push(plain_level(type->repeat));
      if (!pushed) return pushed;
    }
    const Size scaled_first = multiply(first, type->repeat);
    const Size scaled_count = multiply(count, type->repeat);
    const Size bytes = multiply(add(scaled_first, scaled_count), type->type.bits / 8);
    if (!bytes || !scaled_first || !scaled_count) {
      return malformed("size out of range: expected less than 2^63 bytes");
    }
    view_.type = type->type;
    view_.format = format;
    view_.buffer = array.buffers[1];
    view_.first = *scaled_first;
    view_.count = *scaled_count;
    if (view_.buffer == nullptr && view_.count > 0)
      return malformed("buffers[1] is NULL: expected values");
    return {};
  }

  WalkOptions options_;
  TensorView view_;
  std::size_t dimensions_ = 0;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_DLPACK_WALK_HPP

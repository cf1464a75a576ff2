// SPDX-License-Identifier: Apache-2.0
//
// Computes the capacity of an array builder from a schema.
#ifndef FLETCHING_ARRAY_CAPACITY_HPP
#define FLETCHING_ARRAY_CAPACITY_HPP

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "fletching/abi.h"
#include "fletching/array_builder.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/detail/ownership/tree.hpp"
#include "fletching/format.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Returns the capacity for an array of `schema`: one struct per child and dictionary, and the
/// buffers of every type. A column of views ("vu", "vz") counts its validity, its views and the
/// sizes of its variadic buffers. `variadic_buffers` is the total number of variadic buffers in all
/// columns, which a schema does not contain.
///
/// Errors: EINVAL if the schema or one of its children is released, a child is NULL, a format is
/// not defined by the specification, or `variadic_buffers` is negative; ENOMEM.
///
/// Source: Arrow C data interface, "Data type description"; columnar format, "Buffer listing for
/// each layout".
inline Result<ArrayCapacity> capacity_for(const ArrowSchema& schema,
                                          int64_t variadic_buffers = 0) noexcept {
  return detail::guarded([&]() -> Result<ArrayCapacity> {
    if (variadic_buffers < 0) {
      return Error(EINVAL, "capacity_for: variadic_buffers is negative: expected 0 or more, got " +
                               std::to_string(variadic_buffers));
    }
    ArrayCapacity capacity{.arrays = -1};  // the array itself is not counted
    detail::Size buffers = variadic_buffers;
    std::optional<Error> error;
    const auto count = [&](const ArrowSchema& node) -> const char* {
      if (node.release == nullptr) return "is released";
      Result<Format> format = parse_format(node.format);
      if (!format) return error = std::move(format).error(), "has an unknown format";
      ++capacity.arrays;
      buffers = detail::add(buffers, format->n_buffers + (format->is_view() ? 1 : 0));
      return nullptr;
    };
    const Status counted = detail::walk("capacity_for", &schema, count);
    if (error) return *std::move(error);
    if (!counted) return counted.error();
    if (!buffers) return Error(EINVAL, "capacity_for: variadic_buffers is too large");
    capacity.buffers = *buffers;
    return capacity;
  });
}

/// Returns a builder for an array of `schema` whose data `object` owns: see ArrayBuilder and
/// capacity_for. The schema is not kept, and the array is not compared with it: see check_array.
///
/// Errors: the errors of capacity_for and ArrayBuilder::make. On error the caller still owns
/// `object`.
template <class Object>
Result<ArrayBuilder<Object>> build_array_for(const ArrowSchema& schema, Object&& object,
                                             int64_t variadic_buffers = 0) noexcept {
  const Result<ArrayCapacity> capacity = capacity_for(schema, variadic_buffers);
  if (!capacity) return capacity.error();
  return build_array(*capacity, std::forward<Object>(object));
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_ARRAY_CAPACITY_HPP

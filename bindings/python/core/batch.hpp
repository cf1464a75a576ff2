// SPDX-License-Identifier: Apache-2.0
//
// The batches that a Python producer passes to a stream.
#ifndef FLETCHING_PYTHON_BATCH_HPP
#define FLETCHING_PYTHON_BATCH_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "array_common.hpp"
#include "fletching/detail/type_difference.hpp"

namespace fletching::python {

/// Returns a view of batch `number` of a stream of `schema`. Imports objects of other libraries
/// with from_arrow. Raises Error with EINVAL if the batch has another type.
template <class Object>
auto view_of_batch(nb::handle batch, const ArrowSchema& schema, int64_t number,
                   const char* operation) {
  nb::object converted = nb::borrow(batch);
  if (!nb::isinstance<Object>(batch)) converted = nb::type<Object>().attr("from_arrow")(batch);
  const auto& array = nb::cast<const Object&>(converted);
  const std::string difference = detail::type_difference(schema, schema_of(array));
  if (!difference.empty()) {
    raise(Error(EINVAL,
                std::string(operation) + ": batch " + std::to_string(number) + ": " + difference));
  }
  return unwrap(array.shared->view());
}

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_BATCH_HPP

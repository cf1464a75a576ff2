// SPDX-License-Identifier: Apache-2.0
//
// Values that a type does not allow to be null: map entries, map keys, and run ends.
#ifndef FLETCHING_PYTHON_REQUIRED_VALUES_HPP
#define FLETCHING_PYTHON_REQUIRED_VALUES_HPP

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "fletching/check_array.hpp"
#include "python.hpp"

namespace fletching::python {

/// Counts the nulls of an array in host memory.
inline int64_t count_nulls(const void* validity, int64_t offset, int64_t length) noexcept {
  if (validity == nullptr) return 0;
  const auto* bits = static_cast<const uint8_t*>(validity);
  int64_t nulls = 0;
  for (int64_t i = offset; i < offset + length; ++i) {
    nulls += (bits[i / 8] >> (i % 8) & 1) == 0 ? 1 : 0;
  }
  return nulls;
}

/// Returns whether a valid schema has values that must not be null.
inline bool has_required_values(const ArrowSchema& schema) noexcept {
  const std::string_view format(schema.format);
  if (format == "+m" || format == "+r") return true;
  for (int64_t i = 0; i < schema.n_children; ++i) {
    if (has_required_values(*schema.children[i])) return true;
  }
  return schema.dictionary != nullptr && has_required_values(*schema.dictionary);
}

/// Raises Error for such nulls if a null_count of -1 hides them from check_array. The array must
/// have passed check_array and be in host memory.
inline void refuse_hidden_nulls(const std::string& operation, const ArrowSchema& schema,
                                const ArrowArray& array) {
  const auto require = [&](const ArrowArray& child, const char* what) {
    if (child.null_count >= 0 || child.n_buffers == 0) return;
    const int64_t nulls = count_nulls(child.buffers[0], child.offset, child.length);
    if (nulls == 0) return;
    raise(Error(EINVAL, operation + ": null_count of " + what + ": expected 0, got " +
                            std::to_string(nulls)));
  };
  const std::string_view format(schema.format);
  if (format == "+m") {
    require(*array.children[0], "a map's entries");
    require(*array.children[0]->children[0], "a map's keys");
  } else if (format == "+r") {
    require(*array.children[0], "run ends");
  }
  for (int64_t i = 0; i < schema.n_children; ++i) {
    refuse_hidden_nulls(operation, *schema.children[i], *array.children[i]);
  }
  if (schema.dictionary != nullptr) {
    refuse_hidden_nulls(operation, *schema.dictionary, *array.dictionary);
  }
}

/// Checks a foreign producer's array if its schema, which must be valid, has such values: other
/// libraries would terminate the process on a null. If the host cannot read the array yet, checks
/// only the structs.
template <class Raw>
void check_required_values(const std::string& operation, const ArrowSchema& schema,
                           const Raw& raw) {
  if (!has_required_values(schema)) return;
  const Status sound = verify_array(schema, raw);
  if (!sound.ok()) raise(Error(EINVAL, operation + ": " + sound.error().message()));
  if constexpr (std::same_as<Raw, ArrowDeviceArray>) {
    if (raw.device_type != ARROW_DEVICE_CPU || raw.sync_event != nullptr) return;
  }
  refuse_hidden_nulls(operation, schema, detail::base(raw));
}

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_REQUIRED_VALUES_HPP

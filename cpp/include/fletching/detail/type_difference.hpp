// SPDX-License-Identifier: Apache-2.0
//
// Compares the types of two schemas: a stream's and a batch's.
#ifndef FLETCHING_DETAIL_TYPE_DIFFERENCE_HPP
#define FLETCHING_DETAIL_TYPE_DIFFERENCE_HPP

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "fletching/abi.h"
#include "fletching/detail/ownership/tree.hpp"
#include "fletching/detail/text.hpp"
#include "fletching/format.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Position of a field, for a message.
struct FieldPlace {
  const FieldPlace* parent = nullptr;  // NULL at the root
  std::string_view name;

  [[nodiscard]] std::string path() const {
    if (parent == nullptr) return {};
    std::string above = parent->path();
    return (above.empty() ? above : above + ".").append(printable(name));
  }
  [[nodiscard]] std::string refuse(std::string_view what, const std::string& expected,
                                   const std::string& got) const {
    const std::string field = path();
    std::string text = field.empty() ? "" : "field \"" + field + "\": ";
    return text.append("expected ").append(what) + expected + ", got " + got;
  }
};

/// Whether two lists of numbers are equal, for example "0,5" and "0,05".
inline bool same_type_ids(std::string_view a, std::string_view b) noexcept {
  while (!a.empty() && !b.empty()) {
    std::int32_t first = 0;
    std::int32_t second = 0;
    if (!take_int32(a, first) || !take_int32(b, second) || first != second) return false;
  }
  return a.empty() && b.empty();
}

/// Whether two format strings denote the same type, for example "d:10,2" and "d:10,2,128". An
/// unpublished format string is equal only to itself.
inline bool same_format(const char* a, const char* b) noexcept {
  if (std::strcmp(a, b) == 0) return true;
  const Result<Format> first = parse_format(a);
  const Result<Format> second = parse_format(b);
  if (!first || !second) return false;
  return first->id == second->id && first->unit == second->unit &&
         first->bit_width == second->bit_width && first->precision == second->precision &&
         first->scale == second->scale && first->size == second->size &&
         first->timezone == second->timezone && same_type_ids(first->type_ids, second->type_ids);
}

/// Returns the first difference of two types: `field "a.items": expected format "g", got "l"`.
/// Empty if the types are equal. Compares the meaning of formats, the numbers of children and the
/// dictionaries; ignores names, metadata and flags. Both schemas must be well-formed, see walk().
/// Throws std::bad_alloc.
inline std::string type_difference(const ArrowSchema& expected, const ArrowSchema& got,
                                   const FieldPlace& place = {}) {
  if (&expected == &got) return {};
  if (!same_format(expected.format, got.format)) {
    return place.refuse("format ", quote(expected.format), quote(got.format));
  }
  if (expected.n_children != got.n_children) {
    return place.refuse("number of children ", std::to_string(expected.n_children),
                        std::to_string(got.n_children));
  }
  for (int64_t i = 0; i < expected.n_children; ++i) {
    const ArrowSchema& child = *expected.children[i];
    const bool is_named = child.name != nullptr && *child.name != '\0';
    const std::string number = is_named ? std::string() : std::to_string(i);
    const FieldPlace below{&place, is_named ? std::string_view(child.name) : number};
    std::string found = type_difference(child, *got.children[i], below);
    if (!found.empty()) return found;
  }
  if ((expected.dictionary == nullptr) != (got.dictionary == nullptr)) {
    const auto say = [](const ArrowSchema& schema) -> std::string {
      return schema.dictionary == nullptr ? "no dictionary" : "a dictionary";
    };
    return place.refuse("", say(expected), say(got));
  }
  if (expected.dictionary == nullptr) return {};
  return type_difference(*expected.dictionary, *got.dictionary, {&place, "dictionary"});
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_TYPE_DIFFERENCE_HPP

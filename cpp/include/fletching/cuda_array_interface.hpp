// SPDX-License-Identifier: Apache-2.0
//
// Checks of CUDA Array Interface descriptions. The structs are in cuda_array_description.hpp, the
// keys and type strings in cuda_array_tables.hpp (generated). The checks do not access device
// memory or need a GPU. Synchronization and lifetime, which a description does not show, are
// covered by the rules in docs/reference/rules/cuda-array-interface.md.
//
// Functions that return a string or a vector may throw std::bad_alloc. No other exceptions are
// thrown.

#ifndef FLETCHING_CUDA_ARRAY_INTERFACE_HPP
#define FLETCHING_CUDA_ARRAY_INTERFACE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/detail/cuda_array/description.hpp"
#include "fletching/detail/cuda_array/tables.hpp"
#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::cuda_array_interface {

/// A rule violation in a description.
struct Violation {
  std::string_view rule;  ///< the rule's id, "cuda-array-interface.stream-zero"
  std::string key;        ///< the key: "stream", or "mask.stream" for the mask's key
  Severity severity;
  std::string found;      ///< the actual value, for a message
  std::string_view hint;  ///< a suggested fix
};

namespace detail {

/// A number of bytes or elements; empty on 64-bit overflow.
using Amount = std::optional<std::uint64_t>;

constexpr Amount add(Amount a, Amount b) noexcept {
  if (!a || !b || *a > UINT64_MAX - *b) return {};
  return *a + *b;
}

constexpr Amount multiply(Amount a, Amount b) noexcept {
  if (a == Amount{0} || b == Amount{0}) return 0;
  if (!a || !b || *a > UINT64_MAX / *b) return {};
  return *a * *b;
}

/// The number of elements of a shape without negative sizes.
constexpr Amount product(std::span<const std::int64_t> shape) noexcept {
  Amount elements = 1;
  for (const std::int64_t size : shape) {
    elements = multiply(elements, static_cast<std::uint64_t>(size));
  }
  return elements;
}

constexpr bool has_negative(std::span<const std::int64_t> shape) noexcept {
  return std::ranges::any_of(shape, [](std::int64_t size) { return size < 0; });
}

constexpr std::int64_t key_since(std::string_view name) noexcept {
  for (const Key& key : kKeys) {
    if (key.name == name) return key.since;
  }
  return kVersion + 1;
}

/// An array during a check.
struct Array {
  const Interface& says;
  int depth;  // number of enclosing masks: 0 for the checked array
  std::optional<Typestr> type = parse_typestr(says.typestr);

  [[nodiscard]] bool version_known() const noexcept {
    return says.version >= 0 && says.version <= kVersion;
  }

  /// The version whose rules apply to the array.
  [[nodiscard]] std::int64_t judged_as() const noexcept {
    return version_known() ? says.version : kVersion;
  }

  [[nodiscard]] const Interface* mask() const noexcept {
    return judged_as() >= key_since("mask") ? says.mask : nullptr;
  }

  [[nodiscard]] bool has_elements() const noexcept {
    return !has_negative(says.shape) && product(says.shape) != Amount{0};
  }
};

using Found = std::optional<std::string>;  // the violating value; empty if the rule holds

inline std::string quote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text.substr(0, 40)) quoted += c >= ' ' && c <= '~' ? c : '?';
  return quoted + (text.size() > 40 ? "...'" : "'");
}

inline std::string show_shape(std::span<const std::int64_t> shape) {
  std::string text = "shape (";
  for (std::size_t i = 0; i < (std::min<std::size_t>)(shape.size(), 8); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + (shape.size() > 8 ? ", ...)" : ")");
}

inline Found shape_sizes(const Array& array) {
  for (const std::int64_t size : array.says.shape) {
    if (size < 0) return std::to_string(size);
  }
  return {};
}

inline Found typestr_grammar(const Array& array) {
  if (array.type) return {};
  return quote(array.says.typestr);
}

inline Found typestr_order(const Array& array) {
  if (!array.type || array.type->order != kIrrelevant) return {};
  const std::optional<Kind> kind = find_kind(array.type->kind);
  if (!kind || !kind->ordered || array.type->item_bytes() <= 1) return {};
  return quote(array.says.typestr);
}

inline Found typestr_size(const Array& array) {
  if (!array.type || !array.type->number) return {};
  const std::optional<Kind> kind = find_kind(array.type->kind);
  const std::uint64_t size = *array.type->number;
  if (!kind || kind->sizes[0] == 0 || (size != 0 && contains(kind->sizes, size))) return {};
  return quote(array.says.typestr);
}

inline Found data_pointer(const Array& array) {
  const bool something_to_read = array.has_elements() && array.type && array.type->item_bytes() > 0;
  if (array.says.pointer != 0 || !something_to_read) return {};
  return "0";
}

inline Found data_zero_size(const Array& array) {
  if (array.says.pointer == 0 || has_negative(array.says.shape) || array.has_elements()) return {};
  return std::to_string(array.says.pointer);
}

inline Found data_extent(const Array& array) {
  const Interface& says = array.says;
  if (says.pointer == 0 || !array.has_elements() || !array.type || array.type->item_bytes() == 0) {
    return {};
  }
  Amount before = 0;
  Amount after = array.type->item_bytes();
  if (!says.strides) {
    after = multiply(after, product(says.shape));
  } else if (says.strides->size() == says.shape.size()) {
    for (std::size_t i = 0; i < says.shape.size(); ++i) {
      const auto stride = static_cast<std::uint64_t>((*says.strides)[i]);
      const bool backwards = (*says.strides)[i] < 0;
      Amount& reach = backwards ? before : after;
      reach = add(reach, multiply(backwards ? 0 - stride : stride,
                                  static_cast<std::uint64_t>(says.shape[i]) - 1));
    }
  }
  const std::uint64_t room = UINT64_MAX - says.pointer + 1;
  if (before && after && *before <= says.pointer && *after <= room) return {};
  return "elements outside of the address space";
}

inline Found version_known(const Array& array) {
  if (array.version_known()) return {};
  return std::to_string(array.says.version);
}

inline Found version_keys(const Array& array) {
  std::string newer;
  if (array.says.mask != nullptr && key_since("mask") > array.judged_as()) newer += "mask, ";
  if (array.says.stream && key_since("stream") > array.judged_as()) newer += "stream, ";
  if (newer.empty()) return {};
  return newer.substr(0, newer.size() - 2) + " in version " + std::to_string(array.judged_as());
}

inline Found strides_length(const Array& array) {
  const Interface& says = array.says;
  if (!says.strides || says.strides->size() == says.shape.size()) return {};
  return std::to_string(says.strides->size()) + " strides, " + std::to_string(says.shape.size()) +
         " dimensions";
}

/// The result of a walk through the fields of an element.
struct Fields {
  Amount bytes = 0;
  std::size_t count = 0;
  Found wrong;
};

inline void walk(std::span<const Field> fields, Amount times, int depth, Fields& out) {
  for (const Field& field : fields) {
    if (out.wrong) return;
    if (++out.count > kFields || depth > kLists) {
      out.wrong = "more than " + std::to_string(kFields) + " fields, or " + std::to_string(kLists) +
                  " lists within each other";
      return;
    }
    if (has_negative(field.shape)) {
      out.wrong = "a field with the " + show_shape(field.shape);
      return;
    }
    const Amount repeats = multiply(times, product(field.shape));
    const std::optional<Typestr> type = parse_typestr(field.typestr);
    if (type) {
      out.bytes = add(out.bytes, multiply(repeats, type->item_bytes()));
    } else if (field.typestr.empty()) {
      walk({field.fields, field.field_count}, repeats, depth + 1, out);
    } else {
      out.wrong = "a field of type " + quote(field.typestr);
    }
  }
}

inline Fields walk(const Array& array) {
  Fields fields;
  if (array.says.descr) walk(*array.says.descr, 1, 0, fields);
  return fields;
}

inline Found descr_list(const Array& array) { return walk(array).wrong; }

inline Found descr_size(const Array& array) {
  const Fields fields = walk(array);
  if (!array.says.descr || !array.type || fields.wrong) return {};
  if (fields.bytes == Amount{array.type->item_bytes()}) return {};
  return "fields of " + (fields.bytes ? std::to_string(*fields.bytes) : "too many") +
         " bytes, elements of " + std::to_string(array.type->item_bytes());
}

inline Found mask_shape(const Array& array) {
  const Interface* mask = array.depth < kMasks ? array.mask() : nullptr;
  if (mask == nullptr) return {};
  const std::span<const std::int64_t> whole = array.says.shape;
  bool broadcasts = mask->shape.size() <= whole.size();
  for (std::size_t i = 1; broadcasts && i <= mask->shape.size(); ++i) {
    const std::int64_t size = mask->shape[mask->shape.size() - i];
    broadcasts = size == 1 || size == whole[whole.size() - i];
  }
  if (broadcasts) return {};
  return "a mask of " + show_shape(mask->shape) + " for " + show_shape(whole);
}

inline Found mask_nesting(const Array& array) {
  if (array.depth < kMasks || array.mask() == nullptr) return {};
  return "more than " + std::to_string(kMasks) + " masks within each other";
}

inline Found stream_zero(const Array& array) {
  const auto& stream = array.says.stream;
  if (!stream || !contains(kRefusedStreams, *stream)) return {};
  return std::to_string(*stream);
}

inline Found stream_handle(const Array& array) {
  const std::int64_t stream = array.says.stream.value_or(0);
  if (stream >= 0) return {};
  return std::to_string(stream);
}

/// Returns the value that violates the rule of a check; empty if the rule holds.
inline Found find(Check check, const Array& array) {
  switch (check) {
    case Check::kShapeSizes:
      return shape_sizes(array);
    case Check::kTypestrGrammar:
      return typestr_grammar(array);
    case Check::kTypestrOrder:
      return typestr_order(array);
    case Check::kTypestrSize:
      return typestr_size(array);
    case Check::kDataPointer:
      return data_pointer(array);
    case Check::kDataZeroSize:
      return data_zero_size(array);
    case Check::kDataExtent:
      return data_extent(array);
    case Check::kVersionKnown:
      return version_known(array);
    case Check::kVersionKeys:
      return version_keys(array);
    case Check::kStridesLength:
      return strides_length(array);
    case Check::kDescrList:
      return descr_list(array);
    case Check::kDescrSize:
      return descr_size(array);
    case Check::kMaskShape:
      return mask_shape(array);
    case Check::kMaskNesting:
      return mask_nesting(array);
    case Check::kStreamZero:
      return stream_zero(array);
    case Check::kStreamHandle:
      return stream_handle(array);
  }
  return {};
}

}  // namespace detail

/// Returns the violations of a description; empty if it is valid. Applies the rules of the
/// description's version, or of the newest version if that is unknown. `rules` limits the checks.
inline std::vector<Violation> check(const Interface& description,
                                    std::span<const Rule> rules = kRules) {
  std::vector<Violation> violations;
  std::string path;
  const Interface* says = &description;
  for (int depth = 0; says != nullptr && depth <= detail::kMasks; ++depth) {
    const detail::Array array{*says, depth};
    for (const Rule& rule : rules) {
      if (array.judged_as() < rule.since) continue;
      if (detail::Found found = detail::find(rule.check, array)) {
        violations.push_back(
            {rule.id, path + std::string(rule.key), rule.severity, *std::move(found), rule.hint});
      }
    }
    says = array.mask();
    path += "mask.";
  }
  return violations;
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::cuda_array_interface

#endif  // FLETCHING_CUDA_ARRAY_INTERFACE_HPP

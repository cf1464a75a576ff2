// SPDX-License-Identifier: Apache-2.0
//
// Compares an array with its schema by the fields of the structs, without reading a buffer.
#ifndef FLETCHING_CHECK_ARRAY_HPP
#define FLETCHING_CHECK_ARRAY_HPP

#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/abi.h"
#include "fletching/detail/array_shape.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/detail/ownership/tree.hpp"
#include "fletching/detail/type_difference.hpp"
#include "fletching/format.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// One mismatch in an array, or one error in its schema.
struct ArrayFinding {
  /// The id of the violated rule in docs/reference/rules, or "limit.depth" and "limit.structs" for
  /// arrays beyond this library's limits (256 levels, 2^22 structs).
  std::string_view rule;
  std::string path;     ///< "array.children[2].dictionary", "schema.children[0]"
  std::string message;  ///< "n_buffers is wrong: expected 2, got 3"
};

/// The result of check_array. Empty for an array that matches its schema.
struct ArrayFindings {
  using is_tested = void;  // `if (check_array(...))` would read as "there are findings"
  std::vector<ArrayFinding> list;
  bool more = false;  ///< the check stopped at the maximum; there may be more findings

  [[nodiscard]] bool empty() const noexcept { return list.empty() && !more; }

  /// Returns success, or EINVAL with the message of every finding: "array.children[1]: n_buffers is
  /// wrong: expected 2, got 3 (rule array.n-buffers-of-type); ...". ENOMEM.
  [[nodiscard]] Status status() const noexcept {
    if (empty()) return {};
    return detail::error_with(EINVAL, [&] {
      std::string text;
      for (const ArrayFinding& finding : list) {
        text.append(text.empty() ? "" : "; ").append(finding.path).append(": ");
        text.append(finding.message).append(" (rule ").append(finding.rule).append(")");
      }
      return more ? text.append("; and more") : text;
    });
  }
};

namespace detail {

/// The traversal of check_array. Allocates, and may throw, only to report a finding.
class ArrayCheck {
 public:
  explicit ArrayCheck(size_t most) noexcept : most_(most) {}

  void visit(const ArrowSchema* schema, const ArrowArray* array, const TreePlace& at) {
    if (findings_.more || !is_alive(schema, array, at)) return;
    const Result<Format> format = parse_format(schema->format);
    if (!format) return bad_format(*schema, format.error(), at);
    if (!fits_parent(*schema, *format, at)) return;
    const Size values = check_values(*array, at);
    check_nulls(*format, *array, at);
    check_buffers(*format, *array, values, at);
    check_children(*schema, *format, *array, values, at);
    check_dictionary(*schema, *format, *array, at);
  }

  [[nodiscard]] ArrayFindings take() && noexcept { return std::move(findings_); }

 private:
  FLETCHING_DETAIL_COLD void report(const char* root, std::string_view rule, const TreePlace& at,
                                    std::string message) {
    if (findings_.list.size() == most_) {
      findings_.more = true;
    } else {
      findings_.list.push_back({rule, at.path(root), std::move(message)});
    }
  }
  FLETCHING_DETAIL_COLD void in_array(std::string_view rule, const TreePlace& at,
                                      std::string message) {
    report("array", rule, at, std::move(message));
  }
  FLETCHING_DETAIL_COLD void in_schema(std::string_view rule, const TreePlace& at,
                                       std::string message) {
    report("schema", rule, at, std::move(message));
  }
  FLETCHING_DETAIL_COLD static std::string expected(const char* what, const std::string& wanted,
                                                    int64_t got) {
    return std::string(what) + ": expected " + wanted + ", got " + std::to_string(got);
  }

  bool is_alive(const ArrowSchema* schema, const ArrowArray* array, const TreePlace& at) {
    if (at.depth == kMaxDepth) {
      in_array("limit.depth", at,
               "nested too deep: expected at most " + std::to_string(kMaxDepth) + " levels");
      return false;
    }
    if (++structs_ > kMaxStructs) {
      in_array("limit.structs", at, "one of too many: expected at most 2^22 structs");
      findings_.more = true;
      return false;
    }
    // Only an entry of a list of children can be NULL here.
    if (schema == nullptr) {
      in_schema("schema.children-count", at, "is NULL");
    } else if (schema->release == nullptr) {
      in_schema("schema.release-set", at, "is released");
    }
    if (array == nullptr) {
      in_array("array.children-count", at, "is NULL");
    } else if (array->release == nullptr) {
      in_array("array.release-set", at, "is released, or was moved out");
    }
    return schema != nullptr && schema->release != nullptr && array != nullptr &&
           array->release != nullptr;
  }

  FLETCHING_DETAIL_COLD void bad_format(const ArrowSchema& schema, const Error& error,
                                        const TreePlace& at) {
    if (error.code() == ENOMEM) raise(error);
    in_schema(schema.format == nullptr ? "schema.format-set" : "format.known", at, error.message());
  }

  bool fits_parent(const ArrowSchema& schema, const Format& format, const TreePlace& at) {
    using enum TypeId;
    if (at.parent_type == kMap && (format.id != kStruct || schema.n_children != 2)) {
      in_schema("format.map-child", at,
                "is not a child of a map: expected a struct of two children");
      return false;
    }
    if (at.parent_type == kRunEndEncoded && at.index == 0 && format.id != kInt16 &&
        format.id != kInt32 && format.id != kInt64) {
      in_schema(
          "format.run-end-children", at,
          "format is wrong: expected run ends of 16, 32 or 64 bits, got " + quote(schema.format));
      return false;
    }
    return true;
  }

  /// offset + length; empty if either is negative or the sum overflows.
  Size check_values(const ArrowArray& array, const TreePlace& at) {
    const Size values = add(size_of(array.offset), size_of(array.length));
    if (array.length < 0) {
      in_array("array.length-set", at, expected("length is negative", "0 or more", array.length));
    } else if (array.length < at.least_length) {
      in_array("array.buffers-large-enough", at,
               expected("length is too small for the parent",
                        "at least " + std::to_string(at.least_length), array.length));
    }
    if (array.offset < 0) {
      in_array("array.offset-not-negative", at,
               expected("offset is negative", "0 or more", array.offset));
    }
    if (array.length >= 0 && (array.null_count < -1 || array.null_count > array.length)) {
      in_array("array.null-count-range", at,
               expected("null_count is out of range", "-1 to " + std::to_string(array.length),
                        array.null_count));
    }
    if (array.length >= 0 && array.offset >= 0 && !values) too_large(array, at);
    return values;
  }

  /// Reports nulls where the type or the parent allows none. A null_count of -1 is not checked:
  /// that would require the bitmap.
  void check_nulls(const Format& format, const ArrowArray& array, const TreePlace& at) {
    using enum TypeId;
    if (array.null_count <= 0 || array.null_count > array.length) return;
    const bool in_map = at.parent_type == kMap;
    if (in_map || (at.index == 0 && at.parent != nullptr && at.parent->parent_type == kMap)) {
      in_array("format.map-child", at,
               expected(in_map ? "null_count of a map's entries" : "null_count of a map's keys",
                        "0", array.null_count));
    } else if (at.parent_type == kRunEndEncoded && at.index == 0) {
      in_array("format.run-end-children", at,
               expected("null_count of run ends", "0", array.null_count));
    } else if (format.has_no_nulls()) {
      in_array(
          "array.null-count-correct", at,
          expected("null_count of a type without a validity bitmap", "0 or -1", array.null_count));
    }
  }

  FLETCHING_DETAIL_COLD void too_large(const ArrowArray& array, const TreePlace& at) {
    in_array("array.buffers-large-enough", at,
             "offset + length are more than memory can hold: got " + std::to_string(array.offset) +
                 " + " + std::to_string(array.length));
  }

  void check_buffers(const Format& format, const ArrowArray& array, Size values,
                     const TreePlace& at) {
    const int64_t n = array.n_buffers;
    const int64_t fixed = format.n_buffers;
    const bool counted = format.is_view() ? n > fixed && n <= kMaxStructs : n == fixed;
    if (!counted) {
      const bool no_sizes = format.is_view() && n == fixed;
      const bool old_union = format.is_union() && n == fixed + 1;
      return in_array(no_sizes ? "array.view-sizes-buffer" : "array.n-buffers-of-type", at,
                      expected(old_union ? "n_buffers is that of the union layout before Arrow 1.0"
                                         : "n_buffers is wrong",
                               format.is_view() ? "at least " + std::to_string(fixed + 1)
                                                : std::to_string(fixed),
                               n));
    }
    if (n == 0) return;
    if (array.buffers == nullptr) {
      return in_array("array.buffers-count", at,
                      "buffers is NULL: expected a list of " + std::to_string(n));
    }
    bool representable = true;
    for (int64_t i = 0; i < fixed; ++i) {
      const BufferWidth width = buffer_width(format, i);
      if (values && !multiply(add(values, width.extra_values), width.bits)) representable = false;
      if (array.buffers[i] == nullptr && !may_be_null(array, width)) null_buffer(array, i, at);
    }
    if (!representable) too_large(array, at);
    // A variadic buffer may be NULL if empty. The buffer of their sizes may be NULL only without
    // variadic buffers.
    if (n > fixed + 1 && array.buffers[n - 1] == nullptr) null_buffer(array, n - 1, at);
  }

  static constexpr bool may_be_null(const ArrowArray& array, const BufferWidth& width) noexcept {
    if (array.length <= 0 || width.bits == 0) return true;
    return width.is_validity && array.null_count <= 0;
  }

  FLETCHING_DETAIL_COLD void null_buffer(const ArrowArray& array, int64_t index,
                                         const TreePlace& at) {
    in_array("array.buffers-null-only-when", at,
             "buffers[" + std::to_string(index) + "] is NULL: length is " +
                 std::to_string(array.length) + ", null_count is " +
                 std::to_string(array.null_count));
  }

  void check_children(const ArrowSchema& schema, const Format& format, const ArrowArray& array,
                      Size values, const TreePlace& at) {
    const int64_t n = schema.n_children;
    if (format.n_children != Format::kAnyNumber ? n != format.n_children
                                                : n < 0 || n > kMaxStructs) {
      return in_schema(
          "schema.n-children-set", at,
          expected("n_children is wrong",
                   format.n_children != Format::kAnyNumber ? std::to_string(format.n_children)
                                                           : "0 to 2^22",
                   n));
    }
    if (array.n_children != n) {
      return in_array("array.n-children-of-type", at,
                      expected("n_children is wrong", std::to_string(n), array.n_children));
    }
    if (n == 0) return;
    if (schema.children == nullptr) {
      return in_schema("schema.children-null-only-when-none", at, "children is NULL");
    }
    if (array.children == nullptr) {
      return in_array("array.children-null-only-when-none", at, "children is NULL");
    }
    const Size least = least_child_length(format, values);
    if (!least && values) too_large(array, at);
    for (int64_t i = 0; i < n; ++i) {
      visit(schema.children[i], array.children[i], at.below(format.id, i, least.value_or(0)));
    }
    if (format.id == TypeId::kRunEndEncoded) check_run_ends(array, at);
  }

  void check_run_ends(const ArrowArray& array, const TreePlace& at) {
    const ArrowArray* ends = array.children[0];
    const ArrowArray* values = array.children[1];
    if (ends == nullptr || values == nullptr || ends->release == nullptr ||
        values->release == nullptr || values->length < 0 || ends->length <= values->length) {
      return;
    }
    in_array("array.buffers-large-enough", at.below(TypeId::kRunEndEncoded, 1),
             expected("length is less than the run ends' length",
                      "at least " + std::to_string(ends->length), values->length));
  }

  void check_dictionary(const ArrowSchema& schema, const Format& format, const ArrowArray& array,
                        const TreePlace& at) {
    const bool encoded = schema.dictionary != nullptr;
    if (encoded && !format.is_integer()) {
      return in_schema("format.dictionary-index-type", at,
                       "format is wrong: expected an integer for the indices of the dictionary, "
                       "got " +
                           quote(schema.format));
    }
    if (encoded != (array.dictionary != nullptr)) {
      return encoded ? in_array("array.dictionary-when-encoded", at,
                                "dictionary is NULL: expected one, as in the schema")
                     : in_array("array.dictionary-null-otherwise", at,
                                "dictionary is not NULL: expected none, as in the schema");
    }
    if (encoded) {
      visit(schema.dictionary, array.dictionary, at.below(format.id, TreePlace::kDictionary));
    }
  }

  size_t most_;
  int64_t structs_ = 0;
  ArrayFindings findings_;
};

}  // namespace detail

/// The maximum number of findings that check_array reports.
inline constexpr size_t kMostFindings = 64;

/// Compares `array` with `schema`. Both may come from an untrusted producer. Checks that:
///
/// - schema and array are non-NULL and not released at every level; a child that was moved out is a
///   finding;
/// - the format is defined by the specification and has the required children;
/// - n_buffers, n_children and dictionary match the type, and lists are not NULL;
/// - length, offset and null_count are in range, and buffers of that size can exist;
/// - null_count is 0 or -1 for unions, run-end encoded arrays, run ends, and the entries and keys
///   of a map;
/// - only empty buffers and the validity bitmap of an array with a null_count of 0 or -1 are NULL
///   (docs/reference/errata.md, null-bitmap-not-counted);
/// - children of structs, sparse unions, fixed-size lists and run-end encoded arrays are long
///   enough for their parent.
///
/// Reads only the structs and their pointer lists, never a buffer, so it works for every device and
/// before the event has completed. Offsets, run ends, indices, type ids and views are not checked.
/// It cannot detect a list that is shorter than its count if the schema agrees with the count. It
/// does not descend below an error. Runs in time linear in the number of structs, and allocates
/// only if there is a finding.
///
/// Ownership: none is transferred, and the findings do not refer to the structs. Errors: ENOMEM.
/// Threads: any, if neither struct changes during the call. Source: Arrow C data interface,
/// "Structure definitions"; columnar format.
///
/// The Result is ok() even with findings: check them with empty() or status().
template <RawArray Raw>
Result<ArrayFindings> check_array(const ArrowSchema& schema, const Raw& array,
                                  size_t most = kMostFindings) noexcept {
  return detail::guarded([&]() -> Result<ArrayFindings> {
    detail::ArrayCheck check((std::min)(most, kMostFindings));
    check.visit(&schema, &detail::base(array), {});
    return std::move(check).take();
  });
}

/// Like check_array, but returns EINVAL with the first finding. ENOMEM.
template <RawArray Raw>
Status verify_array(const ArrowSchema& schema, const Raw& array) noexcept {
  const Result<ArrayFindings> found = check_array(schema, array, 1);
  return found.ok() ? found->status() : Status(found.error());
}

namespace detail {

/// Checks that type_difference can read a schema.
inline Status check_sound(const char* operation, const ArrowSchema& schema) {
  return walk(operation, &schema, [](const ArrowSchema& node) -> const char* {
    if (node.release == nullptr) return "is released";
    return node.format == nullptr ? "has format NULL" : nullptr;
  });
}

}  // namespace detail

/// Compares the types of two schemas at every level: the meaning of the formats ("d:10,2" equals
/// "d:10,2,128"), the number of children, and dictionaries. Names, metadata and flags may differ.
///
/// Errors: EINVAL with the first difference, `field "a.items": expected format "g", got "l"` (a
/// field without a name is shown by index), and for a schema that is released or malformed at any
/// level; ENOMEM.
inline Status verify_same_types(const ArrowSchema& expected, const ArrowSchema& actual) noexcept {
  return detail::guarded([&]() -> Status {
    Status sound = detail::check_sound("verify_same_types", expected);
    if (sound) sound = detail::check_sound("verify_same_types", actual);
    if (!sound) return sound;
    std::string difference = detail::type_difference(expected, actual);
    if (difference.empty()) return {};
    return Error(EINVAL, std::move(difference));
  });
}

namespace detail {

/// Checks that a stream returned a schema of the same types as its first schema.
inline Status check_same_schema(const ArrowSchema& first, const ArrowSchema& later,
                                std::string_view rule) noexcept {
  return verify_same_types(first, later).transform_error([&](const Error& error) {
    return error_with(error.code(), [&] {
      std::string text("schema: differs from the first schema of the stream (rule ");
      return text.append(rule).append("): ").append(error.message());
    });
  });
}

/// Checks that a batch matches the schema of its stream. Errors: EINVAL with the rule and the
/// message of every finding; ENOMEM.
template <RawArray Raw>
Status check_schema(const Schema& schema, const Raw& batch, std::string_view rule) noexcept {
  const Result<ArrayFindings> found = check_array(*schema, batch);
  const Status status = found.ok() ? found->status() : Status(found.error());
  if (status) return {};
  return error_with(status.error().code(), [&] {
    std::string text("batch: differs from the stream's schema (rule ");
    return text.append(rule).append("): ").append(status.error().message());
  });
}

}  // namespace detail
}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_CHECK_ARRAY_HPP

// SPDX-License-Identifier: Apache-2.0
//
// Extension types: the two keys of ArrowSchema.metadata that make one, and the parameters of
// arrow.fixed_shape_tensor. C Data Interface, "Extension types"; "Canonical Extension Types".
#ifndef FLETCHING_EXTENSION_HPP
#define FLETCHING_EXTENSION_HPP

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "fletching/abi.h"
#include "fletching/detail/text.hpp"
#include "fletching/metadata.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The metadata keys of an extension type.
inline constexpr std::string_view kExtensionNameKey = "ARROW:extension:name";
inline constexpr std::string_view kExtensionMetadataKey = "ARROW:extension:metadata";

/// Booleans of one byte each. Its storage is int8, and its metadata empty.
inline constexpr std::string_view kBool8 = "arrow.bool8";
/// Tensors of one shape. Its storage is a fixed-size list of all their elements.
inline constexpr std::string_view kFixedShapeTensorName = "arrow.fixed_shape_tensor";

/// What makes a field one of an extension type. Points into ArrowSchema.metadata.
struct Extension {
  std::string_view name;      ///< empty: it is of none
  std::string_view metadata;  ///< the parameters, as the extension serializes them
};

/// The parameters of arrow.fixed_shape_tensor.
struct TensorShape {
  std::vector<std::int64_t> shape;  ///< as the elements lie in memory, the last varying fastest
  /// Which of `shape` each dimension of the logical tensor is; as long as `shape`, each number
  /// once.
  std::vector<std::int32_t> permutation;
};

namespace detail {

inline Result<Extension> read_extension(const char* metadata) {
  Result<MetadataView> pairs = MetadataView::read(metadata);
  if (!pairs) return Error{EINVAL, "ArrowSchema." + pairs.error().message()};
  return Extension{pairs->find(kExtensionNameKey).value_or(""),
                   pairs->find(kExtensionMetadataKey).value_or("")};
}

/// Reads as much JSON as the parameters of arrow.fixed_shape_tensor need, and steps over the rest.
/// Each function leaves the position behind what it has read, and returns false when that is not
/// there.
class Json {
 public:
  explicit Json(std::string_view text) noexcept : rest_(text) {}

  /// The character, after any white space.
  bool take(char expected) noexcept {
    if (peek() != expected) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// The next character that is not white space; 0 at the end.
  char peek() noexcept {
    const std::size_t start = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(start == std::string_view::npos ? rest_.size() : start);
    return rest_.empty() ? '\0' : rest_.front();
  }

  /// A string as it is written, escapes and all.
  bool string(std::string_view& out) noexcept {
    if (!take('"')) return false;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        out = rest_.substr(0, i);
        rest_.remove_prefix(i + 1);
        return true;
      }
      if (rest_[i] == '\\') ++i;
    }
    return false;
  }

  /// An array of integers, none of them negative.
  template <class Integer>
  bool sizes(std::vector<Integer>& out) {
    out.clear();
    if (!take('[')) return false;
    if (take(']')) return true;
    do {
      Integer number = 0;
      if (!integer(number) || out.size() == kSizes) return false;
      out.push_back(number);
    } while (take(','));
    return take(']');
  }

  /// Steps over a value of any kind.
  bool skip(int depth = 0) noexcept {
    std::string_view text;
    const char first = peek();
    if (first == '"') return string(text);
    if (first == '[' || first == '{') return depth < kDepth && skip_group(first, depth);
    const std::size_t end = rest_.find_first_of(",]} \t\r\n");
    const std::size_t size = end == std::string_view::npos ? rest_.size() : end;
    rest_.remove_prefix(size);
    return size > 0;
  }

 private:
  // Bounds of ours: no text makes a reader recurse or allocate without end.
  static constexpr int kDepth = 32;
  static constexpr std::size_t kSizes = 1024;

  bool skip_group(char open, int depth) noexcept {
    std::string_view key;
    const char close = open == '[' ? ']' : '}';
    take(open);
    if (take(close)) return true;
    do {
      if (open == '{' && (!string(key) || !take(':'))) return false;
      if (!skip(depth + 1)) return false;
    } while (take(','));
    return take(close);
  }

  template <class Integer>
  bool integer(Integer& out) noexcept {
    peek();
    const char* begin = rest_.data();
    const char* end = begin + rest_.size();
    const auto [stop, error] = std::from_chars(begin, end, out);
    if (error != std::errc{} || out < 0) return false;
    rest_.remove_prefix(static_cast<std::size_t>(stop - begin));
    return true;
  }

  std::string_view rest_;
};

inline bool read_tensor_members(Json& json, TensorShape& out) {
  if (!json.take('{')) return false;
  if (json.take('}')) return true;
  do {
    std::string_view key;
    if (!json.string(key) || !json.take(':')) return false;
    bool read = true;
    if (key == "shape") {
      read = json.sizes(out.shape);
    } else if (key == "permutation" && json.peek() == '[') {
      read = json.sizes(out.permutation);
    } else {
      read = json.skip();
    }
    if (!read) return false;
  } while (json.take(','));
  return json.take('}') && json.peek() == '\0';
}

/// Whether each of 0 to n-1 is there once.
inline bool is_permutation(std::span<const std::int32_t> numbers) {
  std::vector<char> seen(numbers.size());
  for (const std::int32_t number : numbers) {
    const auto index = static_cast<std::size_t>(number);
    if (number < 0 || index >= seen.size() || seen[index] != 0) return false;
    seen[index] = 1;
  }
  return true;
}

inline Result<TensorShape> read_tensor_shape(std::string_view metadata) {
  const auto refuse = [&](std::string_view why) {
    return Error{EINVAL, std::string(kExtensionMetadataKey) + " of arrow.fixed_shape_tensor: " +
                             std::string(why) + ", got " + quote(metadata)};
  };
  TensorShape out;
  Json json(metadata);
  if (!read_tensor_members(json, out)) {
    return refuse(R"(malformed: expected the form {"shape":[2,3],"permutation":[1,0]})");
  }
  if (out.shape.empty()) return refuse("no shape: expected one size or more");
  if (out.permutation.empty()) {
    for (std::size_t i = 0; i < out.shape.size(); ++i) {
      out.permutation.push_back(static_cast<std::int32_t>(i));
    }
  }
  if (out.permutation.size() != out.shape.size() || !is_permutation(out.permutation)) {
    return refuse("wrong permutation: expected each dimension of the shape once");
  }
  return out;
}

template <class Range>
std::string json_array(const Range& numbers) {
  std::string text = "[";
  for (const auto number : numbers) {
    if (text.size() > 1) text += ',';
    text += std::to_string(number);
  }
  return text + "]";
}

}  // namespace detail

/// The extension type of a field: two texts that point into schema.metadata, empty when there is
/// none. Negative counts in the metadata are the error EINVAL; nothing says how long the whole is,
/// so that wrong positive ones cannot be noticed. EINVAL too for a schema that is released.
inline Result<Extension> find_extension(const ArrowSchema& schema) noexcept {
  if (schema.release == nullptr) {
    return detail::plain_error(EINVAL,
                               "find_extension: schema is released: expected a live schema");
  }
  return detail::guarded([&] { return detail::read_extension(schema.metadata); });
}

/// Reads the parameters of arrow.fixed_shape_tensor: `shape`, `permutation` (in order when it is
/// left out or null); everything else in the text is stepped over. EINVAL when it is not JSON, or
/// when the two do not fit together.
inline Result<TensorShape> parse_tensor_shape(std::string_view metadata) noexcept {
  return detail::guarded([&] { return detail::read_tensor_shape(metadata); });
}

/// The text that has these parameters. Throws std::bad_alloc.
inline std::string format_tensor_shape(const TensorShape& shape) {
  std::string text = "{\"shape\":" + detail::json_array(shape.shape);
  bool in_order = true;
  for (std::size_t i = 0; i < shape.permutation.size(); ++i) {
    in_order = in_order && shape.permutation[i] == static_cast<std::int32_t>(i);
  }
  if (!in_order) text += ",\"permutation\":" + detail::json_array(shape.permutation);
  return text + "}";
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_EXTENSION_HPP

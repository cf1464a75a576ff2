// SPDX-License-Identifier: Apache-2.0
//
// Reading and encoding of the key-value metadata of ArrowSchema.metadata and the async interface.
#ifndef FLETCHING_METADATA_HPP
#define FLETCHING_METADATA_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// One pair of a metadata block. It may contain any bytes and is not NUL-terminated.
struct KeyValue {
  std::string_view key;
  std::string_view value;

  bool operator==(const KeyValue&) const = default;
};

/// A validated metadata block, as a range of KeyValue in block order. A key may occur more than
/// once.
///
/// Ownership: a view. The block keeps its owner. It must stay alive and unchanged while the view or
/// any text from it is used: for a schema until its release, for the async interface until the
/// callback that passed it returns.
///
/// Source: Arrow C data interface, "ArrowSchema.metadata".
class MetadataView {
 public:
  /// The limit for a block of unknown size.
  static constexpr size_t kNoLimit = (std::numeric_limits<ptrdiff_t>::max)();

  class Iterator {
   public:
    using value_type = KeyValue;
    using difference_type = ptrdiff_t;
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;

    Iterator() noexcept = default;
    KeyValue operator*() const noexcept {
      const std::string_view key = text_at(pair_);
      return {key, text_at(key.data() + key.size())};
    }
    Iterator& operator++() noexcept {
      const std::string_view value = (**this).value;
      pair_ = value.data() + value.size();
      --left_;
      return *this;
    }
    Iterator operator++(int) noexcept {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const noexcept { return left_ == other.left_; }

   private:
    friend class MetadataView;
    Iterator(const char* pair, int32_t left) noexcept : pair_(pair), left_(left) {}

    const char* pair_ = nullptr;
    int32_t left_ = 0;
  };

  /// No pairs.
  MetadataView() noexcept = default;

  /// Validates the whole block once; afterwards every pair can be read.
  ///
  /// `block` may be NULL, which means no pairs. `limit` is the number of readable bytes at `block`.
  /// The encoding determines the size of the block, so the limit is optional. Without a limit, a
  /// block with wrong lengths is read past its end, which cannot be detected.
  ///
  /// Errors: EINVAL for a negative count or length, and for a block that exceeds `limit`, with the
  /// byte position in the message.
  static Result<MetadataView> read(const char* block, size_t limit = kNoLimit) noexcept {
    return detail::guarded([&]() -> Result<MetadataView> {
      if (block == nullptr) return MetadataView();
      size_t position = 0;
      const Result<int32_t> count = read_int32(block, limit, &position, "number of pairs");
      if (!count) return count.error();
      for (int64_t text = 0; text < int64_t{*count} * 2; ++text) {
        const char* what = text % 2 == 0 ? "length of key " : "length of value ";
        Status skipped = skip_text(block, limit, &position, what, text / 2);
        if (!skipped) return std::move(skipped).error();
      }
      return MetadataView(block, *count, position);
    });
  }

  [[nodiscard]] Iterator begin() const noexcept {
    return {block_ == nullptr ? nullptr : block_ + sizeof count_, count_};
  }
  [[nodiscard]] Iterator end() const noexcept { return {}; }
  [[nodiscard]] size_t size() const noexcept { return static_cast<size_t>(count_); }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  /// The bytes of the encoded block, for a copy. Empty for NULL.
  [[nodiscard]] std::string_view block() const noexcept { return {block_, byte_size_}; }

  /// Returns the value of the first pair with this key.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const noexcept {
    for (const KeyValue pair : *this) {
      if (pair.key == key) return pair.value;
    }
    return std::nullopt;
  }

 private:
  MetadataView(const char* block, int32_t count, size_t byte_size) noexcept
      : block_(block), byte_size_(byte_size), count_(count) {}

  // A block is unaligned, in the machine's byte order.
  static int32_t int32_at(const char* bytes) noexcept {
    int32_t value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  static std::string_view text_at(const char* bytes) noexcept {
    return {bytes + sizeof(int32_t), static_cast<size_t>(int32_at(bytes))};
  }

  static Error malformed(const std::string& what, size_t position, const std::string& how) {
    return {EINVAL, "metadata: " + what + " at byte " + std::to_string(position) + ": " + how};
  }

  static Result<int32_t> read_int32(const char* block, size_t limit, size_t* position,
                                    const char* what, int64_t pair = -1) {
    const auto name = [&] { return pair < 0 ? what : what + std::to_string(pair); };
    if (limit - *position < sizeof(int32_t)) {
      return malformed(name(), *position,
                       "truncated: expected 4 bytes, got " + std::to_string(limit - *position));
    }
    const int32_t value = int32_at(block + *position);
    if (value < 0) {
      return malformed(name(), *position,
                       "negative: expected 0 or more, got " + std::to_string(value));
    }
    *position += sizeof(int32_t);
    return value;
  }

  static Status skip_text(const char* block, size_t limit, size_t* position, const char* what,
                          int64_t pair) {
    const size_t start = *position;
    const Result<int32_t> length = read_int32(block, limit, position, what, pair);
    if (!length) return length.error();
    if (limit - *position < static_cast<size_t>(*length)) {
      return malformed(what + std::to_string(pair), start,
                       "too large: expected at most the " + std::to_string(limit - *position) +
                           " bytes that follow, got " + std::to_string(*length));
    }
    *position += static_cast<size_t>(*length);
    return {};
  }

  const char* block_ = nullptr;
  size_t byte_size_ = 0;
  int32_t count_ = 0;
};

namespace detail {

/// The size of the encoded pairs in bytes. Errors: see encode_metadata. May throw.
template <class Pairs>
Result<size_t> encoded_size(const Pairs& pairs) {
  constexpr size_t kMost = (std::numeric_limits<int32_t>::max)();
  size_t count = 0;
  size_t size = sizeof(int32_t);
  for (const auto& [key, value] : pairs) {
    for (const std::string_view text : {std::string_view(key), std::string_view(value)}) {
      if (text.size() > kMost) {
        return Error(EINVAL, "metadata: text of pair " + std::to_string(count) +
                                 " too long: expected at most 2147483647 bytes, got " +
                                 std::to_string(text.size()));
      }
      size += sizeof(int32_t) + text.size();
    }
    ++count;
  }
  if (count > kMost) {
    return Error(EINVAL, "metadata: too many pairs: expected at most 2147483647, got " +
                             std::to_string(count));
  }
  return size;
}

/// Encodes the pairs to `out`, which must be large enough, and returns the end.
template <class Pairs>
char* encode_to(char* out, const Pairs& pairs) noexcept {
  const auto put_int32 = [](char* at, size_t number) {
    const auto value = static_cast<int32_t>(number);
    std::memcpy(at, &value, sizeof value);
    return at + sizeof value;
  };
  size_t count = 0;
  char* next = out + sizeof(int32_t);
  for (const auto& [key, value] : pairs) {
    for (const std::string_view text : {std::string_view(key), std::string_view(value)}) {
      next = put_int32(next, text.size());
      next += text.copy(next, text.size());
    }
    ++count;
  }
  put_int32(out, count);
  return next;
}

}  // namespace detail

/// Encodes pairs of strings: KeyValue, std::pair, the elements of a std::map. The result may be
/// copied to any address and passed as `metadata`. It may contain NULs. An empty range is encoded
/// as four zero bytes, even though a schema without metadata has NULL.
///
/// Errors: EINVAL for more than 2^31-1 pairs or a string of more than 2^31-1 bytes; ENOMEM.
template <class Pairs>
  requires requires(const Pairs& pairs) { std::begin(pairs) != std::end(pairs); }
Result<std::string> encode_metadata(const Pairs& pairs) noexcept {
  return detail::guarded([&]() -> Result<std::string> {
    Result<size_t> size = detail::encoded_size(pairs);
    if (!size) return std::move(size).error();
    std::string block(*size, '\0');
    detail::encode_to(block.data(), pairs);
    return block;
  });
}

inline Result<std::string> encode_metadata(std::initializer_list<KeyValue> pairs) noexcept {
  return encode_metadata<std::initializer_list<KeyValue>>(pairs);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

template <>
inline constexpr bool std::ranges::enable_borrowed_range<fletching::MetadataView> = true;

#endif  // FLETCHING_METADATA_HPP

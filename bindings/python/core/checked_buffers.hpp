// SPDX-License-Identifier: Apache-2.0
//
// Checks the buffers and children that a caller passes to from_buffers.
#ifndef FLETCHING_PYTHON_CHECKED_BUFFERS_HPP
#define FLETCHING_PYTHON_CHECKED_BUFFERS_HPP

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "buffer_view.hpp"
#include "fletching/detail/array_shape.hpp"
#include "required_values.hpp"

namespace fletching::python {

// The offsets buffer of an empty array; works for 32 and 64 bits.
inline constexpr int64_t kNoOffsets = 0;

struct Parts {
  std::vector<BufferView> buffers;
  std::vector<Array> arrays;        // children and dictionary
  std::vector<int64_t> variadic{};  // buffer sizes of a view type; exported as its last buffer
};

/// Checks buffer sizes, and reads the offsets that they depend on.
class Buffers {
 public:
  Buffers(const Format& format, int64_t offset, int64_t values, nb::iterable given, Parts& parts)
      : format_(format), offset_(offset), values_(values) {
    for (const nb::handle buffer : given) {
      if (buffer.is_none()) {
        sizes_.push_back(-1);
        addresses_.push_back(nullptr);
        continue;
      }
      parts.buffers.emplace_back(buffer);
      sizes_.push_back(parts.buffers.back()->len);
      addresses_.push_back(parts.buffers.back()->buf);
    }
    const auto expected = static_cast<size_t>(format.n_buffers);
    if (format.is_view() ? sizes_.size() < expected : sizes_.size() != expected) {
      refuse("expected " + std::string(format.is_view() ? "at least " : "") +
             std::to_string(expected) + " buffers, got " + std::to_string(sizes_.size()));
    }
    for (size_t i = 0; i < expected; ++i) check(i);
    if (!format.is_view()) return;
    for (int64_t i = offset; i < values; ++i) check_view(i);
    for (size_t i = expected; i < sizes_.size(); ++i) parts.variadic.push_back(size_of(i));
    addresses_.push_back(parts.variadic.empty() ? &kNoOffsets : parts.variadic.data());
  }

  [[nodiscard]] std::span<const void* const> addresses() const { return addresses_; }
  [[nodiscard]] int64_t count_nulls() const {
    return python::count_nulls(validity(), offset_, values_ - offset_);
  }
  /// Checks offsets, type IDs and indices against the children and the dictionary.
  void check_children(const ArrowSchema& schema, std::span<const Array> arrays) const {
    using enum TypeId;
    if (format_.id == kList || format_.id == kLargeList || format_.id == kMap) {
      require_child(last_offset(), *arrays[0].get());
    } else if (format_.id == kListView || format_.id == kLargeListView) {
      require_child(end_of_lists(), *arrays[0].get());
    } else if (format_.is_union()) {
      check_union(arrays);
    } else if (schema.dictionary != nullptr) {
      check_indices(schema, *arrays.back().get());
    }
  }

 private:
  [[noreturn]] static void refuse(const std::string& what) {
    raise(Error(EINVAL, "from_buffers: " + what));
  }
  static void require_child(int64_t needed, const ArrowArray& child) {
    if (child.length >= needed) return;
    refuse("child 0: too short: expected at least " + std::to_string(needed) + " values, got " +
           std::to_string(child.length));
  }
  /// Returns the number of bytes or children that the offsets refer to.
  [[nodiscard]] int64_t last_offset() const {
    int64_t last = 0, before = 0;
    for (int64_t i = 0; i <= values_; ++i) {
      last = number(1, i);
      if (last < before)
        refuse("buffer 1: offset " + std::to_string(i) + " is smaller than before");
      before = last;
    }
    return last;
  }
  /// Returns the number of children that the list views refer to, including null lists. Arrow
  /// columnar format, "ListView Layout".
  [[nodiscard]] int64_t end_of_lists() const {
    int64_t end = 0;
    for (int64_t i = offset_; i < values_; ++i) {
      const int64_t from = number(1, i), size = number(2, i);
      if (from < 0 || size < 0 || from > INT64_MAX - size)
        refuse("buffers 1 and 2: list " + std::to_string(i) + " is negative or too large");
      end = (std::max)(end, from + size);
    }
    return end;
  }
  void check_union(std::span<const Array> arrays) const {
    std::vector<int64_t> children(256, -1);  // per type ID
    int64_t count = 0;
    for (size_t at = 0; at < format_.type_ids.size(); ++at) {
      size_t id = 0;
      for (; at < format_.type_ids.size() && format_.type_ids[at] != ','; ++at) {
        id = id * 10 + static_cast<size_t>(format_.type_ids[at] - '0');
      }
      children[id] = count++;
    }
    for (int64_t i = offset_; i < values_; ++i) {
      const auto id = read<uint8_t>(0, i);
      const int64_t child = children[id];
      if (child < 0) {
        refuse("buffer 0: type id " + std::to_string(i) + ": expected one of " +
               std::string(format_.type_ids) + ", got " + std::to_string(id));
      }
      if (format_.id == TypeId::kSparseUnion) continue;
      const auto from = read<int32_t>(1, i * 4);
      if (from >= 0 && from < arrays[static_cast<size_t>(child)]->length) continue;
      refuse("buffer 1: offset " + std::to_string(i) + " is outside of child " +
             std::to_string(child) + ": got " + std::to_string(from));
    }
  }
  void check_indices(const ArrowSchema& schema, const ArrowArray& dictionary) const {
    const bool is_signed = schema.format[0] >= 'a';
    for (int64_t i = offset_; i < values_; ++i) {
      if (is_null(i)) continue;
      const int64_t index = integer(1, i, format_.bit_width, is_signed);
      if (index >= 0 && index < dictionary.length) continue;
      refuse("buffer 1: index " + std::to_string(i) + " is outside of the dictionary of " +
             std::to_string(dictionary.length) + " values: got " + std::to_string(index));
    }
  }
  /// Returns an integer. A uint64 beyond the range of int64 becomes negative.
  [[nodiscard]] int64_t integer(size_t buffer, int64_t index, int64_t bits, bool is_signed) const {
    if (bits == 8)
      return is_signed ? int64_t{read<int8_t>(buffer, index)} : read<uint8_t>(buffer, index);
    if (bits == 16)
      return is_signed ? int64_t{read<int16_t>(buffer, index * 2)}
                       : read<uint16_t>(buffer, index * 2);
    if (bits == 32)
      return is_signed ? int64_t{read<int32_t>(buffer, index * 4)}
                       : read<uint32_t>(buffer, index * 4);
    return read<int64_t>(buffer, index * 8);
  }

  [[nodiscard]] const void* validity() const {
    const bool has_bits = !addresses_.empty() && detail::buffer_width(format_, 0).is_validity;
    return has_bits ? addresses_[0] : nullptr;
  }
  [[nodiscard]] bool is_null(int64_t index) const {
    return python::count_nulls(validity(), index, 1) != 0;
  }
  [[nodiscard]] int64_t size_of(size_t buffer) const {
    return (std::max)(sizes_[buffer], int64_t{0});
  }

  template <class Number>
  [[nodiscard]] Number read(size_t buffer, int64_t at) const {
    Number read = 0;
    std::memcpy(&read, static_cast<const char*>(addresses_[buffer]) + at, sizeof read);
    return read;
  }
  /// Returns a 32-bit or 64-bit offset or size.
  [[nodiscard]] int64_t number(size_t buffer, int64_t index) const {
    const bool is_narrow = detail::buffer_width(format_, 1).bits == 32;
    return is_narrow ? read<int32_t>(buffer, index * 4) : read<int64_t>(buffer, index * 8);
  }

  void check(size_t index) {
    const detail::BufferWidth width = detail::buffer_width(format_, static_cast<int64_t>(index));
    if (addresses_[index] == nullptr && width.is_validity) return;
    const bool has_offsets = width.extra_values > 0;
    if (addresses_[index] == nullptr && has_offsets && values_ == 0) {
      addresses_[index] = &kNoOffsets;
      return;
    }
    int64_t needed = 0;
    if (index == 2 && width.bits == 0) {
      needed = last_offset();
    } else {
      const detail::Size bits =
          detail::multiply(detail::add(values_, has_offsets ? width.extra_values : 0), width.bits);
      if (!bits || *bits > INT64_MAX - 7) refuse("length: too large");
      needed = (*bits + 7) / 8;
    }
    if (sizes_[index] >= needed || (addresses_[index] == nullptr && needed == 0)) return;
    const std::string got = sizes_[index] < 0 ? std::string("None") : std::to_string(sizes_[index]);
    refuse("buffer " + std::to_string(index) + ": too small: expected at least " +
           std::to_string(needed) + " bytes, got " + got);
  }

  /// Checks a view. It has a size, then either a short text padded with zeros, or the first four
  /// bytes of a long text, its buffer index and its offset. Arrow columnar format, "Variable-size
  /// Binary View Layout".
  void check_view(int64_t index) const {
    constexpr int32_t kInView = 12, kPrefix = 4;
    if (is_null(index)) return;
    const char* const view = static_cast<const char*>(addresses_[1]) + index * 16;
    const char* const text = view + sizeof(int32_t);
    const auto size = read<int32_t>(1, index * 16);
    if (size >= 0 && size <= kInView) {
      if (std::all_of(text + size, text + kInView, [](char byte) { return byte == 0; })) return;
      refuse("buffer 1: view " + std::to_string(index) + ": expected zeros behind a text of " +
             std::to_string(size) + " bytes");
    }
    const auto buffer = read<int32_t>(1, index * 16 + 8), from = read<int32_t>(1, index * 16 + 12);
    const int64_t variadic = static_cast<int64_t>(sizes_.size()) - format_.n_buffers;
    if (size >= 0 && buffer >= 0 && buffer < variadic && from >= 0 &&
        int64_t{from} + size <= size_of(static_cast<size_t>(format_.n_buffers + buffer))) {
      const void* const bytes = addresses_[static_cast<size_t>(format_.n_buffers + buffer)];
      if (std::memcmp(text, static_cast<const char*>(bytes) + from, kPrefix) == 0) return;
      refuse("buffer 1: view " + std::to_string(index) +
             ": the first 4 bytes differ from those in the buffer");
    }
    refuse("buffer 1: view " + std::to_string(index) + " is outside of the buffers: got " +
           std::to_string(size) + " bytes at " + std::to_string(from) + " of buffer " +
           std::to_string(buffer) + " after it");
  }

  const Format& format_;
  const int64_t offset_;
  const int64_t values_;  // offset + length
  std::vector<int64_t> sizes_;
  std::vector<const void*> addresses_;
};

/// Checks that the run ends of a valid array increase and reach the array's end.
inline void check_run_ends(const ArrowSchema& schema, const ArrowArray& array) {
  const ArrowArray& ends = *array.children[0];
  const char width = schema.children[0]->format[0];
  const auto* bytes = static_cast<const char*>(ends.buffers[1]);
  int64_t before = 0;
  for (int64_t i = ends.offset; i < ends.offset + ends.length; ++i) {
    int64_t end = 0;
    if (width == 's') {
      int16_t read = 0;
      std::memcpy(&read, bytes + i * 2, sizeof read);
      end = read;
    } else if (width == 'i') {
      int32_t read = 0;
      std::memcpy(&read, bytes + i * 4, sizeof read);
      end = read;
    } else {
      std::memcpy(&end, bytes + i * 8, sizeof end);
    }
    if (end <= before) {
      raise(Error(EINVAL, "from_buffers: child 0: run end " + std::to_string(i - ends.offset) +
                              ": expected more than " + std::to_string(before) + ", got " +
                              std::to_string(end)));
    }
    before = end;
  }
  if (before >= array.offset + array.length) return;
  raise(Error(EINVAL, "from_buffers: child 0: run ends: expected a last one of at least " +
                          std::to_string(array.offset + array.length) + ", got " +
                          std::to_string(before)));
}

}  // namespace fletching::python

#endif  // FLETCHING_PYTHON_CHECKED_BUFFERS_HPP

// SPDX-License-Identifier: Apache-2.0
//
// The values and the validity of an array as types of C++, where the host can read them.
#ifndef FLETCHING_BUFFER_HPP
#define FLETCHING_BUFFER_HPP

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include "fletching/abi.h"
#include "fletching/detail/checked.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

constexpr ArrowDeviceType memory_of(const ArrowArray& /*array*/) noexcept {
  return ARROW_DEVICE_CPU;
}
constexpr ArrowDeviceType memory_of(const ArrowDeviceArray& array) noexcept {
  return array.device_type;
}

FLETCHING_DETAIL_COLD inline Error buffer_error(int code, const char* what,
                                                const std::string& detail) noexcept {
  return error_with(code, [&] { return std::string("buffer: ") + what + ": " + detail; });
}

FLETCHING_DETAIL_COLD inline Error not_for_the_host(ArrowDeviceType type) noexcept {
  return error_with(ENOTSUP, [&] {
    std::string text("buffer: memory not readable by the host: expected ");
    for (const DeviceAccess& access : kDeviceAccess) {
      if (access.device != ARROW_DEVICE_CPU) continue;
      text.append(device_name(access.memory)).append(", ");
    }
    return text.append("got ").append(device_name(type));
  });
}

/// Buffer `index` of an array that the host can read. Errors: see buffer().
template <class Raw>
Result<const void*> host_buffer(const Owner<Raw>& owner, int64_t index) noexcept {
  return guarded([&]() -> Result<const void*> {
    if (owner.is_released())
      return Error(EINVAL, "buffer: array is released: expected a live array");
    const ArrowDeviceType type = memory_of(*owner.get());
    if (!is_accessible(type, ARROW_DEVICE_CPU)) return not_for_the_host(type);
    const ArrowArray& array = base(*owner.get());
    if (index < 0 || index >= array.n_buffers || array.buffers == nullptr) {
      return Error(EINVAL, "buffer: no such buffer: expected an index below " +
                               std::to_string(array.n_buffers) + ", got " + std::to_string(index));
    }
    if (array.length < 0 || !add(size_of(array.offset), array.length)) {
      return Error(EINVAL, "buffer: length or offset is out of range: got " +
                               std::to_string(array.length) + " and " +
                               std::to_string(array.offset));
    }
    return array.buffers[index];
  });
}

}  // namespace detail

/// `count` values of type T from the array's offset on, in its buffer `index`: the values of a
/// fixed-width type are in buffer 1, `length` of them; the offsets of strings, binary values and
/// lists too, `length + 1` of them (of a length that is not 0). No struct contains how large a
/// buffer is: that it holds offset + count values of T is the caller's to know, from the schema.
/// Not for booleans, which are bits, nor for the bytes of strings, to which the offset of the array
/// does not apply: read these through the struct, at `buffers[2]`, between two offsets.
///
/// Offsets of parents are not added. It does not wait: a device array that has an event is read
/// after SyncEvent::synchronize.
///
/// Ownership: the memory stays the producer's, until release; it is not written to. Errors: ENOTSUP
/// for a device type whose memory the host cannot read (docs/reference/devices.md); EINVAL for a
/// released array, a buffer that the array does not have, a buffer that is NULL when count is not
/// 0, one that is not aligned for T, and for counts and offsets out of range; ENOMEM.
///
/// Source: Arrow C data interface, "ArrowArray.offset", "ArrowArray.buffers".
template <class T, RawArray Raw>
Result<std::span<const T>> buffer(const Owner<Raw>& array, int64_t index, int64_t count) noexcept {
  static_assert(
      std::is_trivially_copyable_v<T> && !std::is_same_v<std::remove_cv_t<T>, bool>,
      "buffer: element type: expected numbers or structs of numbers; hint: read booleans as bits");
  return detail::guarded([&]() -> Result<std::span<const T>> {
    const Result<const void*> address = detail::host_buffer(array, index);
    if (!address) return address.error();
    const int64_t offset = detail::base(*array.get()).offset;
    const detail::Size bytes =
        detail::multiply(detail::add(offset, detail::size_of(count)), int64_t{sizeof(T)});
    if (!bytes || *bytes > (std::numeric_limits<std::ptrdiff_t>::max)()) {
      return detail::buffer_error(EINVAL, "count out of range", "got " + std::to_string(count));
    }
    if (count == 0) return std::span<const T>();
    if (*address == nullptr) {
      return detail::buffer_error(EINVAL, "NULL", "expected " + std::to_string(count) + " values");
    }
    if (reinterpret_cast<std::uintptr_t>(*address) % alignof(T) != 0) {
      return detail::buffer_error(EINVAL, "not aligned",
                                  "expected a multiple of " + std::to_string(alignof(T)));
    }
    return std::span(static_cast<const T*>(*address) + offset, static_cast<std::size_t>(count));
  });
}

/// The same with the array's length as count.
template <class T, RawArray Raw>
Result<std::span<const T>> buffer(const Owner<Raw>& array, int64_t index) noexcept {
  return buffer<T>(array, index, array.length());
}

/// Which values of an array are not null. It refers to the array's memory.
class Validity {
 public:
  Validity() noexcept = default;
  /// `bits` is the bitmap, or NULL for an array without nulls.
  Validity(const std::uint8_t* bits, int64_t offset, int64_t size) noexcept
      : bits_(bits), offset_(offset), size_(size) {}

  [[nodiscard]] int64_t size() const noexcept { return size_; }

  /// Whether value `index`, from 0 to size() - 1, is not null.
  [[nodiscard]] bool operator[](int64_t index) const noexcept {
    const auto bit = static_cast<std::uint64_t>(offset_ + index);
    return bits_ == nullptr || (bits_[bit / 8] >> (bit % 8) & 1) != 0;
  }

 private:
  const std::uint8_t* bits_ = nullptr;
  int64_t offset_ = 0;
  int64_t size_ = 0;
};

/// The validity of an array whose type has a bitmap: every type but null, unions and run-end
/// encoded ones. Without a bitmap, or with a null_count of 0, all values are valid. Ownership,
/// waiting and errors as of buffer(); EINVAL too when there are nulls and no bitmap.
template <RawArray Raw>
Result<Validity> validity(const Owner<Raw>& array) noexcept {
  return detail::guarded([&]() -> Result<Validity> {
    const Result<const void*> address = detail::host_buffer(array, 0);
    if (!address) return address.error();
    const ArrowArray& raw = detail::base(*array.get());
    if (*address == nullptr && raw.null_count > 0) {
      return detail::buffer_error(
          EINVAL, "no validity bitmap",
          "expected one, got NULL and a null_count of " + std::to_string(raw.null_count));
    }
    const void* bits = raw.null_count == 0 ? nullptr : *address;
    return Validity(static_cast<const std::uint8_t*>(bits), raw.offset, raw.length);
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_BUFFER_HPP

// SPDX-License-Identifier: Apache-2.0
//
// Typed C++ views of an array's values and validity in memory that the host can read.
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

/// Buffer `index` of a host-readable array. Errors: see buffer().
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

/// Returns `count` values of type T from buffer `index`, starting at the array's offset.
/// Fixed-width values are in buffer 1, `length` of them. Offsets of strings, binary values and
/// lists are also in buffer 1, `length + 1` of them (if the length is not 0). The structs do not
/// contain buffer sizes: the caller must know from the schema that the buffer holds offset + count
/// values of T. Not for booleans, which are bits, nor for the bytes of strings, to which the
/// array's offset does not apply: read these through the struct, at `buffers[2]`, between two
/// offsets.
///
/// Does not add the offsets of parents. Does not wait: call SyncEvent::synchronize first for a
/// device array with an event.
///
/// Ownership: the memory belongs to the producer and is valid until release; it is read-only.
/// Errors: ENOTSUP for a device type whose memory the host cannot read (docs/reference/devices.md);
/// EINVAL for a released array, a buffer index out of range, a NULL buffer if count is not 0, a
/// buffer that is not aligned for T, and for counts and offsets out of range; ENOMEM.
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

/// Overload with the array's length as `count`.
template <class T, RawArray Raw>
Result<std::span<const T>> buffer(const Owner<Raw>& array, int64_t index) noexcept {
  return buffer<T>(array, index, array.length());
}

/// The validity of an array's values, as a view of the array's memory.
class Validity {
 public:
  Validity() noexcept = default;
  /// `bits` is the bitmap, or NULL for an array without nulls.
  Validity(const std::uint8_t* bits, int64_t offset, int64_t size) noexcept
      : bits_(bits), offset_(offset), size_(size) {}

  [[nodiscard]] int64_t size() const noexcept { return size_; }

  /// Whether value `index` is valid (not null), 0 <= index < size().
  [[nodiscard]] bool operator[](int64_t index) const noexcept {
    const auto bit = static_cast<std::uint64_t>(offset_ + index);
    return bits_ == nullptr || (bits_[bit / 8] >> (bit % 8) & 1) != 0;
  }

 private:
  const std::uint8_t* bits_ = nullptr;
  int64_t offset_ = 0;
  int64_t size_ = 0;
};

/// Returns the validity of an array whose type has a bitmap: every type but null, union and run-end
/// encoded. Without a bitmap, or with a null_count of 0, all values are valid. Ownership, waiting
/// and errors as for buffer(); EINVAL also if the array has nulls and no bitmap.
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

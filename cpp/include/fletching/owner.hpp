// SPDX-License-Identifier: Apache-2.0
//
// Owners of the interface's structs: moved, never copied, released once.
#ifndef FLETCHING_OWNER_HPP
#define FLETCHING_OWNER_HPP

#include <cstring>
#include <type_traits>

#include "fletching/abi.h"

namespace fletching {
namespace detail {

/// The part of a struct that has the release callback.
constexpr ArrowArray& base(ArrowDeviceArray& raw) noexcept { return raw.array; }
constexpr const ArrowArray& base(const ArrowDeviceArray& raw) noexcept { return raw.array; }
template <class Raw>
constexpr Raw& base(Raw& raw) noexcept {
  return raw;
}

}  // namespace detail

/// Owns one struct of the C interfaces: ArrowSchema, ArrowArray, ArrowDeviceArray, ArrowArrayStream
/// or ArrowDeviceArrayStream.
///
/// Ownership: whoever holds the struct calls its release callback, once; the destructor does it. A
/// move is what the C Data Interface calls a move: a bitwise copy, after which the source is
/// released. Address: the struct lies inside the owner and moves with it, except for what its
/// pointers lead to, the event among them, which stays where it is.
///
/// Threads: one thread at a time, as with any object; release may run on any thread.
template <class Raw>
class Owner {
  static_assert(std::is_standard_layout_v<Raw> && std::is_trivially_copyable_v<Raw>);

 public:
  using raw_type = Raw;

  /// A released struct, all zero.
  Owner() noexcept = default;

  /// Moves *source in; afterwards *source is released. A released source gives a released owner.
  explicit Owner(Raw* source) noexcept { take(source); }

  Owner(Owner&& other) noexcept { take(&other.raw_); }
  Owner& operator=(Owner&& other) noexcept {
    if (this != &other) {
      release();
      take(&other.raw_);
    }
    return *this;
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() { release(); }

  /// Calls the release callback, unless it has run or the struct was moved away.
  void release() noexcept {
    if (!is_released()) detail::base(raw_).release(&detail::base(raw_));
    // A producer may forget to do it, and then the destructor would release for the second time.
    detail::base(raw_).release = nullptr;
  }

  [[nodiscard]] bool is_released() const noexcept { return detail::base(raw_).release == nullptr; }
  explicit operator bool() const noexcept { return !is_released(); }

  /// The struct, still owned here. Valid until the owner is moved or destroyed.
  [[nodiscard]] Raw* get() noexcept { return &raw_; }
  [[nodiscard]] const Raw* get() const noexcept { return &raw_; }
  Raw* operator->() noexcept { return &raw_; }
  const Raw* operator->() const noexcept { return &raw_; }

  /// A slot for a producer to fill: what was owned is released, and every byte is zero.
  [[nodiscard]] Raw* out() noexcept {
    release();
    std::memset(&raw_, 0, sizeof raw_);
    return &raw_;
  }

  /// Moves the struct to *target, which is overwritten and is the caller's to release. Afterwards
  /// the owner is released.
  void move_to(Raw* target) noexcept {
    std::memcpy(target, &raw_, sizeof raw_);
    detail::base(raw_).release = nullptr;
  }

 private:
  void take(Raw* source) noexcept {
    std::memcpy(&raw_, source, sizeof raw_);
    detail::base(*source).release = nullptr;
  }

  Raw raw_{};
};

using Schema = Owner<ArrowSchema>;
using Array = Owner<ArrowArray>;
using ArrayStream = Owner<ArrowArrayStream>;
using DeviceArray = Owner<ArrowDeviceArray>;
using DeviceArrayStream = Owner<ArrowDeviceArrayStream>;

}  // namespace fletching

#endif  // FLETCHING_OWNER_HPP

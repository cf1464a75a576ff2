// SPDX-License-Identifier: Apache-2.0
//
// Move-only owners of the C interface structs. Each releases its struct once. Children can be moved
// out, and objects can be attached to the release.
#ifndef FLETCHING_OWNER_HPP
#define FLETCHING_OWNER_HPP

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "fletching/abi.h"
#include "fletching/detail/handover.hpp"
#include "fletching/detail/ownership/hook.hpp"
#include "fletching/detail/ownership/tree.hpp"
#include "fletching/metadata.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

/// The part of a struct that contains the release callback.
constexpr ArrowArray& base(ArrowDeviceArray& raw) noexcept { return raw.array; }
constexpr const ArrowArray& base(const ArrowDeviceArray& raw) noexcept { return raw.array; }
template <class Raw>
constexpr Raw& base(Raw& raw) noexcept {
  return raw;  // NOLINT(bugprone-return-const-ref-from-parameter): both are references
}

template <class Raw>
using BaseOf = std::remove_cvref_t<decltype(base(std::declval<Raw&>()))>;

/// Zeroes every byte, including padding. Split into two calls because compilers zero more than 64
/// bytes with a string instruction, which is slow to start.
template <class Raw>
void zero(Raw* raw) noexcept {
  constexpr size_t kFirst = sizeof(Raw) < 64 ? sizeof(Raw) : 64;
  auto* bytes = reinterpret_cast<unsigned char*>(raw);
  std::memset(bytes, 0, kFirst);
  if constexpr (kFirst < sizeof(Raw)) std::memset(bytes + kFirst, 0, sizeof(Raw) - kFirst);
}

/// Moves a struct that stays in this program.
template <class Raw>
void move_struct(Raw* source, Raw* target) noexcept {
  std::memcpy(target, source, sizeof *source);
  base(*source).release = nullptr;
}

}  // namespace detail

/// ArrowArray or ArrowDeviceArray.
template <class Raw>
concept RawArray = std::same_as<Raw, ArrowArray> || std::same_as<Raw, ArrowDeviceArray>;

/// A struct with children: ArrowSchema, ArrowArray or ArrowDeviceArray.
template <class Raw>
concept NestedStruct = std::same_as<Raw, ArrowSchema> || RawArray<Raw>;

/// Owns one struct of the C interfaces: ArrowSchema, ArrowArray, ArrowDeviceArray, ArrowArrayStream
/// or ArrowDeviceArrayStream.
///
/// Ownership: the destructor calls the release callback. A move is a move in the sense of the C
/// Data Interface: a bitwise copy, after which the source is released. The struct is stored inside
/// the owner and moves with it. The memory that its pointers refer to, including the event, does
/// not move.
///
/// Accessors return data that belongs to the producer and is valid until release. If the struct is
/// released, they return zero or empty values (-1 for device_id), and functions that return a
/// Result return EINVAL.
///
/// The release callback is called once, even if it does not set `release` to NULL. The destructor
/// passes it the struct inside the owner. All other functions mark the owner as released first and
/// pass a copy on the stack. A callback must therefore use the address of its argument, never a
/// stored address.
///
/// Threads: one thread at a time. Any thread may release.
///
/// Source: Arrow C data interface, "Memory management"; C device data interface, "Memory
/// management".
template <class Raw>
class Owner {
  static_assert(std::is_standard_layout_v<Raw> && std::is_trivially_copyable_v<Raw>);

 public:
  using raw_type = Raw;
  using base_type = detail::BaseOf<Raw>;

  /// A released struct, all zero.
  Owner() noexcept { detail::zero(&raw_); }

  /// Moves *source in; *source is released afterwards. A released source makes a released owner.
  explicit Owner(Raw* source) noexcept : raw_(detail::imported(*source)) {
    detail::base(*source).release = nullptr;
  }

  Owner(Owner&& other) noexcept : raw_(other.raw_) { detail::base(other.raw_).release = nullptr; }
  /// Releases the previous struct after `other` has moved in, because it may contain `other`.
  Owner& operator=(Owner&& other) noexcept {
    if (this == &other) return *this;
    base_type last = detail::base(raw_);
    detail::move_struct(&other.raw_, &raw_);
    if (last.release != nullptr) last.release(&last);
    return *this;
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    // Releases in place, unlike release(): the owner is not used afterwards, so no copy is needed.
    if (!is_released()) detail::base(raw_).release(&detail::base(raw_));
  }

  /// Calls the release callback, unless it has run or the struct was moved away. The callback may
  /// destroy the owner, as a cache entry that erases itself does, or move another struct in.
  void release() noexcept {
    if (!is_released()) detail::release_moved_out(&detail::base(raw_));
  }

  [[nodiscard]] bool is_released() const noexcept { return detail::base(raw_).release == nullptr; }
  explicit operator bool() const noexcept { return !is_released(); }

  /// The struct, still owned by this object. Valid until the owner is moved or destroyed.
  [[nodiscard]] Raw* get() noexcept { return &raw_; }
  [[nodiscard]] const Raw* get() const noexcept { return &raw_; }
  Raw& operator*() noexcept { return raw_; }
  const Raw& operator*() const noexcept { return raw_; }
  Raw* operator->() noexcept { return &raw_; }
  const Raw* operator->() const noexcept { return &raw_; }

  /// Releases the previous struct and returns a zeroed one for a producer to fill.
  [[nodiscard]] Raw* out() noexcept {
    base_type last = detail::base(raw_);
    detail::zero(&raw_);
    // Last, because the callback may destroy the owner.
    if (last.release != nullptr) last.release(&last);
    return &raw_;
  }

  /// Moves the struct to *target, overwriting it; the caller must release *target. Afterwards the
  /// owner is released. Has no effect if `target` is get().
  void move_to(Raw* target) noexcept {
    if (target == &raw_) return;
    detail::move_struct(&raw_, target);
    detail::exported(*target);
  }

  // --- Schemas ---

  /// The format string; empty for NULL.
  [[nodiscard]] std::string_view format() const noexcept
    requires std::same_as<Raw, ArrowSchema>
  {
    return text(raw_.format);
  }

  /// The name; empty for NULL, which is equivalent. The producer may have written bytes that are
  /// not UTF-8.
  [[nodiscard]] std::string_view name() const noexcept
    requires std::same_as<Raw, ArrowSchema>
  {
    return text(raw_.name);
  }

  /// The validated metadata. Errors: EINVAL if the schema is released; see MetadataView::read.
  [[nodiscard]] Result<MetadataView> metadata() const noexcept
    requires std::same_as<Raw, ArrowSchema>
  {
    if (is_released())
      return detail::plain_error(EINVAL, "metadata: schema is released: expected a live schema");
    return MetadataView::read(raw_.metadata);
  }

  // --- Arrays ---

  /// The number of values.
  [[nodiscard]] int64_t length() const noexcept
    requires RawArray<Raw>
  {
    return is_released() ? 0 : detail::base(raw_).length;
  }

  /// The number of nulls; -1 if the producer has not counted them.
  [[nodiscard]] int64_t null_count() const noexcept
    requires RawArray<Raw>
  {
    return is_released() ? 0 : detail::base(raw_).null_count;
  }

  [[nodiscard]] ArrowDeviceType device_type() const noexcept
    requires requires(const Raw& raw) { raw.device_type; }
  {
    return is_released() ? 0 : raw_.device_type;
  }

  [[nodiscard]] int64_t device_id() const noexcept
    requires std::same_as<Raw, ArrowDeviceArray>
  {
    return is_released() ? -1 : raw_.device_id;
  }

  // --- Children and dictionary ---

  /// The children. A child that was moved out is still listed, as a released struct. Empty if the
  /// list is NULL, or if the count is negative or above 2^22. The parent owns the structs: only the
  /// parent releases them.
  [[nodiscard]] std::span<const base_type* const> children() const noexcept
    requires NestedStruct<Raw>
  {
    if (is_released()) return {};
    return detail::children_of(detail::base(raw_));
  }

  /// Moves child `index` (from 0) out to the caller. The parent still lists it, as released. The
  /// Arrow specification asks the caller to release the parent soon afterwards.
  ///
  /// A child of a device array is a device array on the same device, with the parent's event. The
  /// event lives until the parent and every child taken by this function are released, even if the
  /// parent's release destroys it: in that case the call allocates, and replaces release and
  /// private_data of both structs.
  ///
  /// Errors: EINVAL if the child does not exist or was moved out before; ENOMEM. On error the array
  /// is unchanged.
  Result<Owner> take_child(int64_t index) noexcept
    requires NestedStruct<Raw>;

  /// Moves the dictionary out, like take_child.
  Result<Owner> take_dictionary() noexcept
    requires NestedStruct<Raw>;

 private:
  [[nodiscard]] std::string_view text(const char* chars) const noexcept {
    return is_released() || chars == nullptr ? std::string_view() : std::string_view(chars);
  }

  Raw raw_;
};

using Schema = Owner<ArrowSchema>;
using Array = Owner<ArrowArray>;
using ArrayStream = Owner<ArrowArrayStream>;
using DeviceArray = Owner<ArrowDeviceArray>;
using DeviceArrayStream = Owner<ArrowDeviceArrayStream>;

namespace detail {

/// Releases owners inside other owners without recursion: see destroy_node.
template <class Raw>
void let_go(Owner<Raw>& owner, ReleaseStack& stack) noexcept {
  release_onto(&base(*owner.get()), stack);
}

}  // namespace detail

template <class Raw>
Result<Owner<Raw>> Owner<Raw>::take_child(int64_t index) noexcept
  requires NestedStruct<Raw>
{
  return detail::guarded([&]() -> Result<Owner> {
    if (is_released())
      return Error(EINVAL, "take_child: parent is released: expected a live parent");
    const auto refused = [&](const std::string& why) {
      return Error(EINVAL, "take_child: child " + std::to_string(index) + ": " + why);
    };
    const auto listed = static_cast<int64_t>(children().size());
    if (index < 0 || index >= listed) {
      return refused("no such child: expected an index below " + std::to_string(listed));
    }
    base_type* child = detail::base(raw_).children[index];
    if (child == nullptr) return refused("NULL: expected a struct");
    if (child->release == nullptr) return refused("released or moved out: expected a live child");
    Result<Owner> taken(std::in_place);
    detail::take_out(raw_, child, &taken->raw_);
    return taken;
  });
}

template <class Raw>
Result<Owner<Raw>> Owner<Raw>::take_dictionary() noexcept
  requires NestedStruct<Raw>
{
  return detail::guarded([&]() -> Result<Owner> {
    if (is_released())
      return Error(EINVAL, "take_dictionary: parent is released: expected a live parent");
    base_type* dictionary = detail::base(raw_).dictionary;
    if (dictionary == nullptr) return Error(EINVAL, "take_dictionary: NULL: expected a dictionary");
    if (dictionary->release == nullptr) {
      return Error(EINVAL, "take_dictionary: released or moved out: expected a live dictionary");
    }
    Result<Owner> taken(std::in_place);
    detail::take_out(raw_, dictionary, &taken->raw_);
    return taken;
  });
}

/// Attaches an object to a schema, array or device array of any producer: release first runs the
/// original callback, then destroys `object`, on the thread that releases. Use it for a dependency
/// of the data that the producer does not manage: a stream, a mapping, a lock.
///
/// Ownership: `object` is moved (or copied) into one heap allocation, which release frees. A child
/// that is moved out does not keep it alive; use Shared for that.
///
/// Errors: EINVAL if `target` is released; ENOMEM. On error `target` is unchanged.
template <class Raw, class Object>
  requires NestedStruct<Raw>
Status attach(Owner<Raw>& target, Object&& object) noexcept {
  using Stored = std::remove_cvref_t<Object>;
  static_assert(std::is_nothrow_constructible_v<Stored, Object&&>,
                "attach: object: expected a type whose move is noexcept; hint: put it into a "
                "std::unique_ptr");
  using Hook = detail::Hook<detail::BaseOf<Raw>, Stored>;
  return detail::guarded([&]() -> Status {
    if (target.is_released())
      return Error(EINVAL, "attach: target is released: expected a live struct");
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded catches it
    auto* const hook = new Hook{{}, std::forward<Object>(object)};
    Hook::set(hook, &detail::base(*target.get()));
    return {};
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_OWNER_HPP

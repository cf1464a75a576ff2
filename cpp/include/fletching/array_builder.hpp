// SPDX-License-Identifier: Apache-2.0
//
// For producers: builds an array with all its children in one allocation, from buffers and the
// object that owns them.
#ifndef FLETCHING_ARRAY_BUILDER_HPP
#define FLETCHING_ARRAY_BUILDER_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>

#include "fletching/abi.h"
#include "fletching/detail/builder_error.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/detail/ownership/block.hpp"
#include "fletching/detail/ownership/tree.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The capacity of an ArrayBuilder.
struct ArrayCapacity {
  int64_t arrays = 0;   ///< Children and dictionaries at every depth; the array itself not counted.
  int64_t buffers = 0;  ///< Buffers of all arrays, including the array itself.
};

/// The length, null count and offset of an array.
struct ArrayValues {
  int64_t length = 0;
  int64_t null_count = 0;  ///< -1: not counted
  int64_t offset = 0;      ///< in values, into every buffer
};

namespace detail {

FLETCHING_DETAIL_COLD inline bool has_no_event(ArrowDeviceType type) noexcept {
  const DeviceInfo* device = find_device(type);
  return device != nullptr && device->event_pointer == EventPointer::kNone;
}

constexpr bool is_plausible(const ArrayValues& values) noexcept {
  return (values.length | values.offset) >= 0 && values.null_count >= -1 &&
         values.null_count <= values.length;
}

/// The offsets of an array without values: a single zero, of 32 or 64 bits.
inline constexpr int64_t kZeroOffset = 0;

/// Whether the offsets of an empty array are NULL. Consumers reject NULL there and expect one
/// offset. For a type without offsets the buffer has 0 bytes, so any address is valid.
constexpr bool lacks_offsets(const ArrayValues& values, int64_t n_buffers,
                             const void* const* buffers) noexcept {
  return (values.length | values.offset) == 0 && n_buffers > 1 && buffers[1] == nullptr;
}

// Single return, for copy elision.
inline Result<DeviceArray> flat_array(ArrayValues values, int64_t n_buffers, const void** buffers,
                                      BlockHead* block, void (*release)(ArrowArray*),
                                      ArrowDeviceType device_type, int64_t device_id,
                                      void* sync_event) noexcept {
  Result<DeviceArray> result(std::in_place);
  ArrowDeviceArray& raw = **result;
  raw.array.length = values.length;
  raw.array.null_count = values.null_count;
  raw.array.offset = values.offset;
  raw.array.n_buffers = n_buffers;
  raw.array.buffers = n_buffers == 0 ? nullptr : buffers;
  if (device_type == ARROW_DEVICE_CPU && lacks_offsets(values, n_buffers, buffers)) {
    buffers[1] = &kZeroOffset;
  }
  raw.device_id = device_id;
  raw.device_type = device_type;
  raw.sync_event = sync_event;
  block->shares.store(1, std::memory_order_relaxed);
  join_block(&raw.array, block, release);
  return result;
}

/// Zeroes the padding after the last field, if any.
inline void zero_padding(ArrowArray* array) noexcept {
  constexpr size_t kEnd = offsetof(ArrowArray, private_data) + sizeof array->private_data;
  if constexpr (kEnd < sizeof(ArrowArray)) {
    std::memset(reinterpret_cast<char*>(array) + kEnd, 0, sizeof(ArrowArray) - kEnd);
  }
}

}  // namespace detail

/// The device_id of the CPU in Arrow (docs/reference/errata.md, cpu-device-id).
inline constexpr int64_t kCpuDeviceId = -1;

/// The range of structs added by ArrayBuilder::add_children. Empty if the request was rejected.
class AddedChildren {
 public:
  [[nodiscard]] ArrowArray* begin() const noexcept { return first_; }
  [[nodiscard]] ArrowArray* end() const noexcept { return first_ + size_; }
  [[nodiscard]] size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Child `index`, from 0. Out of range: a spare struct, for which the builder rejects every
  /// request; `finish` returns the error.
  [[nodiscard]] ArrowArray& operator[](size_t index) const noexcept {
    return index < size_ ? first_[index] : *spare_;
  }

 private:
  template <class Object>
  friend class ArrayBuilder;
  AddedChildren(ArrowArray* first, int64_t size, ArrowArray* spare) noexcept
      : first_(first), size_(static_cast<size_t>(size)), spare_(spare) {}

  ArrowArray* first_;
  size_t size_;
  ArrowArray* spare_;
};

/// Builds an array in place:
///
///     auto builder = build_array({.arrays = 2, .buffers = 5}, std::move(columns));  // any object
///     if (!builder) return std::move(builder).error();
///     builder->set(builder->root(), {.length = rows}, {nullptr});
///     for (ArrowArray& column : builder->add_children(builder->root(), 2)) {
///       builder->set(column, {.length = rows}, {nullptr, builder->object().next_column()});
///     }
///     return builder->finish(ARROW_DEVICE_CUDA, device_id, &builder->object().event);
///
/// Ownership: the builder makes one allocation, the block, which contains `object`, the structs of
/// the children, and the lists of buffers and children. It lives until the last struct is released:
/// the array, or a child or dictionary that was moved out of it. The thread that releases last
/// destroys `object`. The buffers and the event belong to `object` or to another owner, and must
/// outlive `object`. Destroying an unfinished builder destroys the block.
///
/// Errors: a request that cannot be met changes nothing, and later requests have no effect.
/// `finish` returns EINVAL with the reason of the first error, so the requests need no error
/// checks. `build_array_for` (fletching/array_capacity.hpp) computes the capacity from a schema.
///
/// Threads: use a builder from one thread at a time. Any thread may release the array, and several
/// threads may release children that were moved out concurrently.
///
/// Source: Arrow C data interface, "Release callback semantics for producers", "Moving child
/// arrays".
template <class Object>
class ArrayBuilder {
  using Block = detail::Block<ArrowArray, const void*, Object>;
  class Key {
    friend ArrayBuilder;
    Key() noexcept = default;
  };

 public:
  /// Consumes `object` on success; on error the caller still owns it. Errors: EINVAL for a negative
  /// capacity; ENOMEM, also for 2^22 arrays or more.
  static Result<ArrayBuilder> make(ArrayCapacity capacity, Object&& object) noexcept {
    if (capacity.arrays < 0 || capacity.buffers < 0) {
      return detail::builder_error(detail::BuilderError::kCapacity);
    }
    Block* block = nullptr;
    if (capacity.arrays < detail::kMaxStructs) {
      block = Block::make(capacity.arrays + 2, capacity.buffers, std::move(object));
    }
    if (block == nullptr) return detail::out_of_memory();
    return Result<ArrayBuilder>(std::in_place, Key(), block, capacity);
  }

  /// For `make` only.
  ArrayBuilder(Key /*key*/, Block* block, ArrayCapacity capacity) noexcept
      : block_(block),
        next_buffer_(block->extra()),
        buffers_left_(capacity.buffers),
        arrays_left_(capacity.arrays) {
    root().release = nullptr;
    // The spare looks completely set, so every request rejects it without an extra check.
    ArrowArray& none = spare();
    detail::join_block(&none, block_);
    none.children = block_->pointers();
    none.dictionary = &none;
  }

  ArrayBuilder(ArrayBuilder&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        next_buffer_(other.next_buffer_),
        buffers_left_(other.buffers_left_),
        arrays_left_(other.arrays_left_),
        set_(other.set_),
        zero_offsets_(other.zero_offsets_),
        fault_(other.fault_) {}
  ArrayBuilder(const ArrayBuilder&) = delete;
  ArrayBuilder& operator=(const ArrayBuilder&) = delete;
  ArrayBuilder& operator=(ArrayBuilder&&) = delete;
  ~ArrayBuilder() {
    if (block_ != nullptr) detail::destroy_block(block_);
  }

  /// The owning object at its final address. An event inside it thus has the stable address that
  /// the interface requires. Valid until finish.
  [[nodiscard]] Object& object() noexcept { return block_->object; }

  /// The array itself. `finish` moves it out.
  [[nodiscard]] ArrowArray& root() noexcept { return *block_->structs(); }

  /// Sets the values and buffers of `array`, which is the root or was added by this builder. Call
  /// it once per array. The list of buffers is copied. Its entries are addresses, usually on the
  /// device, or NULL.
  ///
  /// On the CPU, a NULL buffers[1] of an array without values is replaced by the address of one
  /// zero offset. On other devices it stays NULL: pass offsets for strings, binary values and
  /// lists.
  void set(ArrowArray& array, ArrayValues values, std::span<const void* const> buffers) noexcept {
    using enum detail::BuilderError;
    const auto n_buffers = static_cast<int64_t>(buffers.size());
    if (!detail::is_plausible(values)) return refuse(kValues);
    if (array.release != nullptr) return refuse(&array == &spare() ? kNotAdded : kSetTwice);
    buffers_left_ -= n_buffers;
    if (buffers_left_ < 0) return refuse_buffers(n_buffers);

    const void** const list = next_buffer_;
    // NOLINTNEXTLINE(bugprone-bitwise-pointer-cast): no cast, and cheaper than a loop
    if (!buffers.empty()) std::memcpy(list, buffers.data(), buffers.size_bytes());
    if (detail::lacks_offsets(values, n_buffers, list)) {
      list[1] = &detail::kZeroOffset;
      zero_offsets_ = true;
    }
    next_buffer_ += n_buffers;
    detail::zero_padding(&array);
    array.length = values.length;
    array.null_count = values.null_count;
    array.offset = values.offset;
    array.n_buffers = n_buffers;
    array.n_children = 0;
    array.buffers = n_buffers == 0 ? nullptr : list;
    array.children = nullptr;
    array.dictionary = nullptr;
    detail::join_block(&array, block_);
    ++set_;
  }
  void set(ArrowArray& array, ArrayValues values,
           std::initializer_list<const void*> buffers) noexcept {
    set(array, values, std::span(buffers.begin(), buffers.size()));
  }

  /// Adds `count` children to `parent`, which is the root or was added by this builder, and has
  /// been set. The children are contiguous, and each must be set. Returns an empty range if the
  /// request is rejected.
  AddedChildren add_children(ArrowArray& parent, int64_t count) noexcept {
    using enum detail::BuilderError;
    if (!may_add(parent, count)) return none();
    if (parent.children != nullptr) return refuse(kHasChildren), none();
    if (count == 0) return none();
    ArrowArray* const first = block_->structs() + added();
    ArrowArray** const list = block_->pointers() + added();
    for (int64_t i = 0; i < count; ++i) {
      list[i] = first + i;
      first[i].release = nullptr;
    }
    arrays_left_ -= count;
    parent.children = list;
    parent.n_children = count;
    return {first, count, &spare()};
  }

  /// Adds a dictionary to `array`, which is the root or was added by this builder, and has been
  /// set. The dictionary must be set too. If the request is rejected, returns a struct that cannot
  /// be set.
  ArrowArray& add_dictionary(ArrowArray& array) noexcept {
    using enum detail::BuilderError;
    if (!may_add(array, 1)) return spare();
    if (array.dictionary != nullptr) return refuse(kHasDictionary), spare();
    array.dictionary = block_->structs() + added();
    array.dictionary->release = nullptr;
    --arrays_left_;
    return *array.dictionary;
  }

  /// The array. Afterwards the builder may only be destroyed. Errors: EINVAL for the first request
  /// that could not be met, or if an array was not set; the builder is then unchanged.
  Result<Array> finish() noexcept {
    if (!is_complete()) return detail::builder_error(what_is_wrong());
    return hand_over();
  }

  /// The array as a device array, with `reserved` zeroed. A non-NULL `sync_event` must have the
  /// type that the device type requires (docs/synchronization.md): usually the address of the
  /// handle, which must stay valid until `object` is destroyed.
  ///
  /// Errors: as above; EINVAL also for an event on a device type without events.
  Result<DeviceArray> finish(ArrowDeviceType device_type, int64_t device_id,
                             void* sync_event = nullptr) noexcept {
    if (!is_complete()) return detail::builder_error(what_is_wrong());
    if (sync_event != nullptr && detail::has_no_event(device_type)) {
      return detail::builder_error(detail::BuilderError::kEvent);
    }
    if (zero_offsets_ && device_type != ARROW_DEVICE_CPU) remove_zero_offsets();
    return hand_over(device_type, device_id, sync_event);
  }

  /// The array as a device array on the CPU. Errors as above.
  Result<DeviceArray> finish_cpu() noexcept { return finish(ARROW_DEVICE_CPU, kCpuDeviceId); }

 private:
  // Keeps the first error. Later requests find no buffers left and are rejected too.
  FLETCHING_DETAIL_COLD void refuse(detail::BuilderError why, int64_t expected = 0,
                                    int64_t got = 0) noexcept {
    if (fault_.what == detail::BuilderError::kNone) fault_ = {why, expected, got};
    buffers_left_ = -1;
  }

  FLETCHING_DETAIL_COLD void refuse_buffers(int64_t count) noexcept {
    const int64_t used = next_buffer_ - block_->extra();
    refuse(detail::BuilderError::kTooFewBuffers, used + count, used + buffers_left_ + count);
  }

  bool may_add(const ArrowArray& parent, int64_t count) noexcept {
    using enum detail::BuilderError;
    if (parent.release == nullptr) return refuse(kParentNotSet), false;
    if (&parent == &spare()) return refuse(kNotAdded), false;
    if (count < 0) return refuse(kNegativeCount), false;
    if (count > arrays_left_ || buffers_left_ < 0) {
      const int64_t used = added() - 1;
      return refuse(kTooFewArrays, detail::saturating_add(used, count), used + arrays_left_), false;
    }
    return true;
  }

  [[nodiscard]] AddedChildren none() noexcept { return {nullptr, 0, &spare()}; }

  /// The spare struct, returned for a child or dictionary that does not exist.
  [[nodiscard]] ArrowArray& spare() noexcept { return block_->structs()[block_->n_structs - 1]; }

  [[nodiscard]] bool is_complete() const noexcept {
    return set_ == added() && fault_.what == detail::BuilderError::kNone;
  }

  [[nodiscard]] detail::BuilderFault what_is_wrong() const noexcept {
    if (fault_.what != detail::BuilderError::kNone) return fault_;
    return {detail::BuilderError::kNotSet};
  }

  // The zero offset is in host memory, which another device cannot read.
  FLETCHING_DETAIL_COLD void remove_zero_offsets() noexcept {
    const void** const end = next_buffer_;
    for (const void** buffer = block_->extra(); buffer != end; ++buffer) {
      if (*buffer == &detail::kZeroOffset) *buffer = nullptr;
    }
  }

  [[nodiscard]] int64_t added() const noexcept { return block_->n_structs - 1 - arrays_left_; }

  // Single return, for copy elision.
  Result<Array> hand_over() noexcept {
    Result<Array> result(std::in_place);
    move_root_to(result->get());
    return result;
  }

  Result<DeviceArray> hand_over(ArrowDeviceType device_type, int64_t device_id,
                                void* sync_event) noexcept {
    Result<DeviceArray> result(std::in_place);
    ArrowDeviceArray& raw = **result;
    move_root_to(&raw.array);
    raw.device_id = device_id;
    raw.device_type = device_type;
    raw.sync_event = sync_event;
    return result;
  }

  void move_root_to(ArrowArray* out) noexcept {
    block_->shares.store(set_, std::memory_order_relaxed);
    *out = *std::exchange(block_, nullptr)->structs();
  }

  Block* block_;
  const void** next_buffer_;
  int64_t buffers_left_;
  int64_t arrays_left_;
  int64_t set_ = 0;
  bool zero_offsets_ = false;
  detail::BuilderFault fault_;
};

/// Returns a builder for an array of any type whose data `object` owns: see ArrayBuilder.
template <class Object>
Result<ArrayBuilder<Object>> build_array(ArrayCapacity capacity, Object&& object) noexcept {
  static_assert(!std::is_reference_v<Object>, "the builder owns the object: std::move it in");
  return ArrayBuilder<Object>::make(capacity, std::forward<Object>(object));
}

/// Makes a device array without children in one allocation, without an ArrayBuilder. The list of
/// `buffers` is copied. The buffers and the event belong to `object`, which is destroyed when the
/// array is released. `object` moves, so neither the buffers nor the event may be inside it, like
/// the bytes of a short std::string or a std::array: use build_array and ArrayBuilder::object for
/// these.
///
/// Errors: EINVAL for an invalid length, null count or offset, and for an event on a device type
/// without events; ENOMEM. On error the caller still owns `object`.
template <class Object>
Result<DeviceArray> make_device_array(ArrayValues values,
                                      std::initializer_list<const void*> buffers, Object&& object,
                                      ArrowDeviceType device_type, int64_t device_id,
                                      void* sync_event = nullptr) noexcept {
  static_assert(!std::is_reference_v<Object>, "the array owns the object: std::move it in");
  using Block = detail::Block<ArrowArray, const void*, Object>;
  using enum detail::BuilderError;
  const auto n_buffers = static_cast<int64_t>(buffers.size());
  if (!detail::is_plausible(values)) return detail::builder_error(kValues);
  if (sync_event != nullptr && detail::has_no_event(device_type)) {
    return detail::builder_error(kEvent);
  }
  Block* block = Block::make(0, n_buffers, std::forward<Object>(object));
  if (block == nullptr) return detail::out_of_memory();
  const void** next = block->extra();
  for (const void* buffer : buffers) *next++ = buffer;
  auto* release = &detail::release_in_block<ArrowArray>;
  if constexpr (!detail::Nested<Object>) release = &detail::release_with_block<Block, ArrowArray>;
  return detail::flat_array(values, n_buffers, block->extra(), block, release, device_type,
                            device_id, sync_event);
}

/// Like make_device_array, for an array on the CPU.
template <class Object>
Result<DeviceArray> make_cpu_array(ArrayValues values, std::initializer_list<const void*> buffers,
                                   Object&& object) noexcept {
  return make_device_array(values, buffers, std::forward<Object>(object), ARROW_DEVICE_CPU,
                           kCpuDeviceId);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_ARRAY_BUILDER_HPP

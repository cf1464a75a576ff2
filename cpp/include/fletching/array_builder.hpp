// SPDX-License-Identifier: Apache-2.0
//
// For producers: an array with all its children, made from buffers and from the object that owns
// them, in one allocation.
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
#include "fletching/detail/block.hpp"
#include "fletching/detail/builder_error.hpp"
#include "fletching/detail/checked.hpp"
#include "fletching/detail/tree.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// What a builder makes room for.
struct ArrayCapacity {
  int64_t arrays = 0;   ///< Children and dictionaries at every depth; the array itself not counted.
  int64_t buffers = 0;  ///< Buffers of all arrays, its own included.
};

/// What an array says about its values.
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

/// The offsets of an array without values: one, of 32 or 64 bits.
inline constexpr int64_t kZeroOffset = 0;

/// Whether NULL stands for offsets that have one entry. Consumers refuse NULL there. For a type
/// without offsets the buffer has 0 bytes, so that any address fits.
constexpr bool lacks_offsets(const ArrayValues& values, int64_t n_buffers,
                             const void* const* buffers) noexcept {
  return (values.length | values.offset) == 0 && n_buffers > 1 && buffers[1] == nullptr;
}

// It has one return, so that nothing is copied on the way.
inline Result<DeviceArray> flat_array(ArrayValues values, int64_t n_buffers, const void** buffers,
                                      BlockHead* block, ArrowDeviceType device_type,
                                      int64_t device_id, void* sync_event) noexcept {
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
  join_block(&raw.array, block);
  return result;
}

/// What follows the last field, where there is something.
inline void zero_padding(ArrowArray* array) noexcept {
  constexpr size_t kEnd = offsetof(ArrowArray, private_data) + sizeof array->private_data;
  if constexpr (kEnd < sizeof(ArrowArray)) {
    std::memset(reinterpret_cast<char*>(array) + kEnd, 0, sizeof(ArrowArray) - kEnd);
  }
}

}  // namespace detail

/// The device_id of the CPU in Arrow (docs/reference/errata.md, cpu-device-id).
inline constexpr int64_t kCpuDeviceId = -1;

/// The structs that ArrayBuilder::add_children added: a range. None when the request was refused.
class AddedChildren {
 public:
  [[nodiscard]] ArrowArray* begin() const noexcept { return first_; }
  [[nodiscard]] ArrowArray* end() const noexcept { return first_ + size_; }
  [[nodiscard]] size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// Child `index`, from 0. For a child that does not exist a spare struct: the builder refuses
  /// every request for it, and `finish` returns the error.
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
/// Ownership: there is one allocation, the block. It holds `object`, the structs of the children
/// and the lists of buffers and children, and it lives until the last of the structs is released:
/// the array, or a child or dictionary that was moved out of it. Then `object` is destroyed, on the
/// thread that released last. The buffers and the event belong to `object` or to another owner:
/// they have to live as long as `object` does. A builder that is destroyed unfinished destroys the
/// block.
///
/// Errors: a request that cannot be met changes nothing, and neither does any request after it;
/// `finish` returns the error, EINVAL with the reason. So no request needs a check of its own.
/// `build_array_for` (fletching/array_capacity.hpp) takes the capacity from a schema.
///
/// Threads: a builder is used by one thread at a time; what it has built may be released by any
/// thread, children that were moved out by several at once.
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
  /// Consumes `object` on success; on an error it is still the caller's. Errors: EINVAL for a
  /// negative capacity; ENOMEM, also for 2^22 arrays and more.
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

  /// What `make` calls.
  ArrayBuilder(Key /*key*/, Block* block, ArrayCapacity capacity) noexcept
      : block_(block),
        next_buffer_(block->extra()),
        buffers_left_(capacity.buffers),
        arrays_left_(capacity.arrays) {
    root().release = nullptr;
    // It looks as if everything had been set, so that no request has to ask for it.
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

  /// The owning object, at the address where it stays: an event in it has the stable address that
  /// the interface asks for. Until finish.
  [[nodiscard]] Object& object() noexcept { return block_->object; }

  /// The array itself. It moves away in finish.
  [[nodiscard]] ArrowArray& root() noexcept { return *block_->structs(); }

  /// Says what is in `array`, which is the root or was added here; once for each. The list of
  /// buffers is copied: addresses where the data is, on the device as a rule, or NULL.
  ///
  /// On the CPU, NULL in buffers[1] of an array without values becomes the address of one zero
  /// offset. Elsewhere it stays NULL: for strings, binary values and lists pass offsets.
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

  /// Adds `count` children to `parent`, which is the root or was added here and has been set. They
  /// lie side by side, and each has to be set. None when the request is refused.
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

  /// Adds a dictionary to `array`, which is the root or was added here and has been set, to be set
  /// too. When the request fails, a struct that cannot be set.
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
  /// that could not be met, or when an array was not set; then the builder is unchanged.
  Result<Array> finish() noexcept {
    if (!is_complete()) return detail::builder_error(what_is_wrong());
    return hand_over();
  }

  /// The array as a device array; `reserved` is zero. `sync_event`, where there is one, is of the
  /// type that the device type has (docs/synchronization.md): the address of the handle as a rule,
  /// which has to be the same until `object` is destroyed.
  ///
  /// Errors: EINVAL also for an event on a device type that has none.
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
  // The first one counts. No later request finds room.
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

  /// Stands for a struct that does not exist: the index after the last one.
  [[nodiscard]] ArrowArray& spare() noexcept { return block_->structs()[block_->n_structs - 1]; }

  [[nodiscard]] bool is_complete() const noexcept {
    return set_ == added() && fault_.what == detail::BuilderError::kNone;
  }

  [[nodiscard]] detail::BuilderFault what_is_wrong() const noexcept {
    if (fault_.what != detail::BuilderError::kNone) return fault_;
    return {detail::BuilderError::kNotSet};
  }

  // Memory of the host, which another device cannot read.
  FLETCHING_DETAIL_COLD void remove_zero_offsets() noexcept {
    const void** const end = next_buffer_;
    for (const void** buffer = block_->extra(); buffer != end; ++buffer) {
      if (*buffer == &detail::kZeroOffset) *buffer = nullptr;
    }
  }

  [[nodiscard]] int64_t added() const noexcept { return block_->n_structs - 1 - arrays_left_; }

  // These have one return, so that nothing is copied on the way.
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

/// A builder for an array whose data `object` owns, of whatever type: see ArrayBuilder.
template <class Object>
Result<ArrayBuilder<Object>> build_array(ArrayCapacity capacity, Object&& object) noexcept {
  static_assert(!std::is_reference_v<Object>, "the builder owns the object: std::move it in");
  return ArrayBuilder<Object>::make(capacity, std::forward<Object>(object));
}

/// A device array without children, in one allocation: the short way where ArrayBuilder has nothing
/// to build. The list of `buffers` is copied; they and the event belong to `object`, which is
/// destroyed when the array is released. `object` moves, so neither the buffers nor the event may
/// be inside it, as the bytes of a short std::string or a std::array are: for these use build_array
/// and the address that ArrayBuilder::object has.
///
/// Errors: EINVAL for numbers that no array has, and for an event on a device type that has none;
/// ENOMEM. Then `object` is still the caller's.
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
  return detail::flat_array(values, n_buffers, block->extra(), block, device_type, device_id,
                            sync_event);
}

/// The same on the CPU.
template <class Object>
Result<DeviceArray> make_cpu_array(ArrayValues values, std::initializer_list<const void*> buffers,
                                   Object&& object) noexcept {
  return make_device_array(values, buffers, std::forward<Object>(object), ARROW_DEVICE_CPU,
                           kCpuDeviceId);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_ARRAY_BUILDER_HPP

// SPDX-License-Identifier: Apache-2.0
//
// For producers: an array with all its children, made from buffers and from the object that owns
// them, in one allocation.
#ifndef FLETCHING_ARRAY_BUILDER_HPP
#define FLETCHING_ARRAY_BUILDER_HPP

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "fletching/abi.h"
#include "fletching/block.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/tables.hpp"

namespace fletching {

/// What a builder makes room for.
struct ArrayCapacity {
  int64_t arrays = 0;   ///< Children and dictionaries at every depth; the array itself not counted.
  int64_t buffers = 0;  ///< Buffers of all arrays, its own included.
};

/// What an array says about its values.
struct ArrayValues {
  int64_t length = 0;
  int64_t null_count = 0;  ///< -1: nobody has counted
  int64_t offset = 0;      ///< in values, into every buffer
};

/// Builds an array in place:
///
///     auto builder = build_array({.arrays = 2, .buffers = 5}, std::move(columns));  // any object
///     if (!builder) return builder.error();
///     builder->set(builder->root(), {.length = rows}, {nullptr});
///     auto children = builder->add_children(builder->root(), 2);
///     if (!children) return children.error();
///     builder->set((*children)[0], {rows}, {nullptr, builder->object().keys});
///     builder->set((*children)[1], {rows, nulls}, {bitmap, builder->object().values});
///     return builder->finish(ARROW_DEVICE_CUDA, device_id, &builder->object().event);
///
/// (Each `set` returns a Status; one that was not looked at makes `finish` fail.)
///
/// Ownership: there is one allocation, the block. It holds `object`, the structs of the children
/// and the lists of buffers and children, and it lives until the last of the structs is released:
/// the array, or a child or dictionary that was moved out of it. Then `object` is destroyed, on the
/// thread that released last. The buffers and the event are `object`'s, or whoever's they are: they
/// have to live as long as `object` does. A builder that is destroyed unfinished destroys the
/// block.
///
/// Errors: EINVAL names the argument that is wrong.
///
/// Threads: a builder is used by one thread at a time; what it has built may be released by any
/// thread, children that were moved out by several at once.
///
/// Source: Arrow C data interface, "Release callback semantics for producers", "Moving child
/// arrays".
template <class Object>
class ArrayBuilder {
 public:
  /// Takes `object` when it succeeds; else it is still the caller's. Errors: EINVAL for a negative
  /// capacity, ENOMEM.
  static Result<ArrayBuilder> make(ArrayCapacity capacity, Object&& object) noexcept {
    if (capacity.arrays < 0 || capacity.buffers < 0) return refused("the capacity is less than 0");
    Block* block = nullptr;
    if (capacity.arrays < std::numeric_limits<int64_t>::max()) {
      block = Block::make(capacity.arrays + 1, capacity.buffers, std::move(object));
    }
    if (block == nullptr) return Error(ENOMEM, "out of memory");
    return ArrayBuilder(block, capacity);
  }

  ArrayBuilder(ArrayBuilder&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        next_buffer_(other.next_buffer_),
        arrays_left_(other.arrays_left_),
        buffers_left_(other.buffers_left_) {}
  ArrayBuilder(const ArrayBuilder&) = delete;
  ArrayBuilder& operator=(const ArrayBuilder&) = delete;
  ArrayBuilder& operator=(ArrayBuilder&&) = delete;
  ~ArrayBuilder() {
    if (block_ != nullptr) Block::destroy_block(block_);
  }

  /// The owning object, at the address where it stays: an event in it has the stable address that
  /// the interface asks for. Until finish.
  [[nodiscard]] Object& object() noexcept { return block_->object; }

  /// The array itself. It moves away in finish.
  [[nodiscard]] ArrowArray& root() noexcept { return *block_->structs(); }

  /// Says what is in `array`, which is the root or was added here; once for each. The list of
  /// buffers is copied: addresses where the data is, on the device as a rule, or NULL.
  ///
  /// Errors: EINVAL for numbers that no array has, for more buffers than there is room for, and
  /// when it has been done before.
  Status set(ArrowArray& array, const ArrayValues& values,
             std::span<const void* const> buffers) noexcept {
    const auto n_buffers = static_cast<int64_t>(buffers.size());
    if (array.release != nullptr) return refused("the array has been set before");
    if ((values.length | values.offset) < 0) return refused("length or offset is less than 0");
    if (values.null_count < -1 || values.null_count > values.length) {
      return refused("null_count is not between -1 and length");
    }
    if (n_buffers > buffers_left_) return too_few("buffers", buffers_left_, n_buffers);

    array.length = values.length;
    array.null_count = values.null_count;
    array.offset = values.offset;
    array.n_buffers = n_buffers;
    if (n_buffers > 0) {
      std::copy_n(buffers.data(), n_buffers, next_buffer_);
      array.buffers = next_buffer_;
      next_buffer_ += n_buffers;
      buffers_left_ -= n_buffers;
    }
    detail::join_block(&array, block_);
    ++set_;
    return {};
  }
  Status set(ArrowArray& array, const ArrayValues& values,
             std::initializer_list<const void*> buffers) noexcept {
    return set(array, values, std::span(buffers.begin(), buffers.size()));
  }

  /// Gives `parent`, which is the root or was added here, `count` children. They lie side by side,
  /// and each has to be set.
  ///
  /// Errors: EINVAL when it has children already, for a negative count, and for more than there is
  /// room for.
  Result<std::span<ArrowArray>> add_children(ArrowArray& parent, int64_t count) noexcept {
    if (parent.children != nullptr) return refused("the array has children already");
    if (count < 0) return refused("the number of children is less than 0");
    if (count > arrays_left_) return too_few("arrays", arrays_left_, count);
    if (count == 0) return std::span<ArrowArray>();
    ArrowArray* first = take_structs(count);
    ArrowArray** list = block_->pointers() + (first - block_->structs());
    for (int64_t i = 0; i < count; ++i) list[i] = first + i;
    parent.children = list;
    parent.n_children = count;
    return std::span(first, static_cast<size_t>(count));
  }

  /// Gives `array`, which is the root or was added here, a dictionary, to be set. Errors: EINVAL
  /// when it has one, and when there is no room for it.
  Result<ArrowArray*> add_dictionary(ArrowArray& array) noexcept {
    if (array.dictionary != nullptr) return refused("the array has a dictionary already");
    if (arrays_left_ == 0) return too_few("arrays", 0, 1);
    array.dictionary = take_structs(1);
    return array.dictionary;
  }

  /// The array. Afterwards the builder may only be destroyed. Errors: EINVAL when an array was not
  /// set, for whatever reason; then everything is as before.
  Result<Array> finish() noexcept {
    Status finished = check_finished();
    if (!finished) return std::move(finished).error();
    return hand_over();
  }

  /// The array as a device array; `reserved` is zero. `sync_event`, where there is one, is of the
  /// type that the device type has (docs/synchronization.md): the address of the handle as a rule,
  /// which has to be the same until `object` is destroyed. `device_id` is -1 for the CPU.
  ///
  /// Errors: EINVAL also for an event on a device type that has none.
  Result<DeviceArray> finish(ArrowDeviceType device_type, int64_t device_id,
                             void* sync_event = nullptr) noexcept {
    Status finished = check_finished();
    if (!finished) return std::move(finished).error();
    if (sync_event != nullptr) {
      const DeviceInfo* device = find_device(device_type);
      if (device != nullptr && device->event_pointer == EventPointer::kNone) {
        return refused("sync_event is not NULL, and the device type has no event type");
      }
    }
    Result<DeviceArray> result{DeviceArray()};
    ArrowDeviceArray& raw = *result->get();
    hand_over().move_to(&raw.array);
    raw.device_id = device_id;
    raw.device_type = device_type;
    raw.sync_event = sync_event;
    return result;
  }

 private:
  using Block = detail::Block<ArrowArray, const void*, Object>;

  ArrayBuilder(Block* block, ArrayCapacity capacity) noexcept
      : block_(block),
        next_buffer_(block->extra()),
        arrays_left_(capacity.arrays),
        buffers_left_(capacity.buffers) {}

  static Error refused(const char* why) noexcept {
    return detail::error_with(EINVAL, [&] { return std::string("array builder: ") + why; });
  }

  [[nodiscard]] Error too_few(const char* what, int64_t left, int64_t wanted) const noexcept {
    return detail::error_with(EINVAL, [&] {
      return "array builder: the capacity has " + std::to_string(left) + " " + what +
             " left, and " + std::to_string(wanted) + " more are wanted";
    });
  }

  // Nothing, or what keeps the array from being handed over.
  [[nodiscard]] Status check_finished() const noexcept {
    if (set_ == added()) return {};
    return detail::error_with(EINVAL, [&] {
      return "array builder: of " + std::to_string(added()) + " arrays, the root included, only " +
             std::to_string(set_) + " were set";
    });
  }

  [[nodiscard]] int64_t added() const noexcept { return block_->n_structs - arrays_left_; }

  ArrowArray* take_structs(int64_t count) noexcept {
    ArrowArray* first = block_->structs() + added();
    arrays_left_ -= count;
    return first;
  }

  Array hand_over() noexcept {
    block_->shares.store(set_, std::memory_order_relaxed);
    return Array(std::exchange(block_, nullptr)->structs());
  }

  Block* block_;
  const void** next_buffer_;
  int64_t arrays_left_;
  int64_t buffers_left_;
  int64_t set_ = 0;
};

/// A builder for an array whose data `object` owns, of whatever type: see ArrayBuilder.
template <class Object>
Result<ArrayBuilder<Object>> build_array(ArrayCapacity capacity, Object&& object) noexcept {
  static_assert(!std::is_reference_v<Object>, "the builder owns the object: std::move it in");
  return ArrayBuilder<Object>::make(capacity, std::move(object));
}

}  // namespace fletching

#endif  // FLETCHING_ARRAY_BUILDER_HPP

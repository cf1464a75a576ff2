// SPDX-License-Identifier: Apache-2.0
//
// What happens after a foreign release: an object is destroyed, an event is let go. Under
// owner.hpp; not for users.
#ifndef FLETCHING_HOOK_HPP
#define FLETCHING_HOOK_HPP

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "fletching/abi.h"
#include "fletching/block.hpp"

namespace fletching::detail {

/// What stands in private_data of a hooked struct: what stood there before, and an object that is
/// destroyed after the release.
template <class Base, class Object>
struct Hook {
  static_assert(std::is_nothrow_destructible_v<Object>, "a release callback cannot throw");

  /// Hooks a struct that is alive.
  static void set(std::unique_ptr<Hook> hook, Base* target) noexcept {
    hook->release = target->release;
    hook->private_data = target->private_data;
    target->release = &run;
    target->private_data = hook.release();
  }

  static void run(Base* self) noexcept {
    const std::unique_ptr<Hook> hook(static_cast<Hook*>(self->private_data));
    self->private_data = hook->private_data;
    self->release = hook->release;
    self->release(self);
    self->release = nullptr;
  }

  void (*release)(Base*);
  void* private_data;
  Object object;
};

/// Keeps the release of a device array back, and with it the event, until the last child that was
/// moved out is released too.
struct EventKeeper {
  struct GiveBack {
    void operator()(EventKeeper* keeper) const noexcept {
      if (keeper->shares.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      keeper->original.release(&keeper->original);
      delete keeper;
    }
  };
  /// What a child that was moved out holds.
  using Share = std::unique_ptr<EventKeeper, GiveBack>;

  [[nodiscard]] static bool keeps(const ArrowDeviceArray& array) noexcept {
    return array.array.release == &release;
  }

  /// Whether the event lives on with the children anyhow: in a block of ours all live equally long.
  [[nodiscard]] static bool is_needless(const ArrowDeviceArray& array) noexcept {
    return array.sync_event == nullptr || array.array.release == &release_in_block<ArrowArray>;
  }

  static void set(std::unique_ptr<EventKeeper> keeper, ArrowDeviceArray* target) noexcept {
    keeper->original = target->array;
    target->array.release = &release;
    target->array.private_data = keeper.release();
  }

  [[nodiscard]] static Share share(const ArrowDeviceArray& array) noexcept {
    auto* keeper = static_cast<EventKeeper*>(array.array.private_data);
    keeper->shares.fetch_add(1, std::memory_order_relaxed);
    return Share(keeper);
  }

  /// The release callback of the parent. The producer's own, which takes the event along, waits in
  /// `original` for the last share. The data of the children that are still there need not wait.
  static void release(ArrowArray* self) noexcept {
    const Share last_use(static_cast<EventKeeper*>(self->private_data));
    const ArrowArray& parent = last_use->original;
    if (parent.children != nullptr) {
      for (int64_t i = 0; i < parent.n_children; ++i) release_moved_out(parent.children[i]);
    }
    release_moved_out(parent.dictionary);
    self->release = nullptr;
  }

  // A child that is in its parent has to be moved out before it may be released.
  static void release_moved_out(ArrowArray* child) noexcept {
    if (child == nullptr || child->release == nullptr) return;
    ArrowArray moved = *child;
    child->release = nullptr;
    moved.release(&moved);
  }

  std::atomic<int64_t> shares{1};
  ArrowArray original{};
};

template <class Base>
void take_out(Base& /*parent*/, Base* child, Base* out) noexcept {
  *out = *child;
  child->release = nullptr;
}

/// Moves *child, which is below parent, to *out, with the event. Throws std::bad_alloc, and then
/// nothing has changed.
inline void take_out(ArrowDeviceArray& parent, ArrowArray* child, ArrowDeviceArray* out) {
  std::memset(out, 0, sizeof *out);
  out->device_id = parent.device_id;
  out->device_type = parent.device_type;
  out->sync_event = parent.sync_event;
  if (EventKeeper::is_needless(parent)) return take_out(parent.array, child, &out->array);

  using EventHook = Hook<ArrowArray, EventKeeper::Share>;
  auto hook = std::make_unique<EventHook>();
  if (!EventKeeper::keeps(parent)) EventKeeper::set(std::make_unique<EventKeeper>(), &parent);
  hook->object = EventKeeper::share(parent);
  take_out(parent.array, child, &out->array);
  EventHook::set(std::move(hook), &out->array);
}

}  // namespace fletching::detail

#endif  // FLETCHING_HOOK_HPP

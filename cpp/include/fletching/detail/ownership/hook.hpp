// SPDX-License-Identifier: Apache-2.0
//
// Actions after a foreign release: destroying an object, releasing an event. Used by owner.hpp and
// export_event.hpp; not for users.
#ifndef FLETCHING_DETAIL_OWNERSHIP_HOOK_HPP
#define FLETCHING_DETAIL_OWNERSHIP_HOOK_HPP

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "fletching/abi.h"
#include "fletching/detail/ownership/block.hpp"
#include "fletching/detail/ownership/tree.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Moves a live struct to the stack and releases it there. The callback may free *self and may
/// forget to set `release` to NULL, so *self is marked before the call and not touched afterwards.
template <class Base>
void release_moved_out(Base* self) noexcept {
  Base moved = *self;
  self->release = nullptr;
  moved.release(&moved);
}

/// Releases a struct whose memory lives as long as the nodes of `stack`. Its objects are pushed to
/// `stack`, which destroys them later.
template <class Base>
void release_onto(Base* self, ReleaseStack& stack) noexcept;

/// A reference to the owner of an event.
struct EventShare {
  Share owner;

  friend void let_go(EventShare& share, ReleaseStack& stack) noexcept {
    let_go(share.owner, stack);
  }
};

/// Head of every hook. A struct's private_data points to its first hook, which stores the struct's
/// original members and the list of the other hooks, so that a release does not recurse.
template <class Base>
struct HookHead : Destroyable {
  void (*release)(Base*) = nullptr;
  void* private_data = nullptr;
  HookHead* next = nullptr;  // the hook that was set after this one
  HookHead* last = nullptr;  // in the first hook: the end of the list
  bool has_event = false;    // not derived from the callback: linkers fold identical functions

  /// Release callback of a hooked struct. A second call has no effect.
  static void run(Base* self) noexcept {
    if (self->release == nullptr) return;
    Base moved = *self;  // the callback may free *self
    self->release = nullptr;
    ReleaseStack stack;
    run_onto(&moved, stack);
    stack.run();
  }

  /// Like run(), for a struct whose memory lives as long as the nodes of the stack.
  static void run_onto(Base* self, ReleaseStack& stack) noexcept {
    auto* const hook = static_cast<HookHead*>(self->private_data);
    self->private_data = hook->private_data;
    self->release = hook->release;
    stack.push(hook);
    release_onto(self, stack);
  }

  /// Hooks a live struct.
  static void set(HookHead* hook, Base* target) noexcept {
    if (target->release == &run) {
      auto* const first = static_cast<HookHead*>(target->private_data);
      first->last->next = hook;
      first->last = hook;
      return;
    }
    hook->last = hook;
    hook->release = target->release;
    hook->private_data = target->private_data;
    target->release = &run;
    target->private_data = hook;
  }
};

template <class Base>
void release_onto(Base* self, ReleaseStack& stack) noexcept {
  if (self->release == nullptr) return;
  if (self->release == &release_in_block<Base>) {
    auto* const block = static_cast<BlockHead*>(self->private_data);
    if (leave_block(self, block)) stack.push(block);
  } else if (self->release == &HookHead<Base>::run) {
    HookHead<Base>::run_onto(self, stack);
  } else {
    release_moved_out(self);
  }
}

/// A hook with an object that is destroyed after the release and after the objects of earlier
/// hooks.
template <class Base, class Object>
struct Hook : HookHead<Base> {
  static_assert(std::is_nothrow_destructible_v<Object>, "a release callback cannot throw");

  /// Hooks a live struct.
  static void set(Hook* hook, Base* target) noexcept {
    hook->destroy = [](Destroyable* head, ReleaseStack* stack) noexcept {
      auto* const self = static_cast<Hook*>(head);
      if (self->next != nullptr) stack->push(self->next);
      destroy_node<Hook>(self, stack);
    };
    hook->has_event = std::is_same_v<Object, EventShare>;
    HookHead<Base>::set(hook, target);
  }

  static void free(Hook* self) noexcept { delete self; }

  Object object;
};

/// Ties an event to a struct. The event lives until the last struct hooked with a reference to its
/// owner is released.
using EventHook = Hook<ArrowArray, EventShare>;

/// Returns the first event hook of the array, or NULL.
[[nodiscard]] inline const EventHook* event_hook_of(const ArrowArray& array) noexcept {
  if (array.release != &HookHead<ArrowArray>::run) return nullptr;
  const auto* head = static_cast<const HookHead<ArrowArray>*>(array.private_data);
  while (head != nullptr && !head->has_event) head = head->next;
  return static_cast<const EventHook*>(head);
}

/// Owner of a foreign event: contains the original array, whose release destroys the event.
struct HeldBack {
  HeldBack() noexcept = default;
  HeldBack(const HeldBack&) = delete;
  HeldBack& operator=(const HeldBack&) = delete;
  ~HeldBack() {
    if (array.release != nullptr) array.release(&array);
  }

  friend void let_go(HeldBack& held, ReleaseStack& stack) noexcept {
    release_onto(&held.array, stack);
  }

  ArrowArray array{};
};

/// Release callback of an array whose original release is deferred. Releases the remaining children
/// and the dictionary at once, because their data need not outlive the array.
inline void release_children(ArrowArray* self) noexcept {
  const auto release_below = [](ArrowArray* below) {
    // A child must be moved out of its parent before it is released.
    if (below != nullptr && below->release != nullptr) release_moved_out(below);
  };
  const ArrowArray parent = *self;
  self->release = nullptr;
  for (ArrowArray* child : children_of(parent)) release_below(child);
  release_below(parent.dictionary);
}

/// Defers the release of a foreign array until the last reference is dropped, including the
/// array's. Throws std::bad_alloc and leaves the array unchanged.
inline EventShare hold_back(ArrowArray* array) {
  auto* const held = new SharedObject<HeldBack>;
  const EventShare share{Share(held)};
  auto* const hook = new EventHook{{}, share};
  held->object.array = *array;
  array->release = &release_children;
  EventHook::set(hook, array);
  return share;
}

/// A hook that is destroyed unless it is set.
struct UnsetHook {
  UnsetHook() = default;
  UnsetHook(const UnsetHook&) = delete;
  UnsetHook& operator=(const UnsetHook&) = delete;
  ~UnsetHook() { delete hook; }

  EventHook* hook = new EventHook;
};

template <class Base>
void take_out(Base& /*parent*/, Base* child, Base* out) noexcept {
  *out = *child;
  child->release = nullptr;
}

/// Moves *child, a descendant of `parent`, to *out together with the event. Throws std::bad_alloc
/// and leaves parent and child unchanged.
inline void take_out(ArrowDeviceArray& parent, ArrowArray* child, ArrowDeviceArray* out) {
  std::memset(out, 0, sizeof *out);
  out->device_id = parent.device_id;
  out->device_type = parent.device_type;
  out->sync_event = parent.sync_event;
  const EventHook* const on_parent = event_hook_of(parent.array);
  const EventHook* const on_child = event_hook_of(*child);
  // Structs in the same block have the same lifetime, so they can share the event.
  const bool in_one_block = parent.array.release == &release_in_block<ArrowArray> &&
                            child->release == &release_in_block<ArrowArray> &&
                            parent.array.private_data == child->private_data;
  const bool share_it = on_parent != nullptr && on_child != nullptr &&
                        on_parent->object.owner == on_child->object.owner;
  const bool keeps_event = parent.sync_event == nullptr || in_one_block || share_it;
  if (keeps_event) return take_out(parent.array, child, &out->array);

  UnsetHook hook;
  hook.hook->object = on_parent != nullptr ? on_parent->object : hold_back(&parent.array);
  take_out(parent.array, child, &out->array);
  EventHook::set(std::exchange(hook.hook, nullptr), &out->array);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_OWNERSHIP_HOOK_HPP

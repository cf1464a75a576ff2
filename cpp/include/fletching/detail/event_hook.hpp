// SPDX-License-Identifier: Apache-2.0
//
// Hooks with which an event that was recorded lives until the last struct of an array is released.
#ifndef FLETCHING_DETAIL_EVENT_HOOK_HPP
#define FLETCHING_DETAIL_EVENT_HOOK_HPP

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fletching/abi.h"
#include "fletching/detail/hook.hpp"
#include "fletching/detail/tree.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Hooks for every struct of an array that is not released: a consumer may move any of them out
/// without asking us.
class EventHooks {
 public:
  /// Makes them, without a change to the array. Errors: EINVAL for one that is malformed, see walk.
  /// May throw.
  static Result<EventHooks> make(const char* operation, ArrowArray* array,
                                 const EventShare& share) {
    EventHooks hooks;
    Status walked = walk(operation, array, [&](ArrowArray& node) -> const char* {
      if (node.release == nullptr) return nullptr;
      // NOLINTNEXTLINE(modernize-make-unique): not every compiler makes an aggregate with it
      std::unique_ptr<EventHook> hook(new EventHook{{}, share});
      hooks.planned_.push_back({&node, std::move(hook)});
      return nullptr;
    });
    if (!walked) return std::move(walked).error();
    return hooks;
  }

  void set() noexcept {
    for (Planned& planned : planned_) EventHook::set(planned.hook.release(), planned.target);
  }

 private:
  struct Planned {
    ArrowArray* target;
    std::unique_ptr<EventHook> hook;
  };

  std::vector<Planned> planned_;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_EVENT_HOOK_HPP

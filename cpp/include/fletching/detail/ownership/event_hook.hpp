// SPDX-License-Identifier: Apache-2.0
//
// Hooks that keep a recorded event alive until the last struct of an array is released.
#ifndef FLETCHING_DETAIL_OWNERSHIP_EVENT_HOOK_HPP
#define FLETCHING_DETAIL_OWNERSHIP_EVENT_HOOK_HPP

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fletching/abi.h"
#include "fletching/detail/ownership/hook.hpp"
#include "fletching/detail/ownership/tree.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Hooks for every live struct of an array: a consumer may move any of them out without notice.
class EventHooks {
 public:
  /// Makes the hooks without changing the array. Errors: EINVAL if the array is malformed, see
  /// walk(). May throw.
  static Result<EventHooks> make(const char* operation, ArrowArray* array,
                                 const EventShare& share) {
    EventHooks hooks;
    Status walked = walk(operation, array, [&](ArrowArray& node) -> const char* {
      if (node.release == nullptr) return nullptr;
      // NOLINTNEXTLINE(modernize-make-unique): not every compiler supports it for aggregates
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

#endif  // FLETCHING_DETAIL_OWNERSHIP_EVENT_HOOK_HPP

// SPDX-License-Identifier: Apache-2.0
//
// Events that the producers' operations record, and hooks with which they live until the last
// struct of an array is released.
#ifndef FLETCHING_DETAIL_EVENT_HOOK_HPP
#define FLETCHING_DETAIL_EVENT_HOOK_HPP

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fletching/abi.h"
#include "fletching/detail/event_handle.hpp"
#include "fletching/detail/hook.hpp"
#include "fletching/detail/runtime.hpp"
#include "fletching/detail/runtimes.hpp"
#include "fletching/detail/tree.hpp"
#include "fletching/device_type.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Destroys an event where no caller can receive an error. In a child of fork it is the parent's,
/// and nothing of the runtime is called.
inline void destroy_event(const RecordFunctions& functions,
                          const RecordedEvent& recorded) noexcept {
  if (recorded.process != process_id()) return leave_inherited_event();
  (void)guarded([&] { return functions.destroy(recorded); });
}

/// The functions for a device type, or why `operation` has none.
inline Result<const RecordFunctions*> record_functions(const char* operation, DeviceType type) {
  const RecordFunctions& functions = of_runtime(Runtimes::kRecords, type);
  if (functions.record != nullptr) return &functions;
  return Error{ENOTSUP, std::string(operation) + " on " + type.name() + ": " +
                            of_runtime(Runtimes::kNoRecords, type)};
}

/// The owner of an event that we have recorded.
struct ExportedEvent {
  explicit ExportedEvent(const RecordFunctions& of_runtime) noexcept : functions(of_runtime) {}
  ExportedEvent(const ExportedEvent&) = delete;
  ExportedEvent& operator=(const ExportedEvent&) = delete;
  ~ExportedEvent() {
    if (recorded.event != nullptr) destroy_event(functions, recorded);
  }

  const RecordFunctions& functions;
  RecordedEvent recorded;
};

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

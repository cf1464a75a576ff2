// SPDX-License-Identifier: Apache-2.0
//
// Events that the producers' verbs record, and hooks with which they live until the last struct of
// an array is released.
#ifndef FLETCHING_DETAIL_EVENT_HOOK_HPP
#define FLETCHING_DETAIL_EVENT_HOOK_HPP

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fletching/abi.h"
#include "fletching/detail/cuda.hpp"
#include "fletching/detail/event_handle.hpp"
#include "fletching/detail/hip.hpp"
#include "fletching/detail/hook.hpp"
#include "fletching/detail/opencl.hpp"
#include "fletching/detail/tree.hpp"
#include "fletching/device_type.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// What the producers' operations need of a runtime.
struct EventFunctions {
  Result<RecordedEvent> (*record)(void* stream, int64_t device_id, OnCapture on_capture);
  Result<bool> (*has_passed)(const RecordedEvent&);
  Status (*destroy)(const RecordedEvent&);
  void (*run_relaxed)(CFunction<void(void*)> body, void* data);
};

template <class Events>
inline constexpr EventFunctions kEventFunctions{&Events::record, &Events::has_passed,
                                                &Events::destroy, &Events::run_relaxed};

/// Destroys an event for which nobody could be told that it did not work. In a child of fork it is
/// the parent's, and nothing of the runtime is called.
inline void destroy_event(const EventFunctions& functions, const RecordedEvent& recorded) noexcept {
  if (recorded.process != process_id()) return leave_inherited_event();
  (void)guarded([&] { return functions.destroy(recorded); });
}

/// The functions for a device type, or why `verb` has none.
inline Result<const EventFunctions*> event_functions(const char* verb, DeviceType type) {
  const char* reason = "";
  switch (type.runtime()) {
    case Runtime::kCuda:
      return &kEventFunctions<CudaEvents>;
    case Runtime::kHip:
      return &kEventFunctions<HipEvents>;
    case Runtime::kOpencl:
      return &kEventFunctions<OpenclEvents>;
    case Runtime::kVulkan:
      reason = "Vulkan sets a VkEvent by a command in a command buffer, which only you can record";
      break;
    case Runtime::kSycl:
      reason = "a sycl::event is a C++ object of the library that made it, which is not known here";
      break;
    case Runtime::kMetal:
      reason = "Metal signals an MTLEvent in a command buffer, which only you can encode";
      break;
    case Runtime::kNone:
      reason = "there is no runtime for it that records events";
      break;
  }
  return Error{ENOTSUP, std::string(verb) + " on " + type.name() + ": " + reason};
}

/// The owner of an event that we have recorded.
struct ExportedEvent {
  explicit ExportedEvent(const EventFunctions& of_runtime) noexcept : functions(of_runtime) {}
  ExportedEvent(const ExportedEvent&) = delete;
  ExportedEvent& operator=(const ExportedEvent&) = delete;
  ~ExportedEvent() {
    if (recorded.event != nullptr) destroy_event(functions, recorded);
  }

  const EventFunctions& functions;
  RecordedEvent recorded;
};

/// Hooks for every struct of an array that is not released: a consumer may move any of them out
/// without asking us.
class EventHooks {
 public:
  /// Makes them, without a change to the array. Errors: EINVAL for one that is malformed, see walk.
  /// May throw.
  static Result<EventHooks> make(const char* verb, ArrowArray* array, const EventShare& share) {
    EventHooks hooks;
    Status walked = walk(verb, array, [&](ArrowArray& node) -> const char* {
      if (node.release == nullptr) return nullptr;
      auto hook = std::make_unique<EventHook>();
      hook->object = share;
      hooks.planned_.push_back({&node, std::move(hook)});
      return nullptr;
    });
    if (!walked) return std::move(walked).error();
    return hooks;
  }

  void set() noexcept {
    for (Planned& planned : planned_) EventHook::set(std::move(planned.hook), planned.target);
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

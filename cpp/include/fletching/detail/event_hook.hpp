// SPDX-License-Identifier: Apache-2.0
//
// An event that lives until the last struct of an exported array is released.
#ifndef FLETCHING_DETAIL_EVENT_HOOK_HPP
#define FLETCHING_DETAIL_EVENT_HOOK_HPP

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fletching/abi.h"
#include "fletching/detail/cuda_events.hpp"
#include "fletching/detail/event_handle.hpp"
#include "fletching/detail/hip_events.hpp"
#include "fletching/detail/opencl_events.hpp"
#include "fletching/device_type.hpp"
#include "fletching/result.hpp"

namespace fletching::detail {

/// What the producers' verbs need of a runtime.
struct EventFunctions {
  Result<RecordedEvent> (*record)(void* stream, int64_t device_id);
  Result<bool> (*has_happened)(const RecordedEvent&);
  Status (*destroy)(const RecordedEvent&);
};

template <class Events>
inline constexpr EventFunctions kEventFunctions{&Events::record, &Events::has_happened,
                                                &Events::destroy};

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

/// The event of an array, held by each of its structs.
class EventBlock {
 public:
  EventBlock(const EventFunctions& functions, std::size_t structs) : functions_(functions) {
    nodes_.reserve(structs);
  }

  /// How many structs there are that are not released, *array included.
  static std::size_t count(const ArrowArray& array, int depth = 0) {
    constexpr int kMaxDepth = 256;
    if (array.release == nullptr || depth == kMaxDepth) return 0;
    std::size_t structs = 1;
    for (int64_t i = 0; i < array.n_children; ++i) {
      if (array.children[i] != nullptr) structs += count(*array.children[i], depth + 1);
    }
    if (array.dictionary != nullptr) structs += count(*array.dictionary, depth + 1);
    return structs;
  }

  /// Hooks every struct that was counted. Returns what sync_event has to be. From now on the
  /// structs own the block.
  static void* attach(std::unique_ptr<EventBlock> block, const RecordedEvent& recorded,
                      ArrowArray& array) noexcept {
    EventBlock* attached = block.release();
    attached->recorded_ = recorded;
    attached->hook(array);
    attached->shares_.store(static_cast<int64_t>(attached->nodes_.size()),
                            std::memory_order_relaxed);
    return static_cast<void*>(&attached->recorded_.event);
  }

 private:
  /// What a struct had in the places that are ours now.
  struct Node {
    EventBlock* block;
    void (*release)(ArrowArray*);
    void* private_data;
  };

  void hook(ArrowArray& array) noexcept {
    // The depth and the number of structs were bounded when they were counted.
    if (array.release == nullptr || nodes_.size() == nodes_.capacity()) return;
    nodes_.push_back({this, array.release, array.private_data});
    array.release = &release;
    array.private_data = &nodes_.back();
    for (int64_t i = 0; i < array.n_children; ++i) {
      if (array.children[i] != nullptr) hook(*array.children[i]);
    }
    if (array.dictionary != nullptr) hook(*array.dictionary);
  }

  static void release(ArrowArray* self) noexcept {
    const Node node = *static_cast<const Node*>(self->private_data);
    self->private_data = node.private_data;
    self->release = node.release;
    self->release(self);
    self->release = nullptr;
    if (node.block->shares_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const std::unique_ptr<EventBlock> last(node.block);
    // Nobody can be told that it did not work.
    (void)guarded([&] { return last->functions_.destroy(last->recorded_); });
  }

  const EventFunctions& functions_;
  RecordedEvent recorded_;
  std::atomic<int64_t> shares_{0};
  std::vector<Node> nodes_;
};

}  // namespace fletching::detail

#endif  // FLETCHING_DETAIL_EVENT_HOOK_HPP

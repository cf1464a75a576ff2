// SPDX-License-Identifier: Apache-2.0
//
// A libvulkan.so.1 in front of the real loader. It exports the functions of the generated table;
// functions from vkGet*ProcAddr are wrapped when they are returned.
#include <cstring>
#include <tuple>

#include "interpose.hpp"
#include "runtimes/vulkan.hpp"
#include "vulkan_root.hpp"

namespace {

using fletching::interpose::begins_with_any;
using fletching::interpose::Engine;
using AnyProc = PFN_vkVoidFunction;

// The change in the number of live objects by a successful call. Objects of a pool are freed with
// it. Events and descriptor pools are not counted: the producer keeps as many as were in use at
// once.
int64_t change(std::string_view name) {
  if (begins_with_any(name, {"vkCreateEvent", "vkDestroyEvent", "vkCreateDescriptorPool",
                             "vkDestroyDescriptorPool"})) {
    return 0;
  }
  if (begins_with_any(name, {"vkCreate", "vkAllocateMemory"})) return 1;
  return begins_with_any(name, {"vkDestroy", "vkFreeMemory"}) ? -1 : 0;
}

AnyProc wrapped(const char* name, AnyProc found);

template <class Tag, class Signature>
struct Wrapper;

// Calls the real function that was last returned or exported under this name.
template <class Tag, class Return, class... Arguments>
struct Wrapper<Tag, Return (*)(Arguments...)> {
  static constexpr bool kHasStatus = std::is_same_v<Return, VkResult>;
  static constexpr bool kIsFinder = !kHasStatus && !std::is_void_v<Return>;

  static Return call(Arguments... arguments) noexcept {
    const std::optional<int> error = Engine::instance().count(Tag::kName);
    if constexpr (std::is_void_v<Return>) {
      Engine::instance().add_alive(Tag::kName, change(Tag::kName));
      real(arguments...);
    } else if constexpr (kHasStatus) {
      if (error) return static_cast<VkResult>(*error);
      const VkResult result = real(arguments...);
      if (result == VK_SUCCESS) Engine::instance().add_alive(Tag::kName, change(Tag::kName));
      return result;
    } else {
      return error ? nullptr : wrapped(last(arguments...), real(arguments...));
    }
  }

  static auto last(Arguments... arguments) {
    return std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
  }

  static inline Return (*real)(Arguments...) = nullptr;
};

// Vulkan functions with the types of the vendor's header.
#define FLETCHING_INTERPOSE_TAG(name)                 \
  struct Tag_##name {                                 \
    static constexpr const char* kName = #name;       \
    using Function = Wrapper<Tag_##name, PFN_##name>; \
  };

// The exported functions: the table's functions, and two that only a report needs.
#define FLETCHING_INTERPOSE_EXPORTS(X) \
  X(vkGetInstanceProcAddr)             \
  X(vkGetEventStatus)                  \
  X(vkCreateEvent)                     \
  X(vkDestroyEvent)                    \
  X(vkCmdSetEvent)                     \
  X(vkSetEvent)                        \
  X(vkResetEvent)                      \
  X(vkQueueWaitIdle)
#define FLETCHING_INTERPOSE_OTHERS(X) \
  X(vkCreateInstance)                 \
  X(vkEnumerateInstanceVersion)
#define FLETCHING_INTERPOSE_ALL(X)       \
  FLETCHING_INTERPOSE_EXPORTS(X)         \
  FLETCHING_INTERPOSE_OTHERS(X)          \
  FLETCHING_VULKAN_INSTANCE_FUNCTIONS(X) \
  FLETCHING_VULKAN_DEVICE_FUNCTIONS(X)

FLETCHING_INTERPOSE_ALL(FLETCHING_INTERPOSE_TAG)

AnyProc wrapped(const char* name, AnyProc found) {
  if (found == nullptr) return nullptr;
#define FLETCHING_INTERPOSE_WRAP(function)                                    \
  if (std::strcmp(name, #function) == 0) {                                    \
    Tag_##function::Function::real = reinterpret_cast<PFN_##function>(found); \
    return reinterpret_cast<AnyProc>(&Tag_##function::Function::call);        \
  }
  FLETCHING_INTERPOSE_ALL(FLETCHING_INTERPOSE_WRAP)
#undef FLETCHING_INTERPOSE_WRAP
  return found;
}

// Finds the real functions behind the exported ones before the first call.
[[gnu::constructor]] void find_real() {
  void* library = fletching::interpose::real_library(FLETCHING_REAL_VULKAN);
  if (library == nullptr) return;
#define FLETCHING_INTERPOSE_FIND(name) \
  Tag_##name::Function::real = reinterpret_cast<PFN_##name>(dlsym(library, #name));
  FLETCHING_INTERPOSE_EXPORTS(FLETCHING_INTERPOSE_FIND)
  FLETCHING_INTERPOSE_FIND(vkGetDeviceProcAddr)
  FLETCHING_INTERPOSE_FIND(vkCmdWaitEvents)
#undef FLETCHING_INTERPOSE_FIND
}

int number_of(std::string_view name) {
  for (int status = -1; status > -20; --status) {
    const char* known = fletching::vulkan::status_name(status);
    if (known != nullptr && name == known) return status;
  }
  return 0;
}

bool can_fail(const std::string& function) {
#define FLETCHING_INTERPOSE_CAN_FAIL(name) \
  if (function == #name) return Tag_##name::Function::kHasStatus || Tag_##name::Function::kIsFinder;
  FLETCHING_INTERPOSE_ALL(FLETCHING_INTERPOSE_CAN_FAIL)
#undef FLETCHING_INTERPOSE_CAN_FAIL
  return false;
}

}  // namespace

#define FLETCHING_INTERPOSE_THIS(name) \
  FLETCHING_INTERPOSE_EXPORT(name, (&Tag_##name::Function::call))
FLETCHING_INTERPOSE_EXPORTS(FLETCHING_INTERPOSE_THIS)
FLETCHING_INTERPOSE_THIS(vkGetDeviceProcAddr)
FLETCHING_INTERPOSE_THIS(vkCmdWaitEvents)

FLETCHING_INTERPOSE_CONTROL(number_of, can_fail)

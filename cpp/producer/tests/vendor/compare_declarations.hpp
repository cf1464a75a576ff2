// Checks that the tables match the real headers in either include order.
#ifndef FLETCHING_TESTS_VENDOR_COMPARE_DECLARATIONS_HPP
#define FLETCHING_TESTS_VENDOR_COMPARE_DECLARATIONS_HPP

#include <cstddef>
#include <type_traits>

#include "fletching/vulkan_event.hpp"
#include "headers.hpp"
#include "tables.hpp"

namespace fletching::testing {

// The representation of a type as a function argument: all pointers compare equal, and an enum
// compares equal to its integer type.
template <class T>
struct ArgumentType {
  using type = T;
};
template <class T>
  requires std::is_enum_v<T>
struct ArgumentType<T> {
  using type = std::make_signed_t<std::underlying_type_t<T>>;
};
template <class T>
  requires std::is_integral_v<T>
struct ArgumentType<T> {
  using type = std::make_signed_t<T>;
};
template <class T>
struct ArgumentType<T*> {
  using type = void*;
};

template <class Signature>
struct SignatureShape;
template <class Return, class... Arguments>
struct SignatureShape<Return (*)(Arguments...)> {
  using type = typename ArgumentType<Return>::type (*)(typename ArgumentType<Arguments>::type...);
};

template <class Ours, class Theirs>
constexpr bool same_shape(Ours, Theirs*) {
  return std::is_same_v<typename SignatureShape<Ours>::type,
                        typename SignatureShape<Theirs*>::type>;
}

// On this target the calling convention is the default, so a member has the function's type.
static_assert(same_shape(cuda::Functions{}.cu_event_query, ::cuEventQuery));
static_assert(same_shape(cuda::Functions{}.cu_stream_wait_event, ::cuStreamWaitEvent));
static_assert(same_shape(cuda::Functions{}.cu_ctx_pop_current, ::cuCtxPopCurrent));
static_assert(same_shape(hip::Functions{}.hip_event_query, ::hipEventQuery));
static_assert(same_shape(hip::Functions{}.hip_stream_wait_event, ::hipStreamWaitEvent));
static_assert(same_shape(opencl::Functions{}.cl_get_event_info, ::clGetEventInfo));
static_assert(same_shape(vulkan::Functions{}.vk_get_event_status, ::vkGetEventStatus));
static_assert(same_shape(vulkan::Functions{}.vk_cmd_wait_events, ::vkCmdWaitEvents));

static_assert(cuda::kCudaErrorNotReady == CUDA_ERROR_NOT_READY);
static_assert(hip::kHipErrorNotReady == hipErrorNotReady);
static_assert(opencl::kClEventContext == CL_EVENT_CONTEXT);
static_assert(vulkan::kVkEventReset == VK_EVENT_RESET);
static_assert(sizeof(vulkan::VkMemoryBarrier) == sizeof(::VkMemoryBarrier));

// The structs with which the core enumerates Vulkan devices.
using Info = ::vulkan_instance_info;
using Properties = ::vulkan_device_properties;
static_assert(sizeof(Info) == sizeof(::VkInstanceCreateInfo));
static_assert(offsetof(Info, application) == offsetof(::VkInstanceCreateInfo, pApplicationInfo));
static_assert(offsetof(Info, extensions) ==
              offsetof(::VkInstanceCreateInfo, ppEnabledExtensionNames));
static_assert(offsetof(Properties, name) == offsetof(::VkPhysicalDeviceProperties, deviceName));
static_assert(sizeof(Properties::name) == VK_MAX_PHYSICAL_DEVICE_NAME_SIZE);
static_assert(sizeof(Properties) >= sizeof(::VkPhysicalDeviceProperties));
static_assert(alignof(Properties) >= alignof(::VkPhysicalDeviceProperties));
static_assert(FLETCHING_VULKAN_INSTANCE_CREATE_INFO == VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
static_assert(FLETCHING_VULKAN_INCOMPLETE == VK_INCOMPLETE);

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_VENDOR_COMPARE_DECLARATIONS_HPP

// SPDX-License-Identifier: Apache-2.0
//
// The waiter for Metal events, for Objective-C++ on macOS.
#ifndef FLETCHING_METAL_HPP
#define FLETCHING_METAL_HPP

#if !defined(__OBJC__) || !__has_include(<Metal/Metal.h>)
#error "fletching/metal.hpp needs Objective-C++ and <Metal/Metal.h>: compile on macOS"
#endif

#import <Metal/Metal.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "fletching/waiter.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Provides the value to wait for on an MTLEvent. The interface does not carry it, so the
/// application must provide it. Must outlive every wait.
struct MetalValue {
  std::uint64_t (*of)(void* user, id<MTLEvent> event);
  void* user;
};

namespace detail {

/// `stream` is an id<MTLCommandBuffer>; ownership is not transferred.
inline int metal_wait_on(void* context, void* sync_event, int64_t /*device_id*/, void* stream,
                         FletchingMessage* message) {
  if (stream == nullptr) {
    std::strcpy(message->text, "wait_on: stream is NULL: expected an id<MTLCommandBuffer>");
    return EINVAL;
  }
  const auto* value = static_cast<const MetalValue*>(context);
  id<MTLEvent> event = (__bridge id<MTLEvent>)sync_event;
  id<MTLCommandBuffer> commands = (__bridge id<MTLCommandBuffer>)stream;
  [commands encodeWaitForEvent:event value:value->of(value->user, event)];
  return 0;
}

}  // namespace detail

/// Registers the waiter for ARROW_DEVICE_METAL, whose sync_event is the MTLEvent.
/// SyncEvent::wait_on takes an id<MTLCommandBuffer> as its `stream`. An MTLEvent supports neither a
/// host wait nor a query: synchronize and ready are errors. Threads: any.
inline Status register_metal_waiter(const MetalValue* value) noexcept {
  if (value == nullptr || value->of == nullptr) {
    return Error{EINVAL,
                 "register_metal_waiter: value: NULL or without a function: expected a MetalValue"};
  }
  return register_waiter(ARROW_DEVICE_METAL, {nullptr, &detail::metal_wait_on, nullptr,
                                              const_cast<MetalValue*>(value)});
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_METAL_HPP

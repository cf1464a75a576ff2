// SPDX-License-Identifier: Apache-2.0
//
// The waiter for SYCL events. Compile it with the SYCL library that creates the events: the ABI of
// sycl::event depends on the library.
#ifndef FLETCHING_SYCL_HPP
#define FLETCHING_SYCL_HPP

#if !defined(__has_include) || !__has_include(<sycl/sycl.hpp>)
#error "fletching/sycl.hpp needs <sycl/sycl.hpp>: compile with a SYCL implementation"
#endif

#include <cerrno>
#include <exception>
#include <sycl/sycl.hpp>

#include "fletching/detail/message.hpp"
#include "fletching/waiter.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {
namespace detail {

/// Runs one operation, and converts exceptions of SYCL to a message.
template <class Body>
int sycl_operation(FletchingMessage* message, Body body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    write_message(message, error.what());
  } catch (...) {
    write_message(message, "SYCL: exception of an unknown type");
  }
  return EIO;
}

inline int sycl_synchronize(void* /*context*/, void* event, int64_t /*device_id*/,
                            FletchingMessage* message) {
  return sycl_operation(message, [&] {
    static_cast<sycl::event*>(event)->wait_and_throw();
    return 0;
  });
}

/// `stream` is a sycl::queue*.
inline int sycl_wait_on(void* /*context*/, void* event, int64_t /*device_id*/, void* stream,
                        FletchingMessage* message) {
  if (stream == nullptr) {
    write_message(message,
                  "wait_on: stream is NULL: expected the address of a sycl::queue, because SYCL "
                  "has no default queue");
    return EINVAL;
  }
  return sycl_operation(message, [&] {
    auto& queue = *static_cast<sycl::queue*>(stream);
#ifdef SYCL_EXT_ONEAPI_ENQUEUE_BARRIER
    queue.ext_oneapi_submit_barrier({*static_cast<sycl::event*>(event)});
#else
    // Without the extension, only an in-order queue can wait.
    if (!queue.is_in_order()) {
      write_message(message, "wait_on: queue is out of order, and this SYCL has no barrier for it: expected a queue in order; hint: use depends_on instead");
      return ENOTSUP;
    }
    queue.submit([&](sycl::handler& commands) {
      commands.depends_on(*static_cast<sycl::event*>(event));
      commands.single_task([] {});
    });
#endif
    return 0;
  });
}

inline int sycl_ready(void* /*context*/, void* event, int64_t /*device_id*/, int* ready,
                      FletchingMessage* message) {
  return sycl_operation(message, [&] {
    const auto status = static_cast<const sycl::event*>(event)
                            ->get_info<sycl::info::event::command_execution_status>();
    *ready = status == sycl::info::event_command_status::complete ? 1 : 0;
    return 0;
  });
}

}  // namespace detail

/// Registers the waiter for ARROW_DEVICE_ONEAPI, whose sync_event is a sycl::event*.
/// SyncEvent::wait_on takes a sycl::queue* as its `stream`. Threads: any.
inline Status register_sycl_waiter() noexcept {
  return register_waiter(ARROW_DEVICE_ONEAPI, {&detail::sycl_synchronize, &detail::sycl_wait_on,
                                               &detail::sycl_ready, nullptr});
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_SYCL_HPP

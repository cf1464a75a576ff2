// SPDX-License-Identifier: Apache-2.0
//
// Notifications of an async stream to the application.
#ifndef FLETCHING_ASYNC_LISTENER_HPP
#define FLETCHING_ASYNC_LISTENER_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fletching/abi.h"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The states of an async consumer; see docs/reference/async.md.
enum class AsyncConsumerState : std::uint8_t {
  kCreated,         // on_schema was not called yet
  kCancelledEarly,  // canceled before on_schema
  kStreaming,       // tasks may arrive
  kCancelled,       // canceled; requested tasks may still arrive
  kEnded,           // on_end was called; queued tasks may still be taken
  kBroken,          // an extraction has failed; on_error and release may follow
  kFailed,          // on_error was called; release may follow
  kRefused,         // a handler call has returned an error; release may follow
  kReleasing,       // release is running
  kReleased,
};

namespace detail {

/// Whether the application has not been notified of the end yet.
constexpr bool is_live(AsyncConsumerState state) noexcept {
  return state == AsyncConsumerState::kCreated || state == AsyncConsumerState::kStreaming;
}

/// Whether the application gets no more notifications, though the producer may still call.
constexpr bool is_silent(AsyncConsumerState state) noexcept {
  return state == AsyncConsumerState::kCancelledEarly || state == AsyncConsumerState::kCancelled ||
         state == AsyncConsumerState::kBroken;
}

}  // namespace detail

/// Properties of a stream, known from on_schema on.
struct AsyncStreamInfo {
  /// The device type of every batch.
  ArrowDeviceType device_type = 0;
  /// A copy of additional_metadata, encoded as ArrowSchema.metadata; NULL: none.
  std::unique_ptr<const std::string> metadata;
};

/// One batch of an async stream. `array` is released if no batch was available.
struct AsyncBatch {
  DeviceArray array;
  /// A copy of the task's metadata, encoded as ArrowSchema.metadata; NULL: none.
  std::unique_ptr<const std::string> metadata;
};

/// Notifications of a stream: the schema, the tasks, and one end. The end is `on_end`, `on_error`,
/// an error of `take`, or `cancel`, whichever comes first.
///
/// Every method is called inside a handler call, on the producer's thread, with no lock held. It
/// should return soon, and may call `request`, `take`, `drop` and `cancel`.
class AsyncListener {
 public:
  virtual ~AsyncListener() = default;

  /// May reject the schema, which it must not modify. The error is returned from the handler call,
  /// ends the stream and is passed to on_error.
  virtual Status accept_schema([[maybe_unused]] const ArrowSchema& schema) noexcept { return {}; }

  /// May reject a task in the same way. `metadata` is encoded as in AsyncBatch, empty if there is
  /// none, and valid during the call.
  virtual Status accept_task([[maybe_unused]] std::string_view metadata) noexcept { return {}; }

  /// The stream has begun. The application owns the schema.
  virtual void on_schema(Schema schema, AsyncStreamInfo info) noexcept = 0;

  /// A task was queued: call `take` or `drop`, here or later, on any thread.
  virtual void on_task() noexcept = 0;

  /// No more tasks follow. Queued tasks can still be taken.
  virtual void on_end() noexcept = 0;

  /// The stream has failed; queued tasks were dropped. A producer code that is not an errno value
  /// becomes EIO, with "(code -5)" at the end of the message. `metadata` as in accept_task.
  virtual void on_error(const Error& error, std::string_view metadata) noexcept = 0;

  /// The handler's release is about to wait for a `take`, `drop`, `request` or `cancel` that runs
  /// on another thread. It waits for `request` and `cancel` first, and calls this method again if a
  /// `take` or `drop` still runs then. A producer deadlocks if its release holds a lock that the
  /// call needs (erratum async-release-waits).
  virtual void on_release_waits() noexcept {}
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_ASYNC_LISTENER_HPP

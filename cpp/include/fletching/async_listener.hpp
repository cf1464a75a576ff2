// SPDX-License-Identifier: Apache-2.0
//
// The notifications of an async stream to the application.
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

/// The states of an async consumer, from docs/reference/async.md.
enum class AsyncConsumerState : std::uint8_t {
  kCreated,         // on_schema was not called yet
  kCancelledEarly,  // cancelled before on_schema
  kStreaming,       // tasks may arrive
  kCancelled,       // cancelled; tasks that were requested may still arrive
  kEnded,           // on_end was called; queued tasks may still be taken
  kBroken,          // an extraction has failed; on_error and release may follow
  kFailed,          // on_error was called; release may follow
  kRefused,         // a handler call has returned an error; release may follow
  kReleasing,       // release is running
  kReleased,
};

namespace detail {

/// The application is not notified yet how the stream ended.
constexpr bool is_live(AsyncConsumerState state) noexcept {
  return state == AsyncConsumerState::kCreated || state == AsyncConsumerState::kStreaming;
}

/// It is not notified any more, though the producer may still call.
constexpr bool is_silent(AsyncConsumerState state) noexcept {
  return state == AsyncConsumerState::kCancelledEarly || state == AsyncConsumerState::kCancelled ||
         state == AsyncConsumerState::kBroken;
}

}  // namespace detail

/// What is known of a stream from its first call on.
struct AsyncStreamInfo {
  /// The device type of every batch.
  ArrowDeviceType device_type = 0;
  /// A copy of additional_metadata, encoded as ArrowSchema.metadata; NULL: none.
  std::unique_ptr<const std::string> metadata;
};

/// One batch of an async stream. `array` is released when there was none to take.
struct AsyncBatch {
  DeviceArray array;
  /// A copy of the task's metadata, encoded as ArrowSchema.metadata; NULL: none.
  std::unique_ptr<const std::string> metadata;
};

/// The notifications of a stream: the schema, tasks, and one end, which is `on_end`, `on_error`,
/// the error of `take`, or its own `cancel`, whichever comes first.
///
/// Each method is called inside a handler call, on the producer's thread and without a lock. It
/// should return soon, and may call `request`, `take`, `drop` and `cancel`.
class AsyncListener {
 public:
  virtual ~AsyncListener() = default;

  /// May refuse the schema, which is looked at and left alone: the error is the result of the
  /// handler call, ends the stream and is passed to on_error.
  virtual Status accept_schema([[maybe_unused]] const ArrowSchema& schema) noexcept { return {}; }

  /// May refuse a task in the same way. `metadata` as in AsyncBatch, empty: none; valid during the
  /// call.
  virtual Status accept_task([[maybe_unused]] std::string_view metadata) noexcept { return {}; }

  /// The stream has begun; the schema is the application's.
  virtual void on_schema(Schema schema, AsyncStreamInfo info) noexcept = 0;

  /// One more task is queued: `take` it or `drop` it, here or later, on any thread.
  virtual void on_task() noexcept = 0;

  /// No more tasks. Those that are queued can still be taken.
  virtual void on_end() noexcept = 0;

  /// The stream has failed; queued tasks were dropped. A code of the producer that is not an errno
  /// value reads EIO, with "(code -5)" at the end of the text. `metadata` as in accept_task.
  virtual void on_error(const Error& error, std::string_view metadata) noexcept = 0;

  /// Release of the handler is about to wait for a `take`, `drop`, `request` or `cancel` that runs
  /// on another thread. It waits for `request` and `cancel` first, and calls this method again when
  /// a `take` or `drop` still runs then. A producer that holds a lock around release which that
  /// call needs deadlocks (erratum async-release-waits).
  virtual void on_release_waits() noexcept {}
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_ASYNC_LISTENER_HPP

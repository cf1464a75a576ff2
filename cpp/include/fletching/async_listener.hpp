// SPDX-License-Identifier: Apache-2.0
//
// What the application is told of an async stream.
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

/// Where an async consumer is; the consumer's states of docs/reference/async.md.
enum class AsyncConsumerState : std::uint8_t {
  kCreated,    // on_schema has not come
  kUnwanted,   // cancelled before on_schema
  kStreaming,  // tasks may come
  kCancelled,  // cancelled; tasks that were asked for may still come
  kEnded,      // the end was told; queued tasks may still be taken
  kBroken,     // an extraction has failed; on_error and release may come
  kFailed,     // an error was told; release may come
  kRefused,    // a handler call was answered with an error; release may come
  kReleasing,  // release is running
  kReleased,
};

namespace detail {

/// The application has not been told how the stream ended.
constexpr bool live(AsyncConsumerState state) noexcept {
  return state == AsyncConsumerState::kCreated || state == AsyncConsumerState::kStreaming;
}

/// It is not told any more, though calls may come.
constexpr bool untold(AsyncConsumerState state) noexcept {
  return state == AsyncConsumerState::kUnwanted || state == AsyncConsumerState::kCancelled ||
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
  /// A copy of what came with the task, encoded as ArrowSchema.metadata; NULL: none.
  std::unique_ptr<const std::string> metadata;
};

/// What an application is told of a stream: the schema, tasks, and one end, which is `on_end`,
/// `on_error`, the error of `take`, or its own `cancel`, whichever comes first.
///
/// Each call comes from inside a handler call, on the producer's thread and without a lock: be
/// brief, and call `want`, `take`, `drop` and `cancel` from inside as you like.
class AsyncListener {
 public:
  virtual ~AsyncListener() = default;

  /// May refuse the schema, which is looked at and left alone: the error is the handler's answer,
  /// ends the stream and is told by on_error.
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

  /// Release of the handler is about to wait for a `take`, `drop`, `want` or `cancel` that runs on
  /// another thread. It waits for `want` and `cancel` first, and says so again when a `take` or
  /// `drop` still runs then. A producer that holds a lock around release which that call needs
  /// never gets it back (erratum async-release-waits).
  virtual void on_release_waits() noexcept {}
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_ASYNC_LISTENER_HPP

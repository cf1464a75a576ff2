// SPDX-License-Identifier: Apache-2.0
//
// Notifications to the source of an async stream, and the options of the stream.
#ifndef FLETCHING_ASYNC_SOURCE_HPP
#define FLETCHING_ASYNC_SOURCE_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "fletching/abi.h"
#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// The states of an async producer; see docs/reference/async.md.
enum class AsyncProducerState : std::uint8_t {
  kCreated,       // the schema is not known yet
  kSchema,        // on_schema is due
  kInSchema,      // on_schema is running
  kStreaming,     // no handler call is running
  kInTask,        // on_next_task with a task is running
  kInEnd,         // on_next_task with NULL is running
  kStopping,      // a handler call is running, and the stream was canceled
  kErrorInCall,   // a handler call is running, and an error was noted
  kErrorPending,  // on_error is due
  kInError,       // on_error is running
  kEnded,         // release is due, as in the next three
  kFailed,
  kCancelled,
  kRefused,
  kInRelease,  // release is running
  kReleased,
};

namespace detail {

/// Whether the source may push.
constexpr bool accepts_batches(AsyncProducerState state) noexcept {
  using State = AsyncProducerState;
  return state == State::kSchema || state == State::kInSchema || state == State::kStreaming ||
         state == State::kInTask;
}

/// Whether the stream can still be ended.
constexpr bool is_open(AsyncProducerState state) noexcept {
  return state == AsyncProducerState::kCreated || accepts_batches(state);
}

}  // namespace detail

/// Notifications to a source while its stream runs. Every call runs on the executor, with no lock
/// held, and never concurrently with another one or with a handler call.
class AsyncSource {
 public:
  virtual ~AsyncSource() = default;

  /// The consumer has requested `n` batches more than were pushed, n > 0. Called after on_schema
  /// has returned, and again after each request and each delivery while there is demand. A push
  /// from inside this call takes no lock.
  virtual void on_demand([[maybe_unused]] std::int64_t n) noexcept {}

  /// The stream is over early: canceled, rejected or failed. Later pushes are released at once.
  /// Undelivered batches are released before the handler.
  virtual void on_stop() noexcept {}

  /// The handler was released. This is the last call; the source is destroyed afterwards unless it
  /// has other owners.
  virtual void on_release() noexcept {}
};

struct AsyncProducerOptions {
  /// The device type of every batch.
  ArrowDeviceType device_type = ARROW_DEVICE_CPU;
  /// additional_metadata for the whole stream, encoded as ArrowSchema.metadata; empty: none.
  std::string metadata;
  /// Notified of demand; may be NULL.
  std::shared_ptr<AsyncSource> source;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_ASYNC_SOURCE_HPP

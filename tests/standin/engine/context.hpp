// SPDX-License-Identifier: Apache-2.0
// Contexts and their streams. A stream is a queue and a thread that executes it.
#ifndef FLETCHING_STANDIN_CONTEXT_HPP
#define FLETCHING_STANDIN_CONTEXT_HPP

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "failure.hpp"
#include "marker.hpp"

namespace fletching::standin {

class Context;

// Number of completed operations on all streams.
std::atomic<std::uint64_t>& operations_done();

// One operation on a stream: waits for the markers and the gate, does the work, reaches `done`.
struct Operation {
  std::vector<MarkerPtr> after;
  std::function<bool()> shut;          // whether the gate is still shut; may be empty
  std::function<void(Context&)> work;  // may be empty; a Failure breaks the context
  MarkerPtr done = std::make_shared<Marker>();
};

enum class StreamKind {
  kLegacy,       // the default stream of a context
  kBlocking,     // in order with the legacy default stream
  kNonBlocking,  // not in order with it
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // `hardware_queue`: index of the shared queue.
  Stream(std::shared_ptr<Context> context, StreamKind kind, std::size_t hardware_queue)
      : context_(std::move(context)), kind_(kind), hardware_queue_(hardware_queue) {}

  // Starts the thread. It ends when the stream is closed and its queue is empty.
  void start();
  void close();

  // Appends the operation and returns the marker that is reached when it is done.
  MarkerPtr enqueue(Operation operation);

  // The marker of the last operation so far.
  MarkerPtr tail();

  // Whether the stream is idle or cannot proceed: it waits for a marker or a shut gate.
  bool settled();

  // Whether the stream is destroyed and its work is done.
  bool finished();

  const std::shared_ptr<Context>& context() const { return context_; }
  StreamKind kind() const { return kind_; }

 private:
  friend class Context;
  MarkerPtr push(Operation operation);
  void wait_for_room();
  void run();
  bool next();

  std::shared_ptr<Context> context_;
  StreamKind kind_;
  std::size_t hardware_queue_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable taken_;  // signaled when an operation leaves the queue
  std::deque<Operation> queue_;
  Operation current_;  // only the thread changes it, and only its `work` without the mutex
  bool busy_ = false;  // with current_
  MarkerPtr tail_;
  bool closed_ = false;
};

class Context : public std::enable_shared_from_this<Context> {
 public:
  Context(int device, bool primary);

  int device() const { return device_; }
  // Unique to this context for the lifetime of the process.
  std::uint64_t id() const { return id_; }
  bool primary() const { return primary_; }

  std::shared_ptr<Stream> make_stream(StreamKind kind);
  std::shared_ptr<Stream> legacy_stream();
  // Adds the markers that the operation must wait for under the rules of the legacy default stream,
  // and enqueues it, in one step.
  MarkerPtr enqueue(Stream& stream, Operation operation);
  // The markers that a synchronization of the stream waits for.
  std::vector<MarkerPtr> tails(Stream& stream);

  // Returns true on the first call with this number, 0 to 63.
  bool is_first(int number);

  // The last marker of each stream.
  std::vector<MarkerPtr> all_tails();

  // Whether all streams are settled. Each is checked at a different moment.
  bool settled();

  // Makes later operations fail with the status and drops the queued work. The first status stays.
  void break_with(Status status);
  // Throws the context's status if it is broken.
  void check() const;
  const std::stop_token& gone() const { return gone_; }

  // Like break_with, for the end of a context: also ends its default stream.
  void destroy();

 private:
  std::vector<std::shared_ptr<Stream>> live_streams();
  // The markers that an operation on the stream must wait for.
  std::vector<MarkerPtr> points_before(const Stream& stream);
  // The hardware queue with the fewest streams; among equals, the next one.
  std::size_t least_used_queue(const std::vector<std::shared_ptr<Stream>>& streams);
  // The last operation of the stream's shared hardware queue; NULL if its queue is not shared.
  MarkerPtr* shared_tail(const Stream& stream);

  const int device_;
  const bool primary_;
  const std::uint64_t id_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Stream>> streams_;
  std::shared_ptr<Stream> legacy_;
  std::vector<MarkerPtr> shared_tails_;  // one per hardware queue (mode.hpp)
  std::size_t streams_made_ = 0;
  std::atomic<std::uint64_t> asked_ = 0;
  std::atomic<Status> status_ = Status::kSuccess;
  std::stop_source stop_;
  std::stop_token gone_ = stop_.get_token();
};

struct Event : std::enable_shared_from_this<Event> {
  Event(std::shared_ptr<Context> of, bool has_timing)
      : context(std::move(of)), timing(has_timing) {}

  // The marker of the last recording; NULL before the first.
  MarkerPtr point() {
    const std::lock_guard lock(mutex);
    return last;
  }

  void record(Stream& stream) {
    const std::lock_guard lock(mutex);
    last = stream.enqueue({});
  }

  const std::shared_ptr<Context> context;
  const bool timing;
  std::mutex mutex;
  MarkerPtr last;
};

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_CONTEXT_HPP

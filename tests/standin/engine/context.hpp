// SPDX-License-Identifier: Apache-2.0
// Contexts and their streams. A stream is a queue with a thread of its own that works it off.
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

// How many operations were done, by all streams together.
std::atomic<std::uint64_t>& operations_done();

// What a stream has to do: wait for the points and the gate, do the work, be done.
struct Operation {
  std::vector<MarkerPtr> after;
  std::function<bool()> shut;          // whether a gate still is; may be empty
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

  // Starts the thread, which ends when the stream is closed and its queue is empty.
  void start();
  void close();

  // Adds at the end and returns the point that is reached when it is done.
  MarkerPtr enqueue(Operation operation);

  // The point at which everything so far is done.
  MarkerPtr tail();

  // Whether it has nothing to do, or cannot go on: a point is not reached, or its gate is shut.
  bool settled();

  // Whether it is destroyed and its work is done.
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
  std::condition_variable taken_;  // from the queue
  std::deque<Operation> queue_;
  Operation current_;  // only the thread changes it, and only its own `work` without the mutex
  bool busy_ = false;  // with current_
  MarkerPtr tail_;
  bool closed_ = false;
};

class Context : public std::enable_shared_from_this<Context> {
 public:
  Context(int device, bool primary);

  int device() const { return device_; }
  // Of this context alone, for as long as the process runs.
  std::uint64_t id() const { return id_; }
  bool primary() const { return primary_; }

  std::shared_ptr<Stream> make_stream(StreamKind kind);
  std::shared_ptr<Stream> legacy_stream();
  // The points that an operation on the stream has to wait for by the rules of the legacy default
  // stream, and then the operation itself, as one step.
  MarkerPtr enqueue(Stream& stream, Operation operation);
  // The points at which everything is done that the stream waits for when it is synchronized.
  std::vector<MarkerPtr> tails(Stream& stream);

  // Whether this is the first time that it is asked about this number, from 0 to 63.
  bool is_first(int number);

  // The points at which everything is done that any stream has to do.
  std::vector<MarkerPtr> all_tails();

  // Whether all of its streams are, each at the moment when it is looked at.
  bool settled();

  // From now on everything here fails with the status, and streams drop what they have to do.
  // The first one stays.
  void break_with(Status status);
  // Throws the status that the context is broken with.
  void check() const;
  const std::stop_token& gone() const { return gone_; }

  // The same, for a context that ends: its default stream ends too.
  void destroy();

 private:
  std::vector<std::shared_ptr<Stream>> live_streams();
  // The points that an operation on the stream has to wait for.
  std::vector<MarkerPtr> points_before(const Stream& stream);
  // The queue of the hardware that the fewest streams use, the next one among equals.
  std::size_t least_used_queue(const std::vector<std::shared_ptr<Stream>>& streams);
  // The last operation of the queue of the hardware that the stream shares; NULL when it has its
  // own.
  MarkerPtr* shared_tail(const Stream& stream);

  const int device_;
  const bool primary_;
  const std::uint64_t id_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Stream>> streams_;
  std::shared_ptr<Stream> legacy_;
  std::vector<MarkerPtr> shared_tails_;  // of the queues of the hardware (mode.hpp)
  std::size_t streams_made_ = 0;
  std::atomic<std::uint64_t> asked_ = 0;
  std::atomic<Status> status_ = Status::kSuccess;
  std::stop_source stop_;
  std::stop_token gone_ = stop_.get_token();
};

struct Event : std::enable_shared_from_this<Event> {
  Event(std::shared_ptr<Context> of, bool has_timing)
      : context(std::move(of)), timing(has_timing) {}

  // The point of the last record; none before the first.
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

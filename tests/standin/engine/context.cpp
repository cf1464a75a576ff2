// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "mode.hpp"

namespace fletching::standin {
namespace {

// Sleeps with a growing pause of up to 2 ms, so that a shut gate costs little CPU time.
void wait_at_gate(const std::function<bool()>& shut, const std::stop_token& gone) {
  std::chrono::microseconds pause(20);
  while (!gone.stop_requested() && shut()) {
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
}

}  // namespace

std::atomic<std::uint64_t>& operations_done() {
  static std::atomic<std::uint64_t> count{0};
  return count;
}

// Detached, because a thread at a gate that never opens must not keep the process from ending. The
// thread owns the stream, and the engine is never destroyed.
void Stream::start() {
  std::thread([self = shared_from_this()] { self->run(); }).detach();
}

void Stream::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

MarkerPtr Stream::enqueue(Operation operation) {
  if (as_driver()) wait_for_room();
  return context_->enqueue(*this, std::move(operation));
}

void Stream::wait_for_room() {
  constexpr std::size_t kMostPending = 1000;
  std::unique_lock lock(mutex_);
  taken_.wait(lock, [this] { return queue_.size() < kMostPending; });
}

MarkerPtr Stream::tail() {
  const std::lock_guard lock(mutex_);
  return tail_;
}

bool Stream::finished() {
  const std::lock_guard lock(mutex_);
  return closed_ && (tail_ == nullptr || tail_->reached());
}

MarkerPtr Stream::push(Operation operation) {
  const std::lock_guard lock(mutex_);
  MarkerPtr done = operation.done;
  queue_.push_back(std::move(operation));
  tail_ = done;
  changed_.notify_all();
  return done;
}

// Replaces the completed operation by the next one.
bool Stream::next() {
  std::unique_lock lock(mutex_);
  current_ = {};
  busy_ = false;
  changed_.wait(lock, [this] { return closed_ || !queue_.empty(); });
  if (queue_.empty()) return false;
  current_ = std::move(queue_.front());
  queue_.pop_front();
  taken_.notify_all();
  busy_ = true;
  return true;
}

bool Stream::settled() {
  const std::lock_guard lock(mutex_);
  if (!busy_) return queue_.empty();
  if (context_->gone().stop_requested() || current_.done->reached()) return false;
  const auto reached = [](const MarkerPtr& point) { return point->reached(); };
  return !std::ranges::all_of(current_.after, reached) || (current_.shut && current_.shut());
}

void Stream::run() {
  while (next()) {
    for (const MarkerPtr& point : current_.after) point->wait(context_->gone());
    if (current_.shut) wait_at_gate(current_.shut, context_->gone());
    try {
      if (current_.work && !context_->gone().stop_requested()) current_.work(*context_);
    } catch (const Failure& failure) {
      context_->break_with(failure.status);
    } catch (const std::bad_alloc&) {
      context_->break_with(Status::kOutOfMemory);
    }
    current_.work = nullptr;  // releases its captures before the point is reached
    current_.done->reach();
    ++operations_done();
  }
}

Context::Context(int device, bool primary)
    : device_(device), primary_(primary), id_([] {
        static std::atomic<std::uint64_t> last = 0;
        return ++last;
      }()) {}

std::shared_ptr<Stream> Context::make_stream(StreamKind kind) {
  std::vector<std::shared_ptr<Stream>> streams;  // released after the lock
  const std::lock_guard lock(mutex_);
  streams = live_streams();
  auto stream = std::make_shared<Stream>(shared_from_this(), kind, least_used_queue(streams));
  std::erase_if(streams_, [](const std::weak_ptr<Stream>& each) { return each.expired(); });
  streams_.push_back(stream);
  stream->start();
  return stream;
}

std::shared_ptr<Stream> Context::legacy_stream() {
  std::vector<std::shared_ptr<Stream>> streams;  // released after the lock
  const std::lock_guard lock(mutex_);
  if (!legacy_) {
    streams = live_streams();
    auto stream = std::make_shared<Stream>(shared_from_this(), StreamKind::kLegacy,
                                           least_used_queue(streams));
    stream->start();
    legacy_ = std::move(stream);
  }
  return legacy_;
}

std::vector<std::shared_ptr<Stream>> Context::live_streams() {
  std::vector<std::shared_ptr<Stream>> live;
  for (const std::weak_ptr<Stream>& each : streams_) {
    if (auto stream = each.lock()) live.push_back(std::move(stream));
  }
  return live;
}

std::vector<MarkerPtr> Context::points_before(const Stream& stream) {
  std::vector<MarkerPtr> points;
  const auto add = [&](Stream& each) {
    if (MarkerPtr tail = each.tail()) points.push_back(std::move(tail));
  };
  if (stream.kind() == StreamKind::kBlocking && legacy_) add(*legacy_);
  if (stream.kind() != StreamKind::kLegacy) return points;
  for (const auto& each : live_streams()) {
    if (each->kind() == StreamKind::kBlocking) add(*each);
  }
  return points;
}

std::size_t Context::least_used_queue(const std::vector<std::shared_ptr<Stream>>& streams) {
  const std::size_t count = hardware_queues();
  if (count == 0) return 0;
  std::vector<std::size_t> users(count);
  if (legacy_) ++users[legacy_->hardware_queue_];
  for (const auto& each : streams) {
    if (!each->finished()) ++users[each->hardware_queue_];
  }
  const auto next = users.begin() + static_cast<std::ptrdiff_t>(streams_made_++ % count);
  std::ranges::rotate(users, next);
  const auto least = std::ranges::min_element(users) - users.begin();
  return (static_cast<std::size_t>(least) + streams_made_ - 1) % count;
}

MarkerPtr* Context::shared_tail(const Stream& stream) {
  if (hardware_queues() == 0) return nullptr;
  shared_tails_.resize(hardware_queues());
  return &shared_tails_[stream.hardware_queue_];
}

MarkerPtr Context::enqueue(Stream& stream, Operation operation) {
  const std::lock_guard lock(mutex_);
  for (MarkerPtr& point : points_before(stream)) operation.after.push_back(std::move(point));
  MarkerPtr* shared = shared_tail(stream);
  if (shared == nullptr) return stream.push(std::move(operation));
  if (*shared != nullptr) operation.after.push_back(*shared);
  *shared = stream.push(std::move(operation));
  return *shared;
}

bool Context::is_first(int number) {
  const std::uint64_t bit = std::uint64_t{1} << number;
  return (asked_.fetch_or(bit) & bit) == 0;
}

std::vector<MarkerPtr> Context::tails(Stream& stream) {
  const std::lock_guard lock(mutex_);
  std::vector<MarkerPtr> points;
  if (stream.kind() == StreamKind::kLegacy) points = points_before(stream);
  if (MarkerPtr tail = stream.tail()) points.push_back(std::move(tail));
  return points;
}

std::vector<MarkerPtr> Context::all_tails() {
  std::vector<std::shared_ptr<Stream>> streams;  // released after the lock
  const std::lock_guard lock(mutex_);
  streams = live_streams();
  if (legacy_) streams.push_back(legacy_);
  std::vector<MarkerPtr> points;
  for (const auto& each : streams) {
    if (MarkerPtr tail = each->tail()) points.push_back(std::move(tail));
  }
  return points;
}

bool Context::settled() {
  std::vector<std::shared_ptr<Stream>> streams;  // released after the lock
  const std::lock_guard lock(mutex_);
  streams = live_streams();
  if (legacy_) streams.push_back(legacy_);
  return std::ranges::all_of(streams, [](const auto& each) { return each->settled(); });
}

void Context::break_with(Status status) {
  Status none = Status::kSuccess;
  status_.compare_exchange_strong(none, status);
  stop_.request_stop();
}

void Context::check() const {
  const Status status = status_;
  if (status != Status::kSuccess) fail(status);
}

void Context::destroy() {
  break_with(Status::kContextIsDestroyed);
  std::shared_ptr<Stream> legacy;
  const std::lock_guard lock(mutex_);
  for (const auto& stream : live_streams()) stream->close();
  legacy = std::exchange(legacy_, nullptr);
  if (legacy) legacy->close();
}

}  // namespace fletching::standin

// SPDX-License-Identifier: Apache-2.0
#include "capture.hpp"

#include <atomic>
#include <utility>

namespace fletching::standin {

namespace {

thread_local CaptureMode thread_capture_mode = CaptureMode::kGlobal;
std::atomic<int> relaxed_count{0};

}  // namespace

CaptureMode exchange_thread_capture_mode(CaptureMode mode) {
  const CaptureMode before = std::exchange(thread_capture_mode, mode);
  relaxed_count += int{mode == CaptureMode::kRelaxed} - int{before == CaptureMode::kRelaxed};
  return before;
}

int relaxed_threads() { return relaxed_count; }

void Captures::begin(const std::shared_ptr<Stream>& stream, CaptureMode mode) {
  const std::lock_guard lock(mutex_);
  require(stream->kind() != StreamKind::kLegacy, Status::kCaptureUnsupported);
  require(point_of(*stream) == nullptr, Status::kIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream.get();
  captures_.push_back(capture);
  streams_[stream.get()] = {std::move(capture), {}};
}

Graph Captures::end(Stream& stream) {
  const std::lock_guard lock(mutex_);
  Point* point = point_of(stream);
  require(point != nullptr, Status::kIllegalState);
  const std::shared_ptr<Capture> capture = point->capture;
  require(capture->origin == &stream, Status::kCaptureUnmatched);
  require(capture->mode == CaptureMode::kRelaxed || capture->thread == std::this_thread::get_id(),
          Status::kCaptureWrongThread);
  const bool is_joined = point->before.size() == capture->graph.nodes.size();
  end(capture);
  require(capture->status == CaptureStatus::kActive, Status::kCaptureInvalidated);
  require(is_joined, Status::kCaptureUnjoined);
  return std::move(capture->graph);
}

CaptureStatus Captures::status(Stream& stream) {
  const std::lock_guard lock(mutex_);
  check_implicit(stream, false);
  const Point* point = point_of(stream);
  return point == nullptr ? CaptureStatus::kNone : point->capture->status;
}

bool Captures::add(Stream& stream, GraphNode node) {
  const std::lock_guard lock(mutex_);
  Point* point = active_point_of(stream);
  if (point == nullptr) return false;
  std::vector<GraphNode>& nodes = point->capture->graph.nodes;
  point->before.insert(nodes.size());
  nodes.push_back(std::move(node));
  return true;
}

bool Captures::record(Stream& stream, const Event& event) {
  const std::lock_guard lock(mutex_);
  Point* point = active_point_of(stream);
  if (point == nullptr) return false;
  events_[event.weak_from_this()] = *point;
  return true;
}

bool Captures::wait_on(Stream& stream, const Event& event) {
  const std::lock_guard lock(mutex_);
  Point* point = active_point_of(stream);
  const auto found = events_.find(event.weak_from_this());
  if (found == events_.end()) {
    if (point != nullptr) invalidate(*point->capture, Status::kCaptureIsolation);
    return false;
  }
  const Point& captured = found->second;
  if (point == nullptr) {
    require(captured.capture->status == CaptureStatus::kActive, Status::kCaptureInvalidated);
    streams_[&stream] = captured;
    return true;
  }
  if (captured.capture != point->capture) {
    captured.capture->status = CaptureStatus::kInvalidated;
    invalidate(*point->capture, Status::kCaptureMerge);
  }
  point->before.insert(captured.before.begin(), captured.before.end());
  return true;
}

void Captures::forget(const Event& event) {
  const std::lock_guard lock(mutex_);
  events_.erase(event.weak_from_this());
}

void Captures::refuse_unsafe() {
  const CaptureMode mine = thread_capture_mode;
  if (mine == CaptureMode::kRelaxed) return;
  const std::lock_guard lock(mutex_);
  bool is_refused = false;
  for (const auto& capture : captures_) {
    const bool is_own = capture->thread == std::this_thread::get_id();
    const bool conflicts =
        is_own ? capture->mode != CaptureMode::kRelaxed
               : mine == CaptureMode::kGlobal && capture->mode == CaptureMode::kGlobal;
    if (!conflicts) continue;
    capture->status = CaptureStatus::kInvalidated;
    is_refused = true;
  }
  require(!is_refused, Status::kCaptureUnsupported);
}

void Captures::refuse_captured(Stream& stream) {
  const std::lock_guard lock(mutex_);
  Point* point = active_point_of(stream);
  if (point != nullptr) invalidate(*point->capture, Status::kCaptureUnsupported);
}

void Captures::refuse_captured(const Event& event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event.weak_from_this());
  if (found != events_.end()) invalidate(*found->second.capture, Status::kCapturedEvent);
}

void Captures::refuse_invalidated(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  const Point* point = point_of(stream);
  require(point == nullptr || point->capture->status == CaptureStatus::kActive,
          Status::kCaptureInvalidated);
}

void Captures::drop(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  drop_locked(stream);
}

void Captures::drop(const Context& context) {
  const std::lock_guard lock(mutex_);
  std::vector<const Stream*> gone;
  for (const auto& [stream, point] : streams_) {
    if (stream->context().get() == &context) gone.push_back(stream);
  }
  for (const Stream* stream : gone) drop_locked(*stream);
}

void Captures::drop_locked(const Stream& stream) {
  const Point* point = point_of(stream);
  if (point == nullptr) return;
  const std::shared_ptr<Capture> capture = point->capture;
  capture->status = CaptureStatus::kInvalidated;
  if (capture->origin == &stream) end(capture);
  streams_.erase(&stream);
}

Captures::Point* Captures::point_of(const Stream& stream) {
  const auto found = streams_.find(&stream);
  return found == streams_.end() ? nullptr : &found->second;
}

// An operation on a stream whose capture has ended fails anyway.
Captures::Point* Captures::active_point_of(Stream& stream) {
  check_implicit(stream, true);
  Point* point = point_of(stream);
  if (point == nullptr) return nullptr;
  require(point->capture->status == CaptureStatus::kActive, Status::kCaptureInvalidated);
  return point;
}

// Work on the legacy default stream would depend on every blocking stream.
void Captures::check_implicit(Stream& stream, bool invalidates) {
  if (stream.kind() != StreamKind::kLegacy) return;
  bool is_implicit = false;
  for (const auto& [each, point] : streams_) {
    if (each->kind() != StreamKind::kBlocking || each->context() != stream.context()) continue;
    if (invalidates) point.capture->status = CaptureStatus::kInvalidated;
    is_implicit = true;
  }
  require(!is_implicit, Status::kCaptureImplicit);
}

// An event of the capture stays captured and still cannot be queried.
void Captures::end(const std::shared_ptr<Capture>& capture) {
  std::erase(captures_, capture);
  std::erase_if(streams_, [&](const auto& each) { return each.second.capture == capture; });
}

void Captures::invalidate(Capture& capture, Status status) {
  capture.status = CaptureStatus::kInvalidated;
  fail(status);
}

}  // namespace fletching::standin

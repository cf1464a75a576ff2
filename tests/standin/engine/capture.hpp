// SPDX-License-Identifier: Apache-2.0
// Stream captures into graphs, and the calls that they forbid. Each node follows the nodes that it
// depends on, so a launch runs them in order.
#ifndef FLETCHING_STANDIN_CAPTURE_HPP
#define FLETCHING_STANDIN_CAPTURE_HPP

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

#include "context.hpp"

namespace fletching::standin {

// Numbered as in CUDA and HIP; each stand-in asserts the numbers.
enum class CaptureMode : int { kGlobal, kThreadLocal, kRelaxed };
enum class CaptureStatus : int { kNone, kActive, kInvalidated };

// Work, or an event to record or wait for at each launch. The graph does not keep the event alive.
struct GraphNode {
  std::function<void(Context&)> work;
  const void* record = nullptr;
  const void* wait = nullptr;
};

struct Graph {
  std::vector<GraphNode> nodes;
};
struct GraphExec {
  std::vector<GraphNode> nodes;
};

// Sets which calls this thread may make during a capture. Returns the previous mode.
CaptureMode exchange_thread_capture_mode(CaptureMode mode);
// Number of threads in relaxed mode.
int relaxed_threads();

class Captures {
 public:
  void begin(const std::shared_ptr<Stream>& stream, CaptureMode mode);
  // Ends the capture, also when this throws, except on a call from the wrong stream or thread.
  Graph end(Stream& stream);

  // Throws kCaptureImplicit for a legacy default stream beside a blocking stream that is captured.
  CaptureStatus status(Stream& stream);

  // Add work or an event as a node if the stream is captured, and return false otherwise. Throw if
  // the capture is invalidated.
  bool add(Stream& stream, GraphNode node);
  bool record(Stream& stream, const Event& event);
  // Adds a stream that waits for an event of a capture to that capture.
  bool wait_on(Stream& stream, const Event& event);
  // Called when the event is recorded outside a capture.
  void forget(const Event& event);

  // Called by functions that the vendors call unsafe. Throws, and invalidates captures, if the
  // calling thread's mode does not allow the call.
  void refuse_unsafe();
  // Called by functions that no mode allows: querying or waiting for work that is only part of a
  // graph.
  void refuse_captured(Stream& stream);
  void refuse_captured(const Event& event);
  void refuse_invalidated(const Stream& stream);

  // Called when a stream or context is destroyed. Ends the captures that began there.
  void drop(const Stream& stream);
  void drop(const Context& context);

 private:
  using Nodes = std::set<std::size_t>;
  struct Capture {
    CaptureMode mode;
    std::thread::id thread;
    const Stream* origin;
    CaptureStatus status = CaptureStatus::kActive;
    Graph graph;
  };
  // A position in a capture, given by the nodes before it.
  struct Point {
    std::shared_ptr<Capture> capture;
    Nodes before;
  };

  // The caller holds the mutex.
  Point* point_of(const Stream& stream);
  Point* active_point_of(Stream& stream);
  void check_implicit(Stream& stream, bool invalidates);
  void drop_locked(const Stream& stream);
  void end(const std::shared_ptr<Capture>& capture);
  [[noreturn]] static void invalidate(Capture& capture, Status status);

  std::mutex mutex_;
  std::vector<std::shared_ptr<Capture>> captures_;
  std::unordered_map<const Stream*, Point> streams_;
  std::map<std::weak_ptr<const Event>, Point, std::owner_less<>> events_;
};

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_CAPTURE_HPP

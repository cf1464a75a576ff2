// SPDX-License-Identifier: Apache-2.0
// Captures of streams into graphs, and what they forbid. A node follows every node that it
// depends on, so that a launch does them one after another.
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

// As CUDA and HIP number them; each face asserts it.
enum class CaptureMode : int { kGlobal, kThreadLocal, kRelaxed };
enum class CaptureStatus : int { kNone, kActive, kInvalidated };

// Work, or an event that each launch records or waits for. The graph does not keep the event alive.
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

// What a thread may call while streams are captured. Returns the mode of before.
CaptureMode exchange_thread_capture_mode(CaptureMode mode);
// How many threads are in relaxed mode.
int relaxed_threads();

class Captures {
 public:
  void begin(const std::shared_ptr<Stream>& stream, CaptureMode mode);
  // The capture is over, also when this throws, but for a call from the wrong stream or thread.
  Graph end(Stream& stream);

  // Throws kCaptureImplicit for a legacy default stream beside a blocking stream that is captured.
  CaptureStatus status(Stream& stream);

  // For a stream that is captured: the work or the event becomes a node, instead of what it would
  // be. False for any other. Throws when the capture has been invalidated.
  bool add(Stream& stream, GraphNode node);
  bool record(Stream& stream, const Event& event);
  // A stream that waits for an event of a capture becomes part of it.
  bool wait_on(Stream& stream, const Event& event);
  // A record that is not part of a capture.
  void forget(const Event& event);

  // A call that the vendors call unsafe: throws, and invalidates captures, if the calling thread's
  // mode does not allow it.
  void refuse_unsafe();
  // A call that no mode allows: to ask or wait for what is only part of a graph.
  void refuse_captured(Stream& stream);
  void refuse_captured(const Event& event);
  void refuse_invalidated(const Stream& stream);

  // What is destroyed. A capture that begins there is over.
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
  // A point in a capture: the nodes before it.
  struct Point {
    std::shared_ptr<Capture> capture;
    Nodes before;
  };

  // With the mutex held.
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

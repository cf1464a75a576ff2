// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include "arrays.hpp"
#include "checks.hpp"

namespace fletching::gpu {
namespace {

/// A driver function that is not in the table.
template <class Signature>
Signature* driver_function(const char* symbol) {
  const auto library = find_library(cuda::kRuntime);
  if (!library) fail(library.error().code(), library.error().message());
  auto* found = reinterpret_cast<Signature*>(find_symbol(library->handle, symbol));
  if (found == nullptr) fail(ENODEV, std::string("the driver has no ") + symbol);
  return found;
}

/// A capture in global mode. end() reports its errors.
class Capture {
 public:
  explicit Capture(const Stream& stream) : stream_(stream.get()) {
    constexpr std::int32_t kGlobal = 0;
    require_call("cuStreamBeginCapture", driver_function<cuda::CUresult(void*, std::int32_t)>(
                                             "cuStreamBeginCapture_v2")(stream_, kGlobal));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    if (stream_ != nullptr) destroy(end_capture());
  }

  /// Returns the graph, which the caller must destroy. Throws if the capture was invalidated.
  void* end() {
    void* graph = end_capture();
    stream_ = nullptr;
    require_call("cuStreamEndCapture", result_);
    return graph;
  }

  static void destroy(void* graph) {
    if (graph != nullptr) driver_function<cuda::CUresult(void*)>("cuGraphDestroy")(graph);
  }

 private:
  void* end_capture() {
    void* graph = nullptr;
    result_ = driver_function<cuda::CUresult(void*, void**)>("cuStreamEndCapture")(stream_, &graph);
    return graph;
  }

  void* stream_;
  cuda::CUresult result_ = 0;
};

/// A graph that can be launched.
class Executable {
 public:
  explicit Executable(void* graph) {
    using Instantiate = cuda::CUresult(void**, void*, unsigned long long);
    require_call("cuGraphInstantiate",
                 driver_function<Instantiate>("cuGraphInstantiateWithFlags")(&handle_, graph, 0));
    Capture::destroy(graph);
  }
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  ~Executable() { driver_function<cuda::CUresult(void*)>("cuGraphExecDestroy")(handle_); }

  void launch(const Stream& stream) const {
    require_call("cuGraphLaunch", driver_function<cuda::CUresult(void*, void*)>("cuGraphLaunch")(
                                      handle_, stream.get()));
  }

 private:
  void* handle_ = nullptr;
};

void require_refused(Asserter& asserter, const char* what, const Status& status) {
  asserter.require(!status.ok(), std::string(what) + " takes a stream that is captured");
  asserter.require(status.error().code() == EBUSY,
                   std::string(what) + ": " + status.error().message());
}

}  // namespace

// Checks the reaper, a host wait and a query while this thread captures, and the errors of
// operations on a captured stream.
void check_capture(Asserter& asserter) {
  const Current current;
  const Stream captured;
  Gated gated;
  DeviceArray pending = gated.array();
  DeviceArray exported = gated.array();
  DeviceArray array = gated.array();
  DeviceArray leaked = gated.array();
  static ArrowDeviceArray seen;  // keeps the leaked array reachable for a leak checker
  seen = *leaked.get();
  asserter.require_success(
      "export_with_event",
      export_with_event(exported, {ARROW_DEVICE_CUDA, gated.consumer().get()}));
  asserter.require_success("release_after",
                           release_after(pending, {ARROW_DEVICE_CUDA, gated.producer().get()}));
  Capture capture(captured);
  const SyncEvent event(exported);
  asserter.require_success("synchronize", event.synchronize());
  asserter.require_success("ready", event.ready());
  require_refused(asserter, "wait_on", event.wait_on({ARROW_DEVICE_CUDA, captured.get()}));
  require_refused(asserter, "export_with_event",
                  export_with_event(array, {ARROW_DEVICE_CUDA, captured.get()}));
  require_refused(asserter, "release_after",
                  release_after(leaked, {ARROW_DEVICE_CUDA, captured.get()}));
  asserter.require_success("release_after",
                           release_after(array, {ARROW_DEVICE_CUDA, gated.consumer().get()}));
  asserter.require(gated.releases().wait_for(1), "the array was not released during a capture");
  asserter.require_equal("releases behind the shut gate", gated.releases().count(), 1);
  Capture::destroy(capture.end());
  gated.open();
  asserter.require(gated.releases().wait_for(2), "the array behind the gate was not released");
  exported.release();
}

// A graph whose launch waits for the producer's event and records an array's event.
void check_graph_events(Asserter& asserter) {
  const Current current;
  const DeviceMemory memory(kBytes);
  const PinnedMemory seen(kBytes);
  const Stream producer;
  const Stream captured;
  Releases releases;
  cuda::CUevent written = nullptr;
  require_call("cuEventCreate", cu().cu_event_create(&written, cuda::kCuEventDisableTiming));
  const SyncEvent in(ARROW_DEVICE_CUDA, 0, static_cast<void*>(&written));
  DeviceArray array = make_array(memory.data(), kBytes, Counted(&releases));
  producer.fill(memory, kOld);
  producer.synchronize();
  {
    Capture capture(captured);
    asserter.require_success(
        "wait_on", in.wait_on({ARROW_DEVICE_CUDA, captured.get()}, OnCapture::kExternalEvent));
    captured.read(seen, memory);
    asserter.require_success(
        "export_with_event",
        export_with_event(array, {ARROW_DEVICE_CUDA, captured.get()}, OnCapture::kExternalEvent));
    const Executable graph(capture.end());
    graph.launch(captured);  // the first launch may allocate, and thus wait for the device
    captured.synchronize();
    asserter.require(seen.holds(kOld), "the first launch does not see the old data");
    Gate gate;
    gate.shut(producer);
    producer.fill(memory, kNew);
    require_call("cuEventRecord",
                 cu().cu_event_record(written, static_cast<cuda::CUstream>(producer.get())));
    graph.launch(captured);
    asserter.require(!*SyncEvent(array).ready(), "the launch does not wait for the event");
    gate.open();
    asserter.require_success("synchronize", SyncEvent(array).synchronize());
    asserter.require(seen.holds(kNew), "the launch does not see the new data");
    captured.synchronize();
  }
  array.release();
  asserter.require_equal("releases", releases.count(), 1);
  require_call("cuEventDestroy", cu().cu_event_destroy(written));
}

}  // namespace fletching::gpu

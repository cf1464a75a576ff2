// SPDX-License-Identifier: Apache-2.0
#include "capture.hpp"

#include <cstdint>

#include "error_text.hpp"
#include "fletching/export_event.hpp"
#include "fletching/sync_event.hpp"
#include "released_array.hpp"

namespace fletching::faults {
namespace {

using testing::ReleasedArray;

// A stream capture that ends with the object. These vendor functions are not in the tables and are
// never made to fail.
class Capture {
 public:
  Capture(const VendorRuntime& runtime, void* stream)
      : library_(find_library(runtime)->handle),
        is_cuda_(std::string(runtime.name) == "cuda"),
        stream_(stream) {
    constexpr std::int32_t kGlobal = 0;
    call<std::int32_t(void*, std::int32_t)>("cuStreamBeginCapture_v2", "hipStreamBeginCapture")(
        stream_, kGlobal);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() { (void)end(); }

  // Returns "" if the capture was not invalidated.
  std::string end() {
    if (has_ended_) return "";
    has_ended_ = true;
    void* graph = nullptr;
    const std::int32_t result = call<std::int32_t(void*, void**)>(
        "cuStreamEndCapture", "hipStreamEndCapture")(stream_, &graph);
    if (result != 0) return "the capture was invalidated: " + std::to_string(result);
    call<std::int32_t(void*)>("cuGraphDestroy", "hipGraphDestroy")(graph);
    return "";
  }

 private:
  template <class Signature>
  Signature* call(const char* cuda, const char* hip) {
    return reinterpret_cast<Signature*>(find_symbol(library_, is_cuda_ ? cuda : hip));
  }

  void* library_;
  bool is_cuda_;
  void* stream_;
  bool has_ended_ = false;
};

}  // namespace

void capture(Run& run, const std::string& backend, ArrowDeviceType type, void* handle) {
  const VendorRuntime* runtime = vendor_of(backend).runtime;
  if ((runtime != &cuda::kRuntime && runtime != &hip::kRuntime) || handle == nullptr) return;
  const Stream stream(type, handle);
  ReleasedArray made;
  ReleasedArray another;
  DeviceArray before = made.make(type, 0);
  DeviceArray array = another.make(type, 0);
  run.step("export_with_event before a capture", ErrorReporting::kReports,
           [&] { return text_of(export_with_event(before, stream)); });
  run.step("events of a graph", ErrorReporting::kReports, [&]() -> std::string {
    Capture captured(*runtime, handle);
    std::string text = text_of(SyncEvent(before).wait_on(stream, OnCapture::kExternalEvent));
    if (text.empty()) {
      text = text_of(export_with_event(array, stream, OnCapture::kExternalEvent));
    }
    if (text.empty()) text = text_of(SyncEvent(before).ready());
    const std::string ended = captured.end();
    return text.empty() ? ended : text;
  });
  run.clean_up("release of the events of a graph", ErrorReporting::kSilent, [&] {
    before.release();
    array.release();
    return made.parents.count() == 1 && another.parents.count() == 1
               ? ""
               : "the arrays were not released once";
  });
}

}  // namespace fletching::faults

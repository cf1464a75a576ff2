// SPDX-License-Identifier: Apache-2.0
#include "scenario.hpp"

#include <thread>
#include <utility>
#include <vector>

#include "capture.hpp"
#include "error_text.hpp"
#include "exchange.hpp"
#include "fletching/async_adapters.hpp"
#include "fletching/c_api.h"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/vulkan_event.hpp"
#include "gate.h"
#include "released_array.hpp"
#include "vulkan_handles.h"

namespace fletching::faults {
namespace {

using testing::ReleasedArray;

constexpr const char* kCase = "utf8";  // has several buffers

// The problem that the report states for a device type.
std::string complaint(const FletchingDeviceReportEntry& entry) {
  if (entry.n_devices == 0) return entry.reason;
  std::string text;
  const auto add = [&](const std::string& part) {
    if (part.starts_with('(')) text += part;
  };
  add(entry.version);
  for (int64_t i = 0; i < entry.n_devices; ++i) add(entry.devices[i].name);
  return text;
}

class Scenario {
 public:
  Scenario(Run& run, std::string backend) : run_(run), backend_(std::move(backend)) {}
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;

  void play() {
    report();
    open();
    export_behind_gate();
    read_without_and_with_wait();
    open_gate();
    stream();
    async_stream();
    verify_without_gate();
    export_with_event();
    release_after();
    capture(run_, backend_, device_type(),
            is_vulkan() ? nullptr : FletchingProducerQueueHandle(queue_));
    exchange();
    fail_on_purpose();
    release_all();
  }

 private:
  const char* name() const { return backend_.c_str(); }
  bool is_vulkan() const { return backend_ == "vulkan"; }
  bool attempt(const char* step, const std::function<std::string()>& body) {
    return run_.step(step, ErrorReporting::kReports, body);
  }

  void report() {
    attempt("FletchingDeviceReportCreate", [&]() -> std::string {
      FletchingDeviceReport* report = nullptr;
      std::string text = call(FletchingDeviceReportCreate, &report);
      for (int64_t i = 0; i < FletchingDeviceReportCount(report); ++i) {
        const FletchingDeviceReportEntry& entry = *FletchingDeviceReportGet(report, i);
        if (entry.name == backend_) text += complaint(entry);
      }
      FletchingDeviceReportDestroy(report);
      return text;
    });
  }

  void open() {
    attempt("BackendPresence", [&] { return why_absent(backend_); });
    if (is_vulkan()) {
      attempt("VulkanHandles", [&] { return call(FletchingProducerVulkanHandles, &handles_); });
    }
  }

  void export_behind_gate() {
    attempt("GateCreate", [&] { return call(FletchingProducerGateCreate, name(), &gate_); });
    attempt("QueueCreate", [&] { return call(FletchingProducerQueueCreate, name(), &queue_); });
    attempt("QueueCreate 2", [&] { return call(FletchingProducerQueueCreate, name(), &other_); });
    attempt("ExportArrayBehind", [&] {
      return call(FletchingProducerExportArrayBehind, gate_, kCase, schema_.out(), array_.out());
    });
  }

  void read_without_and_with_wait() {
    attempt("ready, shut", [&] { return expect_ready(false); });
    attempt("QueueRead, unwaited",
            [&] { return call(FletchingProducerQueueRead, other_, kCase, array_.get()); });
    attempt("QueueIsIdle", [&] {
      int32_t idle = 0;
      return call(FletchingProducerQueueIsIdle, other_, &idle);
    });
    attempt("QueueVerify, old", [&] { return verify(other_, FLETCHING_PRODUCER_OLD); });
    attempt("wait_on and QueueRead", [&] { return read_when_ready(array_); });
    if (!is_vulkan() && backend_ != "opencl") {
      attempt("wait_on of the default stream",
              [&] { return text_of(event().wait_on({device_type(), nullptr})); });
    }
  }

  void open_gate() {
    attempt("GateOpen", [&] { return call(FletchingProducerGateOpen, gate_); });
    attempt("synchronize", [&] { return text_of(synchronize(event())); });
    attempt("ready, open", [&] { return expect_ready(true); });
    attempt("QueueVerify, new", [&] { return verify(queue_, FLETCHING_PRODUCER_NEW); });
    run_.step("release of the array", ErrorReporting::kSilent, [&] { return release_array(); });
  }

  // Two batches with an event each. If the first one fails, the second is not taken.
  void stream() {
    attempt("ExportStreamBehind", [&] {
      return call(FletchingProducerExportStreamBehind, gate_, kCase, int64_t{2}, int64_t{-1},
                  stream_.out());
    });
    attempt("get_next", [&]() -> std::string {
      for (int i = 0; i < 2; ++i) {
        DeviceArray batch;
        if (stream_->get_next(stream_.get(), batch.out()) != 0) {
          const char* text = stream_->get_last_error(stream_.get());
          return text != nullptr ? text : "get_next failed without words";
        }
        batches_.push_back(std::move(batch));
      }
      return "";
    });
    attempt("GateOpen again", [&] { return call(FletchingProducerGateOpen, gate_); });
    read_batches("stream");
  }

  // Like stream(), on another thread, where the producer makes the batches. Reads one batch at a
  // time, because a reader drops unread batches on an error.
  void async_stream() {
    attempt("async stream", [&]() -> std::string {
      auto reader = AsyncReader::create(1);
      if (!reader.ok()) return text_of(reader);
      ArrowAsyncDeviceStreamHandler* handler = reader->handler();
      std::string text =
          call(FletchingProducerRunAsync, name(), nullptr, kCase, int64_t{2}, int64_t{-1}, handler);
      if (!text.empty()) {
        handler->release(handler);
        return text;
      }
      auto stream = std::move(*reader).open();
      if (!stream.ok()) return text_of(stream);
      for (auto& batch : StreamReader<ArrowDeviceArrayStream>(*std::move(stream))) {
        if (!batch.ok()) return text_of(batch);
        batches_.push_back(*std::move(batch));
      }
      return batches_.size() == 2 ? "" : "batches: expected 2, got fewer";
    });
    run_.clean_up("end of the async stream", ErrorReporting::kSilent, [] {
      FletchingProducerAwaitAsync();
      return "";
    });
    read_batches("async stream");
  }

  // Waits for the event of each batch, reads the batch, and releases it.
  void read_batches(const std::string& where) {
    attempt((where + ": read").c_str(), [&] {
      std::string text;
      for (const DeviceArray& batch : batches_) {
        if (text.empty()) text = read_when_ready(batch);
      }
      return text.empty() ? verify(queue_, FLETCHING_PRODUCER_NEW) : text;
    });
    attempt((where + ": synchronize").c_str(), [&] {
      std::string text;
      for (const DeviceArray& batch : batches_) {
        if (text.empty()) text = text_of(synchronize(SyncEvent(batch)));
      }
      return text;
    });
    run_.step((where + ": release").c_str(), ErrorReporting::kSilent, [&] {
      batches_.clear();
      stream_.release();
      return "";
    });
  }

  void verify_without_gate() {
    attempt("ExportArray", [&] {
      return call(FletchingProducerExportArray, name(), kCase, schema_.out(), array_.out());
    });
    attempt("VerifyArray", [&] {
      return call(FletchingProducerVerifyArray, name(), kCase, schema_.get(), array_.get());
    });
    run_.step("release of the array without a gate", ErrorReporting::kSilent,
              [&] { return release_array(); });
  }

  void export_with_event() {
    if (is_vulkan()) return;
    ReleasedArray made;
    DeviceArray array = made.make(device_type(), 0);
    attempt("export_with_event",
            [&] { return text_of(fletching::export_with_event(array, stream_of(queue_))); });
    run_.clean_up("release of an exported event", ErrorReporting::kSilent, [&] {
      array.release();
      return made.parents.count() == 1 ? "" : "the array was not released once";
    });
  }

  void release_after() {
    if (is_vulkan()) return;
    ReleasedArray made;
    DeviceArray array = made.make(device_type(), 0);
    int wanted = 1;
    run_.step("release_after", ErrorReporting::kMayReport, [&]() -> std::string {
      const Status status = fletching::release_after(array, stream_of(queue_));
      if (!status.ok()) {
        wanted = 0;  // leaked, because it is unknown whether the stream is done
        return text_of(status);
      }
      return made.parents.wait_for(1) ? "" : "the reaper did not release the array";
    });
    run_.clean_up("release of what was not deferred", ErrorReporting::kSilent, [&] {
      if (!array.is_released()) return "release_after has not taken the array";
      return made.parents.count() == wanted ? "" : "the array was not released once, or early";
    });
  }

  void exchange() {
    Consumer consumer;
    if (!is_vulkan()) {
      consumer.stream = FletchingProducerQueueHandle(queue_);
      consumer.other_stream = FletchingProducerQueueHandle(other_);
    }
    consumer.synchronize = [this](const SyncEvent& event) { return synchronize(event); };
    exchange_dlpack(run_, backend_, consumer);
    exchange_cuda_arrays(run_, backend_, consumer);
  }

  // An error has a message even if the vendor has none.
  void fail_on_purpose() {
    if (is_vulkan() || backend_ == "opencl") return;
    // A failure after the event was rejected does not change the message.
    run_.step("an event that is none", ErrorReporting::kMayReport, [&]() -> std::string {
      alignas(64) static char none[64];
      void* handle = none;
      const Status status = SyncEvent(device_type(), 0, static_cast<void*>(&handle)).synchronize();
      if (status.ok()) return "synchronize took what is not an event";
      const bool has_words = text_of(status).find("Synchronize failed with") != std::string::npos ||
                             status.error().code() == EINVAL;
      return has_words && status.error().code() == EINVAL ? "" : text_of(status);
    });
  }

  void release_all() {
    // A consumer that still reads cannot release, so open the gate first, then destroy the queues,
    // then the arrays.
    run_.clean_up("GateOpen, last", ErrorReporting::kMayReport,
                  [&] { return gate_ == nullptr ? "" : call(FletchingProducerGateOpen, gate_); });
    for (FletchingProducerQueue** queue : {&queue_, &other_}) {
      run_.clean_up("QueueDestroy", ErrorReporting::kMayReport, [&] {
        return call(FletchingProducerQueueDestroy, std::exchange(*queue, nullptr));
      });
    }
    run_.clean_up("release of what is left", ErrorReporting::kSilent, [&] {
      batches_.clear();
      stream_.release();
      return release_array();
    });
    run_.clean_up("GateDestroy", ErrorReporting::kMayReport, [&] {
      return call(FletchingProducerGateDestroy, std::exchange(gate_, nullptr));
    });
  }

  // --- Details

  std::string release_array() {
    array_.release();
    schema_.release();
    return "";
  }

  ArrowDeviceType device_type() const { return array_type_; }
  Stream stream_of(FletchingProducerQueue* queue) const {
    return {device_type(), FletchingProducerQueueHandle(queue)};
  }

  SyncEvent event() {
    array_type_ = array_->device_type;
    return SyncEvent(array_);
  }
  vulkan::WaitContext context() const {
    return {handles_.device, handles_.queue, handles_.queue, handles_.set_stages,
            reinterpret_cast<decltype(vulkan::WaitContext::get_device_proc_addr)>(
                handles_.get_device_proc_addr)};
  }
  Status synchronize(const SyncEvent& event) const {
    return is_vulkan() ? event.synchronize(context()) : event.synchronize();
  }
  // Reads on the queue, after the array's event.
  std::string read_when_ready(const DeviceArray& array) {
    void* handle = FletchingProducerQueueHandle(queue_);
    const SyncEvent event(array);
    // A NULL result has no message; the read after it has one.
    std::string text;
    if (handle != nullptr) {
      text = text_of(is_vulkan() ? event.wait_on(context(), handle)
                                 : event.wait_on({event.device_type(), handle}));
    }
    if (text.empty()) text = call(FletchingProducerQueueRead, queue_, kCase, array.get());
    return text;
  }
  std::string expect_ready(bool expected) {
    const Result<bool> ready = is_vulkan() ? event().ready(context()) : event().ready();
    if (!ready.ok()) return text_of(ready);
    return *ready == expected ? "" : "ready: returned the wrong answer";
  }
  static std::string verify(FletchingProducerQueue* queue, int32_t expected) {
    int64_t asserted = 0;
    std::string text = call(FletchingProducerQueueVerify, queue, expected, &asserted);
    return text.empty() && asserted == 0 ? "nothing was compared" : text;
  }

  Run& run_;
  const std::string backend_;
  ArrowDeviceType array_type_ = 0;
  FletchingProducerVulkan handles_{};
  FletchingProducerGate* gate_ = nullptr;
  FletchingProducerQueue* queue_ = nullptr;
  FletchingProducerQueue* other_ = nullptr;
  Schema schema_;
  DeviceArray array_;
  DeviceArrayStream stream_;
  std::vector<DeviceArray> batches_;
};

}  // namespace

bool Run::step(const char* name, ErrorReporting reporting,
               const std::function<std::string()>& body) {
  if (!outcome_.failed_in.empty()) return false;
  clean_up(name, reporting, body);
  return outcome_.failed_in.empty();
}

void Run::clean_up(const char* name, ErrorReporting reporting,
                   const std::function<std::string()>& body) {
  const std::string text = body();
  // Attributes the driver calls of releases on worker threads to this step.
  while (pending_releases().value().running > 0) std::this_thread::yield();
  const bool has_fired = fires_at_ >= 0 && control_.calls(function_) >= fires_at_;
  if (has_fired && outcome_.fired_in.empty()) {
    outcome_.fired_in = name;
    outcome_.reporting = reporting;
  }
  if (text.empty() || !outcome_.failed_in.empty()) return;
  outcome_.failed_in = name;
  outcome_.text = text;
}

void play(Run& run, const std::string& backend) { Scenario(run, backend).play(); }

std::string why_absent(const std::string& backend) {
  int32_t presence = FLETCHING_PRODUCER_ABSENT;
  FletchingMessage description{};
  const int code = FletchingProducerBackendPresence(backend.c_str(), &presence, &description);
  if (code == 0 && presence != FLETCHING_PRODUCER_ABSENT) return "";
  return text_of(code != 0 ? code : ENODEV, description);
}

}  // namespace fletching::faults

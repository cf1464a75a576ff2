// SPDX-License-Identifier: Apache-2.0
#include "scenario.hpp"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "fletching/c_api.h"
#include "fletching/event_verbs.hpp"
#include "fletching/sync_event.hpp"
#include "gate.h"
#include "released_array.hpp"
#include "vulkan_handles.h"

namespace fletching::faults {
namespace {

using testing::ReleasedArray;

constexpr const char* kCase = "utf8";  // several buffers

std::string text_of(int code, const FletchingMessage& message) {
  if (code == 0) return "";
  const std::string text = message.text;
  return text.empty() ? "error " + std::to_string(code) + " without words" : text;
}

template <class T>
std::string text_of(const Result<T>& result) {
  return result.ok() ? "" : result.error().message();
}

// A call of a function that takes a message last.
template <class Function, class... Arguments>
std::string call(Function function, Arguments... arguments) {
  FletchingMessage message{};
  const int code = function(arguments..., &message);
  return text_of(code, message);
}

// What the report says that is wrong with a device type.
std::string complaint(const FletchingDeviceReportEntry& entry) {
  if (entry.n_devices == 0) return entry.reason;
  std::string text;
  const auto add = [&](const std::string& part) {
    if (part.starts_with("(")) text += part;
  };
  add(entry.version);
  for (int64_t i = 0; i < entry.n_devices; ++i) add(entry.devices[i].name);
  return text;
}

class Scene {
 public:
  Scene(Run& run, std::string backend) : run_(run), backend_(std::move(backend)) {}
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void play() {
    report();
    open();
    export_behind_gate();
    read_without_and_with_wait();
    open_gate();
    stream();
    verify_without_gate();
    export_with_event();
    release_after();
    fail_on_purpose();
    release_all();
  }

 private:
  const char* name() const { return backend_.c_str(); }
  bool is_vulkan() const { return backend_ == "vulkan"; }
  bool tells(const char* step, const std::function<std::string()>& body) {
    return run_.step(step, Voice::kTells, body);
  }

  void report() {
    tells("FletchingDeviceReportCreate", [&]() -> std::string {
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
    tells("BackendPresence", [&] { return why_absent(backend_); });
    if (is_vulkan()) {
      tells("VulkanHandles", [&] { return call(FletchingProducerVulkanHandles, &handles_); });
    }
  }

  void export_behind_gate() {
    tells("GateCreate", [&] { return call(FletchingProducerGateCreate, name(), &gate_); });
    tells("QueueCreate", [&] { return call(FletchingProducerQueueCreate, name(), &queue_); });
    tells("QueueCreate 2", [&] { return call(FletchingProducerQueueCreate, name(), &other_); });
    tells("ExportArrayBehind", [&] {
      return call(FletchingProducerExportArrayBehind, gate_, kCase, &schema_, &array_);
    });
  }

  void read_without_and_with_wait() {
    tells("ready, shut", [&] { return expect_ready(false); });
    tells("QueueRead, unwaited",
          [&] { return call(FletchingProducerQueueRead, other_, kCase, &array_); });
    tells("QueueIsIdle", [&] {
      int32_t idle = 0;
      return call(FletchingProducerQueueIsIdle, other_, &idle);
    });
    tells("QueueVerify, old", [&] { return verify(other_, FLETCHING_PRODUCER_OLD); });
    // A NULL that it gives has no words; the read that comes next has them.
    tells("wait_on", [&] {
      void* handle = FletchingProducerQueueHandle(queue_);
      return handle != nullptr ? wait_on(handle)
                               : call(FletchingProducerQueueRead, queue_, kCase, &array_);
    });
    if (!is_vulkan()) {
      tells("wait_on of the default stream",
            [&] { return backend_ == "opencl" ? "" : text_of(event().wait_on(nullptr)); });
    }
    tells("QueueRead, waited",
          [&] { return call(FletchingProducerQueueRead, queue_, kCase, &array_); });
  }

  void open_gate() {
    tells("GateOpen", [&] { return call(FletchingProducerGateOpen, gate_); });
    tells("synchronize", [&] {
      return text_of(is_vulkan() ? event().synchronize(context()) : event().synchronize());
    });
    tells("ready, open", [&] { return expect_ready(true); });
    tells("QueueVerify, new", [&] { return verify(queue_, FLETCHING_PRODUCER_NEW); });
    run_.step("release of the array", Voice::kSilent, [&] {
      release(array_.array);
      release(schema_);
      return "";
    });
  }

  // Two batches, and the second is not taken when the first one fails.
  void stream() {
    tells("ExportStreamBehind", [&] {
      return call(FletchingProducerExportStreamBehind, gate_, kCase, int64_t{2}, int64_t{-1},
                  &stream_);
    });
    for (ArrowDeviceArray& batch : batches_) {
      tells("get_next", [&]() -> std::string {
        if (stream_.get_next(&stream_, &batch) == 0) return "";
        const char* text = stream_.get_last_error(&stream_);
        return text != nullptr ? text : "get_next failed without words";
      });
    }
    tells("GateOpen again", [&] { return call(FletchingProducerGateOpen, gate_); });
    run_.step("release of the stream", Voice::kSilent, [&] {
      for (ArrowDeviceArray& batch : batches_) release(batch.array);
      release(stream_);
      return "";
    });
  }

  void verify_without_gate() {
    tells("ExportArray",
          [&] { return call(FletchingProducerExportArray, name(), kCase, &schema_, &array_); });
    tells("VerifyArray",
          [&] { return call(FletchingProducerVerifyArray, name(), kCase, &schema_, &array_); });
    run_.step("release of the array without a gate", Voice::kSilent, [&] {
      release(array_.array);
      release(schema_);
      return "";
    });
  }

  void export_with_event() {
    if (is_vulkan()) return;
    ReleasedArray made;
    DeviceArray array = made.make(device_type(), 0);
    tells("export_with_event", [&] {
      return text_of(fletching::export_with_event(array, FletchingProducerQueueHandle(queue_)));
    });
    run_.clean_up("release of an exported event", Voice::kSilent, [&] {
      array.release();
      return made.parents.count() == 1 ? "" : "the array was not released once";
    });
  }

  void release_after() {
    if (is_vulkan()) return;
    ReleasedArray made;
    DeviceArray array = made.make(device_type(), 0);
    run_.step("release_after", Voice::kMayTell, [&]() -> std::string {
      const Status status = fletching::release_after(array, FletchingProducerQueueHandle(queue_));
      if (!status.ok()) return text_of(status);
      return made.parents.wait_for(1) ? "" : "the reaper did not release the array";
    });
    run_.clean_up("release of what was not deferred", Voice::kSilent, [&] {
      array.release();
      return made.parents.count() == 1 ? "" : "the array was not released once";
    });
  }

  // An error has words even when the vendor does not give them.
  void fail_on_purpose() {
    if (is_vulkan() || backend_ == "opencl") return;
    tells("an event that is none", [&]() -> std::string {
      alignas(64) static char none[64];
      void* handle = none;
      const Status status = SyncEvent(device_type(), 0, static_cast<void*>(&handle)).synchronize();
      if (status.ok()) return "synchronize took what is no event";
      const bool has_words = text_of(status).find("Synchronize failed with") != std::string::npos ||
                             status.error().code() == EINVAL;
      return has_words && status.error().code() == EINVAL ? "" : text_of(status);
    });
  }

  void release_all() {
    // A consumer that still reads may not release: the gate first, then the queues, then the
    // arrays.
    run_.clean_up("GateOpen, last", Voice::kMayTell,
                  [&] { return gate_ == nullptr ? "" : call(FletchingProducerGateOpen, gate_); });
    for (FletchingProducerQueue** queue : {&queue_, &other_}) {
      run_.clean_up("QueueDestroy", Voice::kMayTell, [&] {
        return call(FletchingProducerQueueDestroy, std::exchange(*queue, nullptr));
      });
    }
    run_.clean_up("release of what is left", Voice::kSilent, [&] {
      for (ArrowDeviceArray& batch : batches_) release(batch.array);
      release(stream_);
      release(array_.array);
      release(schema_);
      return "";
    });
    run_.clean_up("GateDestroy", Voice::kMayTell, [&] {
      return call(FletchingProducerGateDestroy, std::exchange(gate_, nullptr));
    });
  }

  // --- Details

  template <class Struct>
  static void release(Struct& alive) {
    if (alive.release != nullptr) alive.release(&alive);
  }

  ArrowDeviceType device_type() const { return array_type_; }

  SyncEvent event() {
    array_type_ = array_.device_type;
    return SyncEvent(array_);
  }
  vulkan::WaitContext context() const {
    return {handles_.device, handles_.queue, handles_.queue, handles_.set_stages,
            reinterpret_cast<decltype(vulkan::WaitContext::get_device_proc_addr)>(
                handles_.get_device_proc_addr)};
  }
  std::string wait_on(void* handle) {
    return text_of(is_vulkan() ? event().wait_on(context(), handle) : event().wait_on(handle));
  }
  std::string expect_ready(bool expected) {
    const Result<bool> ready = is_vulkan() ? event().ready(context()) : event().ready();
    if (!ready.ok()) return text_of(ready);
    return *ready == expected ? "" : "ready gave the other answer";
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
  ArrowSchema schema_{};
  ArrowDeviceArray array_{};
  ArrowDeviceArrayStream stream_{};
  ArrowDeviceArray batches_[2]{};
};

}  // namespace

bool Run::step(const char* name, Voice voice, const std::function<std::string()>& body) {
  if (!outcome_.failed_in.empty()) return false;
  clean_up(name, voice, body);
  return outcome_.failed_in.empty();
}

void Run::clean_up(const char* name, Voice voice, const std::function<std::string()>& body) {
  const std::string text = body();
  const bool has_fired = fires_at_ >= 0 && control_.calls(function_) >= fires_at_;
  if (has_fired && outcome_.fired_in.empty()) {
    outcome_.fired_in = name;
    outcome_.voice = voice;
  }
  if (text.empty() || !outcome_.failed_in.empty()) return;
  outcome_.failed_in = name;
  outcome_.text = text;
}

void play(Run& run, const std::string& backend) { Scene(run, backend).play(); }

std::string why_absent(const std::string& backend) {
  int32_t presence = FLETCHING_PRODUCER_ABSENT;
  FletchingMessage description{};
  const int code = FletchingProducerBackendPresence(backend.c_str(), &presence, &description);
  if (code == 0 && presence != FLETCHING_PRODUCER_ABSENT) return "";
  return text_of(code != 0 ? code : ENODEV, description);
}

}  // namespace fletching::faults

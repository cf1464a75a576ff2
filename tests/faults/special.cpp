// SPDX-License-Identifier: Apache-2.0
#include "special.hpp"

#include <cerrno>
#include <iostream>
#include <nlohmann/json.hpp>

#include "control.hpp"
#include "fletching/c_api.h"
#include "fletching/export_event.hpp"
#include "fletching/release_after.hpp"
#include "fletching/sync_event.hpp"
#include "gate.h"
#include "released_array.hpp"
#include "scenario.hpp"

namespace fletching::faults {
namespace {

using testing::ReleasedArray;

// The first problem, and the error message.
struct Verdict {
  std::string problem;
  std::string text;
};

ArrowDeviceType type_of(const std::string& backend) {
  for (const DeviceInfo& device : kDevices) {
    if (device.name == backend) return device.value;
  }
  return 0;
}

template <class T>
void expect_error(Verdict& verdict, const char* what, const Result<T>& result) {
  if (result.ok()) {
    verdict.problem = std::string(what) + ": expected an error, got success";
  } else {
    verdict.text = result.error().message();
  }
}

// Every operation must report the reason. An array is leaked if release_after cannot wait for it.
Verdict absent(const std::string& backend) {
  Verdict verdict;
  const ArrowDeviceType type = type_of(backend);
  alignas(64) static char none[64];
  void* handle = none;
  const SyncEvent event(type, 0, static_cast<void*>(&handle));
  FletchingProducerGate* gate = nullptr;
  FletchingMessage message{};
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (FletchingProducerGateCreate(backend.c_str(), &gate, &message) != ENODEV) {
      return {"GateCreate: expected ENODEV", message.text};
    }
    verdict.text = message.text;
    if (backend != "vulkan") {
      expect_error(verdict, "synchronize", event.synchronize());
      expect_error(verdict, "wait_on", event.wait_on({event.device_type(), none}));
      expect_error(verdict, "ready", event.ready());
      ReleasedArray made;
      DeviceArray array = made.make(type, 0);
      expect_error(verdict, "export_with_event", export_with_event(array, {type, none}));
      expect_error(verdict, "release_after", release_after(array, {type, none}));
      if (!array.is_released()) return {"release_after has not taken the array", verdict.text};
      if (made.parents.count() != 0) return {"the array was released early", verdict.text};
    }
  }
  return verdict;
}

// A function missing from the library fails the operation that needs it.
Verdict lacking(const std::string& backend) {
  Verdict verdict;
  alignas(64) static char none[64];
  void* handle = none;
  const SyncEvent event(type_of(backend), 0, static_cast<void*>(&handle));
  expect_error(verdict, "wait_on", event.wait_on({event.device_type(), none}));
  return verdict;
}

Verdict wrong_device(const std::string& backend) {
  if (const std::string why = why_absent(backend); !why.empty()) return {"absent", why};
  ArrowSchema schema{};
  ArrowDeviceArray array{};
  FletchingMessage message{};
  if (FletchingProducerExportArray(backend.c_str(), "int32", &schema, &array, &message) != 0) {
    return {"ExportArray failed", message.text};
  }
  Verdict verdict;
  for (const int64_t device : {int64_t{-1}, int64_t{99}, int64_t{1} << 40}) {
    const SyncEvent event(array.device_type, device, array.sync_event);
    const Status status = event.synchronize();
    verdict.text = status.ok() ? "the event itself knows its device" : status.error().message();
    // HIP's event identifies its device; CUDA finds a context by the device number.
    const bool needs_device = backend.starts_with("cuda");
    if (status.ok() == needs_device) {
      verdict.problem = "synchronize with device_id " + std::to_string(device) +
                        (status.ok() ? " succeeded" : " failed");
    }
  }
  array.array.release(&array.array);
  schema.release(&schema);
  return verdict;
}

// The device is lost between two batches of a stream.
Verdict lost_device(const std::string& backend) {
  constexpr int kLost = 719;
  const Control control(*vendor_of(backend).runtime);
  if (const std::string why = why_absent(backend); !why.empty()) return {"absent", why};
  FletchingMessage message{};
  FletchingProducerResetCounters();
  FletchingProducerGate* gate = nullptr;
  ArrowDeviceArrayStream stream{};
  ArrowDeviceArray batches[2]{};
  if (FletchingProducerGateCreate(backend.c_str(), &gate, &message) != 0 ||
      FletchingProducerExportStreamBehind(gate, "utf8", 5, -1, &stream, &message) != 0 ||
      stream.get_next(&stream, &batches[0]) != 0) {
    return {"the stream did not begin", message.text};
  }
  if (!control.lose_device(0, kLost)) return {"the device cannot be lost", ""};
  Verdict verdict;
  if (stream.get_next(&stream, &batches[1]) == 0)
    verdict.problem = "get_next: expected an error, got success";
  const char* text = stream.get_last_error(&stream);
  verdict.text = text != nullptr ? text : "";
  const std::string error = vendor_of(backend).error;
  if (verdict.text.find(error) == std::string::npos) {
    verdict.problem = "get_next does not name " + error;
  }
  const SyncEvent event(batches[0]);
  expect_error(verdict, "synchronize", event.synchronize());
  expect_error(verdict, "ready", event.ready());
  batches[0].array.release(&batches[0].array);
  stream.release(&stream);
  FletchingProducerGateDestroy(gate, &message);  // may report the lost device
  FletchingProducerCounters counters{};
  FletchingProducerReadCounters(&counters);
  if (counters.exported != counters.released || counters.double_released != 0) {
    verdict.problem = "not everything was released once";
  }
  if (counters.live_allocations != 0) verdict.problem = "the producer leaks";
  // The process continues on another device.
  ArrowSchema schema{};
  ArrowDeviceArray array{};
  if (FletchingProducerExportArray("cpu", "utf8", &schema, &array, &message) != 0) {
    verdict.problem = "cpu backend: does not work any more";
  } else {
    array.array.release(&array.array);
    schema.release(&schema);
  }
  return verdict;
}

}  // namespace

int special(const std::string& name, const std::string& backend) {
  Verdict verdict{"unknown test", ""};
  if (name == "absent") verdict = absent(backend);
  if (name == "lacking") verdict = lacking(backend);
  if (name == "wrong-device") verdict = wrong_device(backend);
  if (name == "lost-device") verdict = lost_device(backend);
  nlohmann::ordered_json line{{"backend", backend}, {"special", name}, {"text", verdict.text}};
  if (!verdict.problem.empty()) line["problem"] = verdict.problem;
  std::cout << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n'
            << std::flush;
  return verdict.problem.empty() ? 0 : 1;
}

}  // namespace fletching::faults

// SPDX-License-Identifier: Apache-2.0
//
// Checks that the tables describe the event of each device type: queries an event of the reference
// producer with the vendor's library as described by the tables, while it is pending and after it.
//
// The producer is always correct, whatever tables this program is built from. Prints one line per
// wrong device type: "cuda.event: pending by the runtime, failed by the tables". Exit codes: 0
// correct, 1 wrong.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fletching/tables.hpp"
#include "gate.h"
#include "runtimes/cuda.hpp"
#include "runtimes/hip.hpp"
#include "runtimes/opencl.hpp"
#include "runtimes/vulkan.hpp"
#include "vulkan_handles.h"

namespace {

using fletching::DeviceInfo;
using fletching::EventPointer;
using fletching::EventState;
using fletching::Runtime;

// The results of a query, and kNoEvent for device types without events.
enum class Answer { kNoEvent, kPending, kDone, kFailed };

const char* Name(Answer answer) {
  switch (answer) {
    case Answer::kNoEvent:
      return "no event";
    case Answer::kPending:
      return "pending";
    case Answer::kDone:
      return "done";
    case Answer::kFailed:
      break;
  }
  return "failed";
}

Answer ToAnswer(EventState state) {
  if (state == EventState::kDone) return Answer::kDone;
  return state == EventState::kPending ? Answer::kPending : Answer::kFailed;
}

template <class Handle>
Handle To(void* handle) {
  return static_cast<Handle>(handle);
}

Answer AskCuda(void* event) {
  namespace api = fletching::cuda;
  const auto functions = api::functions();
  if (!functions) return Answer::kFailed;
  return ToAnswer(api::event_state((*functions)->cu_event_query(To<api::CUevent>(event))));
}

Answer AskHip(void* event) {
  namespace api = fletching::hip;
  const auto functions = api::functions();
  if (!functions) return Answer::kFailed;
  return ToAnswer(api::event_state((*functions)->hip_event_query(To<api::hipEvent_t>(event))));
}

Answer AskOpenCl(void* event) {
  namespace api = fletching::opencl;
  const auto functions = api::functions();
  if (!functions) return Answer::kFailed;
  api::cl_int state = 0;
  const api::cl_int error =
      (*functions)
          ->cl_get_event_info(To<api::cl_event>(event), api::kClEventCommandExecutionStatus,
                              sizeof state, &state, nullptr);
  if (error != api::kClSuccess) return Answer::kFailed;
  return ToAnswer(api::event_state(state));
}

Answer AskVulkan(void* event) {
  namespace api = fletching::vulkan;
  const auto functions = api::functions();
  FletchingProducerVulkan handles{};
  if (!functions || FletchingProducerVulkanHandles(&handles, nullptr) != 0) return Answer::kFailed;
  return ToAnswer(
      api::event_state((*functions)
                           ->vk_get_event_status(To<api::VkDevice>(handles.device),
                                                 reinterpret_cast<api::VkEvent>(event))));
}

// Queries the event as described by the tables: the runtime, and how sync_event points to it.
Answer Ask(const DeviceInfo& device, void* sync_event) {
  if (device.event_pointer == EventPointer::kNone) return Answer::kNoEvent;
  void* const event = device.event_pointer == EventPointer::kAddressOfHandle
                          ? *static_cast<void**>(sync_event)
                          : sync_event;
  switch (device.runtime) {
    case Runtime::kCuda:
      return AskCuda(event);
    case Runtime::kHip:
      return AskHip(event);
    case Runtime::kOpencl:
      return AskOpenCl(event);
    case Runtime::kVulkan:
      return AskVulkan(event);
    default:
      return Answer::kFailed;
  }
}

bool Expect(const DeviceInfo& device, Answer runtime, Answer tables) {
  if (runtime == tables) return true;
  std::printf("%s.event: %s by the runtime, %s by the tables\n", std::string(device.name).c_str(),
              Name(runtime), Name(tables));
  return false;
}

int Fail(const DeviceInfo& device, const FletchingMessage& message) {
  std::printf("%s: %s\n", std::string(device.name).c_str(), message.text);
  return 1;
}

// Returns 0, or 1 on an error.
int Check(const DeviceInfo& device) {
  const std::string name(device.name);
  FletchingMessage message{};
  FletchingProducerGate* gate = nullptr;
  if (FletchingProducerGateCreate(name.c_str(), &gate, &message) != 0) return Fail(device, message);
  ArrowSchema schema;
  ArrowDeviceArray array;
  if (FletchingProducerExportArrayBehind(gate, "int32", &schema, &array, &message) != 0) {
    return Fail(device, message);
  }
  bool right = Expect(device, Answer::kPending, Ask(device, array.sync_event));
  if (FletchingProducerGateDestroy(gate, &message) != 0) return Fail(device, message);
  right = Expect(device, Answer::kDone, Ask(device, array.sync_event)) && right;
  array.array.release(&array.array);
  schema.release(&schema);
  return right ? 0 : 1;
}

// Runs in a separate process: a wrong handle may crash a vendor's library.
bool CheckApart(const DeviceInfo& device) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    const int result = Check(device);
    std::fflush(stdout);
    _exit(result);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return false;
  if (WIFSIGNALED(status)) {
    std::printf("%s.event: pending or done by the runtime, signal %d by the tables\n",
                std::string(device.name).c_str(), WTERMSIG(status));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Device types with events of the four runtimes, listed here because the tables may be wrong.
constexpr ArrowDeviceType kChecked[] = {
    ARROW_DEVICE_CUDA,      ARROW_DEVICE_CUDA_HOST, ARROW_DEVICE_CUDA_MANAGED, ARROW_DEVICE_ROCM,
    ARROW_DEVICE_ROCM_HOST, ARROW_DEVICE_OPENCL,    ARROW_DEVICE_VULKAN};

}  // namespace

int main() {
  bool right = true;
  for (const ArrowDeviceType type : kChecked) {
    const DeviceInfo* device = fletching::find_device(type);
    right = device != nullptr && CheckApart(*device) && right;
  }
  return right ? 0 : 1;
}

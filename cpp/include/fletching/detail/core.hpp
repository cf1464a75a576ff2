// SPDX-License-Identifier: Apache-2.0
//
// Adapters for the event functions of the C core: errors and streams.
#ifndef FLETCHING_DETAIL_CORE_HPP
#define FLETCHING_DETAIL_CORE_HPP

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "fletching/capture.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/device_type.hpp"
#include "fletching/events.h"
#include "fletching/message.h"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// Puts the name of a public function in front of the error's text.
inline Error named_error(const char* operation, const Error& error) {
  return {error.code(), std::string(operation) + ": " + error.message()};
}

/// Runs `body`, and prefixes its error message with the name of the public function.
template <class Body>
std::invoke_result_t<Body> in_operation(const char* operation, Body&& body) noexcept {
  return guarded([&]() -> std::invoke_result_t<Body> {
    std::invoke_result_t<Body> result = std::forward<Body>(body)();
    if (!result.ok()) return named_error(operation, result.error());
    return result;
  });
}

/// Calls the core, `function(arguments..., &message)`, and returns a Status without the
/// operation in its message. May throw.
template <class Function, class... Arguments>
Status in_core(Function function, Arguments... arguments) {
  FletchingMessage message;
  const int code = function(arguments..., &message);
  if (code == 0) return {};
  return Error{code, message.text};
}

/// Converts a stream for data on this device. The core accepts a stream without a runtime only if
/// it has the data's device type.
constexpr FletchingStream core_stream(const Stream& stream, DeviceType type,
                                      std::int64_t device_id) noexcept {
  constexpr std::int32_t kNoRuntime = -1;
  const auto runtime = static_cast<std::int32_t>(stream.device_type().runtime());
  const bool is_unknown = runtime == FLETCHING_RUNTIME_NONE && stream.device_type() != type;
  // The device id of host memory does not identify a GPU: use the current device.
  const bool is_of_device = stream.device_type().runtime() == type.runtime();
  const std::int64_t device =
      stream.device_id() < 0 && is_of_device ? device_id : stream.device_id();
  return {stream.handle(), device, nullptr, is_unknown ? kNoRuntime : runtime};
}
static_assert(static_cast<int>(Runtime::kCuda) == FLETCHING_RUNTIME_CUDA &&
                  static_cast<int>(Runtime::kMetal) == FLETCHING_RUNTIME_METAL,
              "the core numbers the runtimes as fletching/tables.hpp does");

constexpr int core_capture(OnCapture on_capture) noexcept { return static_cast<int>(on_capture); }
static_assert(core_capture(OnCapture::kRefuse) == FLETCHING_CAPTURE_REFUSE &&
                  core_capture(OnCapture::kExternalEvent) == FLETCHING_CAPTURE_EXTERNAL_EVENT &&
                  core_capture(OnCapture::kKeep) == FLETCHING_CAPTURE_KEEP,
              "the core numbers the choices as OnCapture does");

/// Adds a hint to the error of a captured stream, EBUSY. Returns other errors unchanged.
inline Error with_capture_hint(const Error& error, const char* hint) {
  if (error.code() != EBUSY) return error;
  return {EBUSY, error.message() + "; hint: " + hint};
}

/// Whether the device type's runtime can record an event on a stream.
constexpr bool has_records(DeviceType type) noexcept {
  const Runtime runtime = type.runtime();
  return runtime == Runtime::kCuda || runtime == Runtime::kHip || runtime == Runtime::kOpencl;
}

/// Returns EINVAL if the stream's runtime differs from the data's.
inline Status check_runtime(const Stream& stream, DeviceType data) {
  const DeviceType own = stream.device_type();
  const bool has_runtime = own.runtime() != Runtime::kNone;
  if (own.runtime() == data.runtime() && (has_runtime || own == data)) return {};
  return Error{EINVAL, "stream of another runtime: expected one of " + data.name() +
                           ", got one of " + own.name()};
}

/// Adds the device type to the core's reason why a stream cannot be recorded.
inline Error no_records(DeviceType type, const Error& reason) {
  return {ENOTSUP, "device type " + type.name() + ": " + reason.message()};
}

struct DestroyRecorded {
  void operator()(FletchingRecordedEvent* recorded) const noexcept {
    FletchingRecordedEventDestroy(recorded);
  }
};

/// Owner of a recorded event.
using RecordedEvent = std::unique_ptr<FletchingRecordedEvent, DestroyRecorded>;

/// Records an event that completes when all work on the stream so far is done. May throw.
inline Result<RecordedEvent> record_event(const FletchingStream& stream, int on_capture) {
  FletchingRecordedEvent* recorded = nullptr;
  Status status = in_core(&FletchingStreamRecord, stream, on_capture, &recorded);
  if (!status) return std::move(status).error();
  return RecordedEvent(recorded);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_CORE_HPP

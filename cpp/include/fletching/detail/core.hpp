// SPDX-License-Identifier: Apache-2.0
//
// The C core beneath the operations on events: its errors and streams as ours.
#ifndef FLETCHING_DETAIL_CORE_HPP
#define FLETCHING_DETAIL_CORE_HPP

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "fletching/capture.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/device_type.hpp"
#include "fletching/events.h"
#include "fletching/message.h"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// A call of the core, `function(arguments..., &message)`, as a Status. May throw.
template <class Function, class... Arguments>
Status in_core(Function function, Arguments... arguments) {
  FletchingMessage message;
  const int code = function(arguments..., &message);
  if (code == 0) return {};
  return Error{code, message.text};
}

/// A stream for data on this device. A stream without a runtime is for its own device type only:
/// with any other the core refuses it.
constexpr FletchingStream core_stream(const Stream& stream, DeviceType type,
                                      std::int64_t device_id) noexcept {
  constexpr std::int32_t kNoRuntime = -1;
  const auto runtime = static_cast<std::int32_t>(stream.device_type().runtime());
  const bool is_unknown = runtime == FLETCHING_RUNTIME_NONE && stream.device_type() != type;
  // The id of host memory says nothing about a GPU: then the current device counts.
  const bool is_of_device = stream.device_type().runtime() == type.runtime();
  const std::int64_t device =
      stream.device_id() < 0 && is_of_device ? device_id : stream.device_id();
  return {stream.handle(), device, nullptr, is_unknown ? kNoRuntime : runtime};
}
static_assert(static_cast<int>(Runtime::kCuda) == FLETCHING_RUNTIME_CUDA &&
                  static_cast<int>(Runtime::kMetal) == FLETCHING_RUNTIME_METAL,
              "the core numbers the runtimes as fletching/tables.hpp does");

constexpr int core_capture(OnCapture on_capture) noexcept {
  return on_capture == OnCapture::kExternalEvent ? FLETCHING_CAPTURE_EXTERNAL_EVENT
                                                 : FLETCHING_CAPTURE_REFUSE;
}

/// An error of a captured stream with what to do; another one as it was.
inline Error with_capture_hint(const char* operation, const Error& error, const char* hint) {
  if (error.code() != EBUSY) return error;
  return {EBUSY, std::string(operation) + ": " + error.message() + "; hint: " + hint};
}

/// Whether streams of the device type's runtime can be recorded.
constexpr bool has_records(DeviceType type) noexcept {
  const Runtime runtime = type.runtime();
  return runtime == Runtime::kCuda || runtime == Runtime::kHip || runtime == Runtime::kOpencl;
}

/// Refuses a stream of another runtime than the data's.
inline Status check_runtime(const char* operation, const Stream& stream, DeviceType data) {
  const DeviceType own = stream.device_type();
  const bool has_runtime = own.runtime() != Runtime::kNone;
  if (own.runtime() == data.runtime() && (has_runtime || own == data)) return {};
  return Error{EINVAL, std::string(operation) + ": stream of another runtime: expected one of " +
                           data.name() + ", got one of " + own.name()};
}

/// The core's reason why a stream cannot be recorded, for an operation.
inline Error no_records(const char* operation, DeviceType type, const Error& reason) {
  return {ENOTSUP, std::string(operation) + " on " + type.name() + ": " + reason.message()};
}

struct DestroyRecorded {
  void operator()(FletchingRecordedEvent* recorded) const noexcept {
    FletchingRecordedEventDestroy(recorded);
  }
};

/// The owner of an event that we have recorded.
using RecordedEvent = std::unique_ptr<FletchingRecordedEvent, DestroyRecorded>;

/// An event that happens when all is done that is on the stream now. May throw.
inline Result<RecordedEvent> record_event(const FletchingStream& stream, int on_capture) {
  FletchingRecordedEvent* recorded = nullptr;
  Status status = in_core(&FletchingStreamRecord, stream, on_capture, &recorded);
  if (!status) return std::move(status).error();
  return RecordedEvent(recorded);
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_CORE_HPP

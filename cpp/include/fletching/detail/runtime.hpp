// SPDX-License-Identifier: Apache-2.0
//
// What the row of a runtime consists of: see runtimes.hpp.
#ifndef FLETCHING_DETAIL_RUNTIME_HPP
#define FLETCHING_DETAIL_RUNTIME_HPP

#include <cstdint>

#include "fletching/capture.hpp"
#include "fletching/detail/event_handle.hpp"
#include "fletching/detail/vendor.hpp"
#include "fletching/result.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail {

/// How to wait on an event. All three are NULL for a runtime whose events need a registered waiter.
struct WaitFunctions {
  Status (*synchronize)(const EventReference& event) = nullptr;
  Status (*wait_on)(const EventReference& event, void* stream, OnCapture on_capture) = nullptr;
  Result<bool> (*ready)(const EventReference& event) = nullptr;
};

template <class Events>
inline constexpr WaitFunctions kWaitFunctions{&Events::synchronize, &Events::wait_on,
                                              &Events::ready};

/// What the producers' operations need. All four are NULL for a runtime without these operations.
struct RecordFunctions {
  Result<RecordedEvent> (*record)(void* stream, int64_t device_id, OnCapture on_capture) = nullptr;
  Result<bool> (*has_passed)(const RecordedEvent&) = nullptr;
  Status (*destroy)(const RecordedEvent&) = nullptr;
  void (*run_relaxed)(CFunction<void(void*)> body, void* data) = nullptr;
};

template <class Events>
inline constexpr RecordFunctions kRecordFunctions{&Events::record, &Events::has_passed,
                                                  &Events::destroy, &Events::run_relaxed};

/// What a row may leave out. A row has in addition `kId`, its value of the enum Runtime, and
/// `kTitle`, its name in a report.
struct RuntimeRow {
  static constexpr WaitFunctions kWaits{};
  /// What to do instead of a wait, where that is more than to register a waiter; or nullptr.
  static constexpr const char* kInsteadOfWait = nullptr;

  static constexpr RecordFunctions kRecords{};
  /// Why there are none.
  static constexpr const char* kNoRecords = "";
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE::detail

#endif  // FLETCHING_DETAIL_RUNTIME_HPP

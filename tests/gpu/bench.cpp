// SPDX-License-Identifier: Apache-2.0
//
// fletching_gpu_bench: the host time for handing over an array with an event, compared with the
// same driver calls written by hand. Reports the median of several interleaved measurements. On the
// stand-in, which counts calls, the driver calls must be identical.
//
// fletching_gpu_bench CASE ROUNDS: a program of `make bench`, which counts instructions.
//
//     fact <tab> name <tab> text
//     bench <tab> case <tab> who <tab> nanoseconds of one handoff
//     check <tab> name <tab> ok, absent or FAILED <tab> number of comparisons <tab> reason
//
// Exit codes: 0, 1 a call or the check failed, 2 no device or no such case.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "asserter.hpp"
#include "facts.hpp"
#include "standin.h"

namespace fletching::gpu {
namespace {

constexpr int kTakes = 15;
constexpr int kHandoffs = 4000;
constexpr int kBatch = 100;  // handoffs between waits for both streams, which are not measured

void require(const Status& status) {
  if (!status) fail(status.error().code(), status.error().message());
}

struct HandoffStreams {
  Stream producer;
  Stream consumer;
};

/// Moves and releases an array without an event: the cost without events.
void array_alone(const HandoffStreams& /*streams*/, const DeviceMemory& memory) {
  DeviceArray made = make_array(memory.data(), kBytes, 0);
  DeviceArray taken = std::move(made);
  taken.release();
}

void library(const HandoffStreams& streams, const DeviceMemory& memory) {
  DeviceArray made = make_array(memory.data(), kBytes, 0);
  require(export_with_event(made, {ARROW_DEVICE_CUDA, streams.producer.get()}));
  DeviceArray taken = std::move(made);
  require(SyncEvent(taken).wait_on({ARROW_DEVICE_CUDA, streams.consumer.get()}));
  taken.release();
}

/// Exchanges the mode, so that other threads' captures are not disturbed, or restores it.
void exchange_by_hand(cuda::CUstreamCaptureMode* mode) {
  require_call("cuThreadExchangeStreamCaptureMode",
               cu().cu_thread_exchange_stream_capture_mode(mode));
}

/// Queries the number of the current context.
void number_by_hand(cuda::CUcontext context) {
  std::uint64_t id = 0;
  require_call("cuCtxGetId", cu().cu_ctx_get_id(context, &id));
}

/// The library's queries before a call on a stream: whether its context is current, and whether it
/// is captured.
cuda::CUcontext enter_by_hand(void* stream) {
  cuda::CUcontext of_stream = nullptr;
  require_call("cuStreamGetCtx",
               cu().cu_stream_get_ctx(static_cast<cuda::CUstream>(stream), &of_stream));
  if (current_context() != of_stream) fail(EINVAL, "another context is current");
  cuda::CUstreamCaptureStatus captured = cuda::kCuStreamCaptureStatusNone;
  require_call("cuStreamIsCapturing",
               cu().cu_stream_is_capturing(static_cast<cuda::CUstream>(stream), &captured));
  if (captured != cuda::kCuStreamCaptureStatusNone) fail(EBUSY, "the stream is captured");
  return of_stream;
}

/// Exactly the driver calls of the library's operations.
void same_by_hand(const HandoffStreams& streams, const DeviceMemory& memory) {
  DeviceArray made = make_array(memory.data(), kBytes, 0);
  cuda::CUevent event = nullptr;
  cuda::CUstreamCaptureMode mode = cuda::kCuStreamCaptureModeRelaxed;
  exchange_by_hand(&mode);
  number_by_hand(enter_by_hand(streams.producer.get()));
  require_call("cuEventCreate", cu().cu_event_create(&event, cuda::kCuEventDisableTiming |
                                                                 cuda::kCuEventBlockingSync));
  require_call("cuEventRecord",
               cu().cu_event_record(event, static_cast<cuda::CUstream>(streams.producer.get())));
  exchange_by_hand(&mode);
  DeviceArray taken = std::move(made);
  enter_by_hand(streams.consumer.get());
  require_call("cuStreamWaitEvent",
               cu().cu_stream_wait_event(static_cast<cuda::CUstream>(streams.consumer.get()), event,
                                         cuda::kCuEventWaitDefault));
  taken.release();
  exchange_by_hand(&mode);
  number_by_hand(nullptr);
  require_call("cuEventDestroy", cu().cu_event_destroy(event));
  exchange_by_hand(&mode);
}

/// The minimum of driver calls for a producer and a consumer that both know that the context is
/// current.
void least_by_hand(const HandoffStreams& streams, const DeviceMemory& memory) {
  DeviceArray made = make_array(memory.data(), kBytes, 0);
  cuda::CUevent event = nullptr;
  require_call("cuEventCreate", cu().cu_event_create(&event, cuda::kCuEventDisableTiming));
  require_call("cuEventRecord",
               cu().cu_event_record(event, static_cast<cuda::CUstream>(streams.producer.get())));
  DeviceArray taken = std::move(made);
  require_call("cuStreamWaitEvent",
               cu().cu_stream_wait_event(static_cast<cuda::CUstream>(streams.consumer.get()), event,
                                         cuda::kCuEventWaitDefault));
  taken.release();
  require_call("cuEventDestroy", cu().cu_event_destroy(event));
}

using Handoff = void (*)(const HandoffStreams&, const DeviceMemory&);

double nanoseconds(Handoff handoff, const HandoffStreams& streams, const DeviceMemory& memory) {
  using Clock = std::chrono::steady_clock;
  Clock::duration spent{};
  for (int done = 0; done < kHandoffs; done += kBatch) {
    const auto start = Clock::now();
    for (int i = 0; i < kBatch; ++i) handoff(streams, memory);
    spent += Clock::now() - start;
    streams.producer.synchronize();
    streams.consumer.synchronize();
  }
  return std::chrono::duration<double, std::nano>(spent).count() / kHandoffs;
}

void measure() {
  const Current current;
  const DeviceMemory memory(kBytes);
  const HandoffStreams streams;
  struct Variant {
    const char* who;
    Handoff handoff;
    // NOLINTNEXTLINE(readability-redundant-member-init): -Wmissing-field-initializers
    std::vector<double> takes = {};
  };
  Variant variants[] = {{"Fletching", library},
                        {"the same driver calls, hand-written", same_by_hand},
                        {"four driver calls, hand-written", least_by_hand},
                        {"without an event", array_alone}};
  for (int take = 0; take < kTakes; ++take) {
    for (Variant& variant : variants) {
      variant.takes.push_back(nanoseconds(variant.handoff, streams, memory));
    }
  }
  for (Variant& variant : variants) {
    const auto middle = variant.takes.begin() + kTakes / 2;
    std::ranges::nth_element(variant.takes, middle);
    std::printf("bench\thandoff with an event\t%s\t%.1f\n", variant.who, *middle);
  }
}

// --- Driver calls

using CountCalls = decltype(&FletchingStandinCalls);

/// Number of calls of each driver function in kBatch handoffs, in the order of the table.
std::vector<std::int64_t> calls_in(Handoff handoff, CountCalls count) {
  const Current current;
  const DeviceMemory memory(kBytes);
  const HandoffStreams streams;
  handoff(streams, memory);  // the first one in a context also identifies the context
  std::vector<std::int64_t> calls;
  calls.reserve(std::size(cuda::kFunctions));
  for (const VendorFunction& function : cuda::kFunctions) calls.push_back(-count(function.name));
  for (int i = 0; i < kBatch; ++i) handoff(streams, memory);
  for (std::size_t i = 0; i < calls.size(); ++i) calls[i] += count(cuda::kFunctions[i].name);
  return calls;
}

/// Checks that the library makes exactly the calls written by hand. Lists them in `made`.
void compare_calls(Asserter& asserter, std::string& made) {
  const auto driver = find_library(cuda::kRuntime);
  asserter.require_success("the library", driver);
  const auto count =
      reinterpret_cast<CountCalls>(find_symbol(driver->handle, "FletchingStandinCalls"));
  if (count == nullptr) fail(ENODEV, "only the stand-in counts the calls of a driver");
  const std::vector<std::int64_t> ours = calls_in(library, count);
  const std::vector<std::int64_t> by_hand = calls_in(same_by_hand, count);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const std::string name = cuda::kFunctions[i].name;
    asserter.require_equal("calls of " + name + " in " + std::to_string(kBatch) + " handoffs",
                           ours[i], by_hand[i]);
    if (ours[i] == 0) continue;
    asserter.require_equal("what is left of the calls of " + name, ours[i] % kBatch, 0);
    made += (made.empty() ? "each: " : ", ") + name + " " + std::to_string(ours[i] / kBatch);
  }
  asserter.require(!made.empty(), "no driver call was counted");
}

bool check_calls() {
  Asserter asserter;
  std::string reason;
  std::string made;
  const int code = guarded(reason, [&] { compare_calls(asserter, made); });
  std::printf("check\tdriver calls of a handoff\t%s\t%lld\t%s\n",
              code == 0        ? "ok"
              : code == ENODEV ? "absent"
                               : "FAILED",
              static_cast<long long>(asserter.count()),
              printable(code == 0 ? made : reason).c_str());
  return code == 0 || code == ENODEV;
}

// --- One case, for `make bench`

using Round = std::function<void()>;

/// Without memory, because valgrind has no room for the stand-in's device memory.
DeviceArray empty_array() { return make_array(nullptr, 0, 0); }

/// An array whose event has passed, as most have when their consumer waits.
std::shared_ptr<DeviceArray> with_event(const HandoffStreams& streams) {
  auto array = std::make_shared<DeviceArray>(empty_array());
  require(export_with_event(*array, {ARROW_DEVICE_CUDA, streams.producer.get()}));
  streams.producer.synchronize();
  return array;
}

Round wait(const HandoffStreams& streams) {
  return [&streams, array = with_event(streams)] {
    require(SyncEvent(*array).wait_on({ARROW_DEVICE_CUDA, streams.consumer.get()}));
  };
}

Round wait_by_hand(const HandoffStreams& streams) {
  return [&streams, array = with_event(streams)] {
    auto* const event = *static_cast<cuda::CUevent*>((*array)->sync_event);
    enter_by_hand(streams.consumer.get());
    require_call("cuStreamWaitEvent",
                 cu().cu_stream_wait_event(static_cast<cuda::CUstream>(streams.consumer.get()),
                                           event, cuda::kCuEventWaitDefault));
  };
}

Round deferred(const HandoffStreams& streams) {
  return [&] {
    DeviceArray array = empty_array();
    require(release_after(array, {ARROW_DEVICE_CUDA, streams.consumer.get()}));
  };
}

/// Releases the arrays whose event has passed in later rounds, on the same thread.
class DeferredByHand {
 public:
  explicit DeferredByHand(const HandoffStreams& streams) : streams_(streams) {}

  void operator()() {
    cuda::CUevent event = nullptr;
    require_call("cuEventCreate", cu().cu_event_create(&event, cuda::kCuEventDisableTiming));
    require_call("cuEventRecord",
                 cu().cu_event_record(event, static_cast<cuda::CUstream>(streams_.consumer.get())));
    pending_.emplace_back(event, empty_array());
    while (!pending_.empty() && cu().cu_event_query(pending_.front().first) == 0) {
      require_call("cuEventDestroy", cu().cu_event_destroy(pending_.front().first));
      pending_.pop_front();
    }
  }

 private:
  const HandoffStreams& streams_;
  std::deque<std::pair<cuda::CUevent, DeviceArray>> pending_;
};

Round deferred_by_hand(const HandoffStreams& streams) {
  return [defer = std::make_shared<DeferredByHand>(streams)] { (*defer)(); };
}

struct Case {
  const char* name;
  Round (*make)(const HandoffStreams& streams);
};

constexpr Case kCases[] = {{"wait", wait},
                           {"wait_by_hand", wait_by_hand},
                           {"release_after", deferred},
                           {"release_after_by_hand", deferred_by_hand}};

void finish_releases() {
  while (true) {
    const Result<PendingReleases> left = pending_releases();
    if (!left) fail(left.error().code(), left.error().message());
    if (left->pending + left->running == 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

/// The instructions that `make bench` counts, on this thread.
[[gnu::noinline]] void take_rounds(const Round& round, int rounds) {
  for (int i = 0; i < rounds; ++i) round();
}

/// A stand-in searches its live events, so few may be pending.
void run_rounds(const HandoffStreams& streams, const Round& round, int rounds) {
  constexpr int kPending = 10;
  for (int done = 0; done < rounds; done += kPending) {
    take_rounds(round, std::min(kPending, rounds - done));
    streams.consumer.synchronize();
    finish_releases();
  }
}

void measure_case(const Case& one, int rounds) {
  const Current current;
  const HandoffStreams streams;
  run_rounds(streams, one.make(streams), rounds);
}

int run_case(const char* name, int rounds) {
  for (const Case& one : kCases) {
    if (rounds <= 0 || std::strcmp(one.name, name) != 0) continue;
    std::string reason;
    if (guarded(reason, [&] { measure_case(one, rounds); }) == 0) return 0;
    std::fprintf(stderr, "fletching_gpu_bench: %s\n", reason.c_str());
    return 1;
  }
  std::fputs("usage: fletching_gpu_bench [CASE ROUNDS]; the cases are", stderr);
  for (const Case& one : kCases) std::fprintf(stderr, " %s", one.name);
  std::fputs("\n", stderr);
  return 2;
}

int run() {
  std::string reason;
  if (guarded(reason, print_device) != 0) {
    std::fprintf(stderr, "fletching_gpu_bench: %s\n", reason.c_str());
    return 2;
  }
  if (guarded(reason, measure) != 0) {
    std::fprintf(stderr, "fletching_gpu_bench: %s\n", reason.c_str());
    return 1;
  }
  return check_calls() ? 0 : 1;
}

}  // namespace
}  // namespace fletching::gpu

int main(int argc, char** argv) {
  if (argc == 1) return fletching::gpu::run();
  return fletching::gpu::run_case(argv[1], argc == 3 ? std::atoi(argv[2]) : 0);
}

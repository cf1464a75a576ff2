// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "arrays.hpp"
#include "checks.hpp"
#include "standin.h"

namespace fletching::gpu {
namespace {

constexpr int kRounds = 100;

void require_ready(Asserter& asserter, const DeviceArray& array, bool expected) {
  settle();
  const Result<bool> ready = SyncEvent(array).ready();
  asserter.require_success("ready", ready);
  asserter.require(*ready == expected, expected ? "ready() is false, and the gate is open"
                                                : "ready() is true, and the gate is shut");
}

/// Owner of an array in check_handoffs: frees the memory, then counts the release.
struct HandoffOwner {
  Counted counted;
  DeviceMemory memory;
};

/// Streams of both sides for handoffs, created once.
struct HandoffStreams {
  Stream producer;
  Stream consumer;
  PinnedMemory seen{kBytes};
};

/// The producer fills newly allocated memory and hands it over. The consumer reads it behind the
/// event, and releases it behind its read, or after a wait for the read.
void hand_over(Asserter& asserter, const HandoffStreams& streams, Releases& releases,
               bool deferred) {
  DeviceMemory memory(kBytes);
  const void* data = memory.data();
  const cuda::CUdeviceptr address = memory.address();
  streams.producer.fill(memory, kNew);
  DeviceArray array = make_array(data, kBytes, HandoffOwner{Counted(&releases), std::move(memory)});
  asserter.require_success("export_with_event",
                           export_with_event(array, {ARROW_DEVICE_CUDA, streams.producer.get()}));
  auto* stream = static_cast<cuda::CUstream>(streams.consumer.get());
  asserter.require_success("wait_on", SyncEvent(array).wait_on({ARROW_DEVICE_CUDA, stream}));
  require_call("cuMemcpyDtoHAsync",
               cu().cu_memcpy_dtoh_async(streams.seen.get(), address, kBytes, stream));
  if (deferred) {
    asserter.require_success("release_after", release_after(array, {ARROW_DEVICE_CUDA, stream}));
    return;
  }
  streams.consumer.synchronize();
  asserter.require(streams.seen.holds(kNew), "what was handed over is not what was written");
  array.release();
}

void hand_over(Asserter& asserter, const HandoffStreams& streams, std::int64_t count) {
  Releases releases;
  for (std::int64_t i = 0; i < count; ++i) hand_over(asserter, streams, releases, i % 2 == 0);
  asserter.require(releases.wait_for(static_cast<int>(count)), "not every array was released");
  asserter.require_equal("the number of releases", releases.count(), count);
}

std::int64_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  require_call("cuMemGetInfo", cu().cu_mem_get_info(&free, &total));
  return static_cast<std::int64_t>(free);
}

/// The live objects of a stand-in; zeros for a real driver.
FletchingStandinCounts alive() {
  FletchingStandinCounts counts{};
  const auto leaks = standin_function<decltype(&FletchingStandinLeaks)>("FletchingStandinLeaks");
  if (leaks != nullptr) leaks(&counts);
  return counts;
}

/// A deferred release destroys its event last, on another thread. Returns false after a minute.
bool comes_to(const FletchingStandinCounts& wanted) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (true) {
    const FletchingStandinCounts now = alive();
    if (std::memcmp(&now, &wanted, sizeof now) == 0) return true;
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
}

/// Runs `work` on another thread and rethrows its exception on this one.
template <class Work>
class Thread {
 public:
  explicit Thread(Work work) : thread_([this, work] { code_ = guarded(text_, work); }) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() {
    if (thread_.joinable()) thread_.join();
  }
  void join() {
    thread_.join();
    if (code_ != 0) fail(code_, text_);
  }

 private:
  std::string text_;
  int code_ = 0;
  std::thread thread_;
};

}  // namespace

void check_hang(Asserter& /*asserter*/) {
  const Gated gated;
  gated.producer().synchronize();
}

void check_symbols(Asserter& asserter) {
  const auto library = find_library(cuda::kRuntime);
  asserter.require_success("the library", library);
  std::string missing;
  for (const VendorFunction& function : cuda::kFunctions) {
    for (const char* symbol : {function.symbol, function.per_thread}) {
      if (symbol == nullptr) continue;
      asserter.add("a symbol", 1);
      if (find_symbol(library->handle, symbol) == nullptr) {
        missing += (missing.empty() ? "" : ", ") + std::string(symbol);
      }
    }
  }
  asserter.require(missing.empty(), std::string(library->name) + " has no " + missing);
}

void check_sync_event(Asserter& asserter) {
  Gated gated;
  const DeviceArray array = gated.array_with_event(asserter);
  const void* const before = current_context();
  require_ready(asserter, array, false);
  asserter.require_success("wait_on",
                           SyncEvent(array).wait_on({ARROW_DEVICE_CUDA, gated.consumer().get()}));
  gated.require_old_data(asserter);
  gated.require_waits(asserter, gated.consumer());
  asserter.require_success("synchronize", SyncEvent(array).synchronize());
  require_ready(asserter, array, true);
  asserter.require(current_context() == before, "another context is current than before");
}

// Arrays in the same memory one after another: the new values of a round are the old ones of the
// next.
void check_race(Asserter& asserter) {
  const Current current;
  const DeviceMemory memory(kBytes);
  const PinnedMemory early(kBytes);
  const PinnedMemory late(kBytes);
  Releases releases;
  const Stream producer;
  const Stream careless;
  const Stream careful;
  Gate gate;
  producer.fill(memory, 0);
  producer.synchronize();
  for (int round = 1; round <= kRounds; ++round) {
    const auto written = static_cast<std::uint8_t>(round);
    gate.shut(producer);
    producer.fill(memory, written);
    DeviceArray array = make_array(memory.data(), kBytes, Counted(&releases));
    asserter.require_success("export_with_event",
                             export_with_event(array, {ARROW_DEVICE_CUDA, producer.get()}));
    asserter.require_success("wait_on",
                             SyncEvent(array).wait_on({ARROW_DEVICE_CUDA, careful.get()}));
    careful.read(late, memory);
    careless.read(early, memory);
    careless.synchronize();
    asserter.require(early.holds(static_cast<std::uint8_t>(round - 1)),
                     "the stream that has not waited does not see the old data");
    settle();
    asserter.require(!careful.is_idle(), "the stream that waits is done, and the gate is shut");
    gate.open();
    careful.synchronize();
    asserter.require(late.holds(written), "the stream that has waited does not see the new data");
    asserter.add("both reads", 2 * static_cast<std::int64_t>(kBytes));
    array.release();
  }
  asserter.require_equal("the number of releases", releases.count(), kRounds);
}

void check_release_after(Asserter& asserter) {
  Gated gated;
  DeviceArray array = gated.array();
  asserter.require_success("release_after",
                           release_after(array, {ARROW_DEVICE_CUDA, gated.producer().get()}));
  asserter.require(array.is_released(), "the array is not released for its caller");
  settle();
  // A second array, with no work to wait for, is released first, so the reaper has checked both.
  Releases idle;
  DeviceArray second = make_array(gated.memory().data(), kBytes, Counted(&idle));
  asserter.require_success("release_after",
                           release_after(second, {ARROW_DEVICE_CUDA, gated.consumer().get()}));
  asserter.require(idle.wait_for(1), "an array with nothing to wait for was not released");
  gated.require_old_data(asserter);
  asserter.require_equal("releases behind the shut gate", gated.releases().count(), 0);
  gated.open();
  asserter.require(gated.releases().wait_for(1), "the array was not released");
  asserter.require_equal("releases", gated.releases().count(), 1);
  asserter.require(gated.releases().last_thread() != std::this_thread::get_id(),
                   "the caller's thread has released the array");
}

// The first rounds make the driver allocate memory that it keeps. The stand-in counts exactly.
void check_handoffs(Asserter& asserter, std::int64_t count) {
  const Current current;
  const HandoffStreams streams;
  const FletchingStandinCounts before = alive();
  hand_over(asserter, streams, kRounds);
  asserter.require(comes_to(before), "the stand-in counts more things alive than before");
  const std::int64_t free_before = free_memory();
  hand_over(asserter, streams, count);
  asserter.require(comes_to(before), "the stand-in counts more things alive than before");
  // A driver's pools may grow in the meantime, but by less than a leak in each handoff would need.
  const std::int64_t missing = free_before - free_memory();
  const std::int64_t leak = count * static_cast<std::int64_t>(kBytes);
  asserter.require(missing < leak, "cuMemGetInfo has " + std::to_string(missing) +
                                       " bytes less than before, expected less than " +
                                       std::to_string(leak));
}

void check_thread_without_context(Asserter& asserter) {
  Gated gated;
  DeviceArray array = gated.array_with_event(asserter);
  const void* const before = current_context();
  Thread thread([&] {
    asserter.require(current_context() == nullptr, "a new thread has a context");
    require_ready(asserter, array, false);
    asserter.require_success("wait_on",
                             SyncEvent(array).wait_on({ARROW_DEVICE_CUDA, gated.consumer().get()}));
    asserter.require(current_context() == nullptr, "wait_on has left a context behind");
    gated.open();
    asserter.require_success("synchronize", SyncEvent(array).synchronize());
    require_ready(asserter, array, true);
    asserter.require_success("release_after",
                             release_after(array, {ARROW_DEVICE_CUDA, gated.consumer().get()}));
    asserter.require(current_context() == nullptr, "an operation has left a context behind");
  });
  thread.join();
  asserter.require(gated.releases().wait_for(1), "the array was not released");
  asserter.require(current_context() == before, "another context is current than before");
}

void check_two_threads(Asserter& asserter) {
  const Current current;
  const void* const before = current_context();
  std::array<Asserter, 2> asserters;
  const auto work = [](Asserter& own) {
    return [&own] {
      const Current there;
      const void* const mine = current_context();
      const HandoffStreams streams;
      hand_over(own, streams, 10L * kRounds);
      own.require(current_context() == mine, "another context is current than before");
    };
  };
  Thread first(work(asserters[0]));
  Thread second(work(asserters[1]));
  first.join();
  second.join();
  for (const Asserter& own : asserters) asserter.add("a thread", own.count());
  asserter.require(current_context() == before, "another context is current than before");
}

}  // namespace fletching::gpu

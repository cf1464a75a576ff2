// SPDX-License-Identifier: Apache-2.0
//
// fletching_gpu_bench: what handing over an array with an event costs the host, beside the same
// driver calls by hand. The least of several takes, in turns.
//
//     fact <tab> name <tab> text
//     bench <tab> case <tab> who <tab> nanoseconds of one handoff
//
// Exit codes: 0, 1 a call failed, 2 there is no device.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "arrays.hpp"
#include "facts.hpp"

namespace fletching::gpu {
namespace {

constexpr int kTakes = 7;
constexpr int kHandoffs = 4000;
constexpr int kBatch = 100;  // then both streams are waited for, which is not measured

void require(const Status& status) {
  if (!status) fail(status.error().code(), status.error().message());
}

struct Parties {
  Stream producer;
  Stream consumer;
};

/// An array without an event, moved and released: what is not about events.
void array_alone(const Parties& /*parties*/, const DeviceMemory& memory) {
  DeviceArray made = make_array(memory.data(), kBytes, 0);
  DeviceArray taken = std::move(made);
  taken.release();
}

void library(const Parties& parties, const DeviceMemory& memory) {
  DeviceArray made = make_array(memory.data(), kBytes, 0);
  require(export_with_event(made, parties.producer.get()));
  DeviceArray taken = std::move(made);
  require(SyncEvent(taken).wait_on(parties.consumer.get()));
  taken.release();
}

/// The least that a producer and a consumer have to ask of the driver, in a context that is
/// current.
void by_hand(const Parties& parties, const DeviceMemory& memory) {
  DeviceArray made = make_array(memory.data(), kBytes, 0);
  cuda::CUevent event = nullptr;
  require_call("cuEventCreate", cu().cu_event_create(&event, cuda::kCuEventDisableTiming));
  require_call("cuEventRecord",
               cu().cu_event_record(event, static_cast<cuda::CUstream>(parties.producer.get())));
  DeviceArray taken = std::move(made);
  require_call("cuStreamWaitEvent",
               cu().cu_stream_wait_event(static_cast<cuda::CUstream>(parties.consumer.get()), event,
                                         cuda::kCuEventWaitDefault));
  taken.release();
  require_call("cuEventDestroy", cu().cu_event_destroy(event));
}

using Handoff = void (*)(const Parties&, const DeviceMemory&);

double nanoseconds(Handoff handoff, const Parties& parties, const DeviceMemory& memory) {
  using Clock = std::chrono::steady_clock;
  Clock::duration spent{};
  for (int done = 0; done < kHandoffs; done += kBatch) {
    const auto start = Clock::now();
    for (int i = 0; i < kBatch; ++i) handoff(parties, memory);
    spent += Clock::now() - start;
    parties.producer.synchronize();
    parties.consumer.synchronize();
  }
  return std::chrono::duration<double, std::nano>(spent).count() / kHandoffs;
}

void measure() {
  const Current current;
  const DeviceMemory memory(kBytes);
  const Parties parties;
  struct Contender {
    const char* who;
    Handoff handoff;
    double least = std::numeric_limits<double>::infinity();
  };
  Contender contenders[] = {
      {"Fletching", library}, {"driver calls by hand", by_hand}, {"without an event", array_alone}};
  for (int take = 0; take < kTakes; ++take) {
    for (Contender& contender : contenders) {
      contender.least = std::min(contender.least, nanoseconds(contender.handoff, parties, memory));
    }
  }
  for (const Contender& contender : contenders) {
    std::printf("bench\thandoff with an event\t%s\t%.1f\n", contender.who, contender.least);
  }
}

int run() {
  std::string reason;
  if (roundtrip::guarded(reason, print_device) != 0) {
    std::fprintf(stderr, "fletching_gpu_bench: %s\n", reason.c_str());
    return 2;
  }
  if (roundtrip::guarded(reason, measure) != 0) {
    std::fprintf(stderr, "fletching_gpu_bench: %s\n", reason.c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace fletching::gpu

int main() { return fletching::gpu::run(); }

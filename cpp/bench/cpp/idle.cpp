// SPDX-License-Identifier: Apache-2.0
//
// The cost of idle async streams: a worker without a job, and a reader that waits for a batch.
//
//     idle MILLISECONDS     one line of JSON: the CPU time of all threads, in nanoseconds

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>
#include <utility>

#include "fletching/async_adapters.hpp"
#include "fletching/async_producer.hpp"

namespace {

std::int64_t process_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): without a thread it exits with the error's message
int main(int argc, char** argv) {
  const std::int64_t milliseconds = argc == 2 ? std::strtoll(argv[1], nullptr, 10) : 0;
  if (milliseconds <= 0) {
    std::fprintf(stderr, "usage: %s MILLISECONDS\n", argv[0]);
    return 2;
  }
  auto worker = fletching::WorkerThread::start().value();
  auto reader = fletching::AsyncReader::create(4).value();
  auto producer = fletching::AsyncProducer::start(reader.handler(), *worker).value();
  ArrowSchema c_schema{};
  c_schema.format = "i";
  c_schema.release = [](ArrowSchema* self) { self->release = nullptr; };
  if (!producer.schema(fletching::Schema(&c_schema)).ok()) return 1;
  bool ended = false;
  std::thread reading([&] { ended = !reader().has_value(); });
  // Wait until every thread sleeps.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::int64_t before = process_cpu_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  const std::int64_t used = process_cpu_ns() - before;
  (void)producer.end();
  reading.join();
  if (!ended) {
    std::fprintf(stderr, "the stream has not ended as it should\n");
    return 1;
  }
  std::printf(R"({"case": "idle", "ns": %lld})"
              "\n",
              static_cast<long long>(used));
  return 0;
}

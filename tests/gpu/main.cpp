// SPDX-License-Identifier: Apache-2.0
//
// fletching_gpu_test: every check on the first CUDA device, one line for each (README.md).
//
//     fact <tab> name <tab> text
//     check <tab> name <tab> ok, absent or FAILED <tab> number of comparisons <tab> reason
//
// A check's name is written to stderr before it runs, for the case that it never ends. Exit codes:
// 0 nothing failed, 1 something failed, 2 there is no device.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "checks.hpp"
#include "facts.hpp"
#include "text.hpp"

namespace fletching::gpu {
namespace {

struct Check {
  std::string name;
  std::function<void(Asserter&)> work;
};

std::vector<Check> all_checks(std::int64_t handoffs) {
  std::vector<Check> checks{{"symbols", check_symbols}};
  // The kernel first: a driver loads it before a gate is shut.
  for (const char* backend : {"cuda", "cuda_host", "cuda_managed"}) {
    const auto add = [&](const char* what, void (*work)(Asserter&, const char*)) {
      checks.push_back({std::string(backend) + ": " + what,
                        [=](Asserter& asserter) { work(asserter, backend); }});
    };
    add("kernel", check_kernel);
    add("gate, arrays", check_gate);
    add("gate, arrays, no wait", check_gate_control);
    add("gate, streams", check_stream_gate);
    add("gate, streams, no wait", check_stream_gate_control);
  }
  checks.push_back({"SyncEvent", check_sync_event});
  checks.push_back({"two streams, 100 rounds", check_race});
  checks.push_back({"release_after", check_release_after});
  checks.push_back({"a thread without a context", check_thread_without_context});
  checks.push_back({"two threads", check_two_threads});
  checks.push_back({"stream capture", check_capture});
  checks.push_back({"events of a graph", check_graph_events});
  checks.push_back({"DLPack out", check_to_dlpack});
  checks.push_back({"DLPack in", check_from_dlpack});
  checks.push_back({"CUDA Array Interface out", check_to_cuda_array});
  checks.push_back({"CUDA Array Interface in", check_from_cuda_array});
  checks.push_back({std::to_string(handoffs) + " handoffs",
                    [=](Asserter& asserter) { check_handoffs(asserter, handoffs); }});
  return checks;
}

bool run(const Check& check) {
  std::fprintf(stderr, "%s ...\n", check.name.c_str());
  Asserter asserter;
  std::string reason;
  const int code = roundtrip::guarded(reason, [&] {
    check.work(asserter);
    asserter.require(asserter.count() > 0, "nothing was compared");
  });
  const char* verdict = code == 0 ? "ok" : code == ENODEV ? "absent" : "FAILED";
  std::printf("check\t%s\t%s\t%lld\t%s\n", check.name.c_str(), verdict,
              static_cast<long long>(asserter.count()), roundtrip::printable(reason).c_str());
  std::fflush(stdout);
  return code == 0 || code == ENODEV;
}

int run_all(std::int64_t handoffs) {
  std::string reason;
  if (roundtrip::guarded(reason, print_device) != 0) {
    std::fprintf(stderr, "fletching_gpu_test: %s\n", reason.c_str());
    return 2;
  }
  // What a check releases behind a stream may go after the check, and needs its context.
  const Current kept;
  int failed = 0;
  for (const Check& check : all_checks(handoffs)) failed += run(check) ? 0 : 1;
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fletching::gpu

int main(int argc, char** argv) {
  constexpr long kHandoffs = 10000;
  std::string reason;
  int code = 1;
  const int thrown = fletching::roundtrip::guarded(
      reason, [&] { code = fletching::gpu::run_all(argc > 1 ? std::atol(argv[1]) : kHandoffs); });
  if (thrown != 0) std::fprintf(stderr, "fletching_gpu_test: %s\n", reason.c_str());
  return code;
}

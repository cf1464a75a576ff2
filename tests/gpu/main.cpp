// SPDX-License-Identifier: Apache-2.0
//
// fletching_gpu_test: runs every check on the first CUDA device, one line each (README.md).
//
//     fletching_gpu_test [--only NAME]... [--handoffs COUNT]
//
//     fact <tab> name <tab> text
//     check <tab> name <tab> ok, absent or FAILED <tab> number of comparisons <tab> reason
//
// --only: the checks whose name contains NAME. Each line is written when its check is done, and the
// name to stderr before it. A check that exceeds FLETCHING_GPU_CHECK_SECONDS (watchdog.hpp) fails
// and ends the program; FLETCHING_GPU_HANG adds a check that hangs. Exit codes: 0 nothing failed,
// 1 something failed, 2 no device or no such check, 3 a check hung.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "checks.hpp"
#include "cuda.hpp"
#include "error.hpp"
#include "facts.hpp"
#include "watchdog.hpp"

namespace fletching::gpu {
namespace {

struct Check {
  std::string name;
  std::function<void(Asserter&)> work;
};

struct Options {
  std::vector<std::string> only;
  std::int64_t handoffs = 10000;
};

/// Runs the check on a new thread, without a context or with that of the second device.
void run_elsewhere(Asserter& asserter, bool has_context, void (*work)(Asserter&)) {
  std::int32_t count = 0;
  require_call("cuDeviceGetCount", cu().cu_device_get_count(&count));
  if (has_context && count < 2) fail(ENODEV, "needs two devices");
  std::string reason;
  int code = 0;
  std::thread([&] {
    code = guarded(reason, [&] {
      std::optional<Current> other;
      if (has_context) other.emplace(1);
      const void* const before = current_context();
      work(asserter);
      asserter.require(current_context() == before, "another context is current than before");
    });
  }).join();
  if (code != 0) fail(code, reason);
}

std::vector<Check> all_checks(std::int64_t handoffs) {
  std::vector<Check> checks{{"symbols", check_symbols}};
  if (std::getenv("FLETCHING_GPU_HANG") != nullptr) checks.push_back({"hang", check_hang});
  // The kernel comes first, so that a driver loads it before a gate is shut.
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
  const auto add_everywhere = [&](const std::string& name, void (*work)(Asserter&)) {
    checks.push_back({name, work});
    checks.push_back(
        {name + ", no context", [=](Asserter& asserter) { run_elsewhere(asserter, false, work); }});
    checks.push_back({name + ", another device current",
                      [=](Asserter& asserter) { run_elsewhere(asserter, true, work); }});
  };
  add_everywhere("SyncEvent", check_sync_event);
  checks.push_back({"two streams, 100 rounds", check_race});
  add_everywhere("release_after", check_release_after);
  checks.push_back({"a thread without a context", check_thread_without_context});
  checks.push_back({"two threads", check_two_threads});
  checks.push_back({"stream capture", check_capture});
  checks.push_back({"events of a graph", check_graph_events});
  add_everywhere("DLPack out", check_to_dlpack);
  add_everywhere("DLPack in", check_from_dlpack);
  add_everywhere("CUDA Array Interface out", check_to_cuda_array);
  add_everywhere("CUDA Array Interface in", check_from_cuda_array);
  checks.push_back({std::to_string(handoffs) + " handoffs",
                    [=](Asserter& asserter) { check_handoffs(asserter, handoffs); }});
  return checks;
}

std::vector<Check> chosen_checks(const Options& options) {
  std::vector<Check> checks = all_checks(options.handoffs);
  std::erase_if(checks, [&](const Check& check) {
    return !options.only.empty() && std::ranges::none_of(options.only, [&](const auto& part) {
      return check.name.find(part) != std::string::npos;
    });
  });
  return checks;
}

bool run(const Check& check) {
  std::fprintf(stderr, "%s ...\n", check.name.c_str());
  Asserter asserter;
  std::string reason;
  const Watchdog watchdog(check.name);
  const int code = guarded(reason, [&] {
    check.work(asserter);
    asserter.require(asserter.count() > 0, "nothing was compared");
  });
  const char* verdict = code == 0 ? "ok" : code == ENODEV ? "absent" : "FAILED";
  std::printf("check\t%s\t%s\t%lld\t%s\n", check.name.c_str(), verdict,
              static_cast<long long>(asserter.count()), printable(reason).c_str());
  std::fflush(stdout);
  return code == 0 || code == ENODEV;
}

int run_all(const Options& options) {
  const std::vector<Check> checks = chosen_checks(options);
  if (checks.empty()) {
    std::fprintf(stderr, "fletching_gpu_test: --only: no check has such a name\n");
    return 2;
  }
  std::string reason;
  if (guarded(reason, print_device) != 0) {
    std::fprintf(stderr, "fletching_gpu_test: %s\n", reason.c_str());
    return 2;
  }
  // A release behind a stream may happen after its check, and needs the context.
  const Current kept;
  int failed = 0;
  for (const Check& check : checks) failed += run(check) ? 0 : 1;
  return failed == 0 ? 0 : 1;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (i + 1 == argc) fail(EINVAL, std::string(option) + ": expected a value");
    if (option == "--only") {
      options.only.emplace_back(argv[i + 1]);
    } else if (option == "--handoffs") {
      options.handoffs = std::atol(argv[i + 1]);
    } else {
      fail(EINVAL, std::string(option) + ": expected --only or --handoffs");
    }
  }
  return options;
}

}  // namespace
}  // namespace fletching::gpu

int main(int argc, char** argv) {
  std::string reason;
  int code = 2;
  const int thrown = fletching::gpu::guarded(
      reason, [&] { code = fletching::gpu::run_all(fletching::gpu::parse(argc, argv)); });
  if (thrown != 0) std::fprintf(stderr, "fletching_gpu_test: %s\n", reason.c_str());
  return code;
}

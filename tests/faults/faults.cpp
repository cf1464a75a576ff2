// SPDX-License-Identifier: Apache-2.0
//
// Fails each call of one vendor function in turn and checks how the kit handles it. README.md
// describes the command line.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "control.hpp"
#include "fletching/release_after.hpp"
#include "producer.h"
#include "scenario.hpp"
#include "special.hpp"

namespace fletching::faults {
namespace {

constexpr int kMostCalls = 400;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Whether the function frees something. Release callbacks and destructors do not report its
// failure, and the object is destroyed whatever it returns.
bool gives_back(std::string_view function) {
  constexpr std::array<std::string_view, 5> kParts{"Destroy", "Free", "Release", "Unload", "Pop"};
  return std::ranges::any_of(kParts, [=](auto part) { return contains(function, part); });
}

// Whether the kit calls the function a second time after a failure: it makes a context or device
// current, restores a thread's mode, or finds the function that destroys an instance, and nothing
// could be freed without it.
bool is_tried_again(std::string_view function, ErrorReporting reporting) {
  if (contains(function, "ThreadExchangeStreamCaptureMode")) return true;
  constexpr std::array<std::string_view, 4> kContext{
      "cuCtxGetCurrent", "cuCtxGetId", "cuDevicePrimaryCtxGetState", "cuDevicePrimaryCtxRetain"};
  if (reporting == ErrorReporting::kTriesContext && std::ranges::count(kContext, function) > 0)
    return true;
  return function == "cuCtxPushCurrent" || function == "hipGetDevice" ||
         function == "hipSetDevice" || function == "vkGetInstanceProcAddr";
}

// Whether the function returns an error's description; if it fails, the error has a number instead.
bool has_words(std::string_view function) { return contains(function, "GetError"); }

// Whether the function returns a handle or number that means an error without a reason.
bool has_no_status(std::string_view function) {
  return contains(function, "ProcAddr") || function == "hipGetStreamDeviceId";
}

// Another function that must fail so that this one is called at all; "" for most.
std::string companion(std::string_view function) {
  if (function == "cuModuleUnload") return "cuModuleGetFunction";
  if (function == "hipModuleUnload") return "hipModuleGetFunction";
  if (function == "clReleaseProgram" || function == "clReleaseContext") return "clBuildProgram";
  return "";
}

class Function {
 public:
  Function(const Control& control, std::string backend, std::string name, std::string error)
      : control_(control),
        backend_(std::move(backend)),
        name_(std::move(name)),
        error_(std::move(error)),
        companion_(companion(name_)) {}

  // Returns 0 if every fault was handled.
  int fail_each_call() {
    bool is_open = false;
    for (int n = 1; n <= kMostCalls; ++n) {
      if (!control_.set_fault(name_, n, error_)) {
        print({{"outcome", "cannot fail"}});
        return 0;
      }
      const Outcome outcome = run(n);
      control_.reset_faults();
      const bool opens =
          !is_open && why_absent(backend_).empty() && (outcome.failed_in != "BackendPresence");
      if (!outcome.fired_in.empty()) judge(outcome, n, is_open);
      if (outcome.fired_in.empty() && !outcome.failed_in.empty() && companion_.empty()) {
        problem(n, outcome, "failed although no call was made to fail");
      }
      if (is_open || opens || outcome.fired_in.empty()) recover(n);
      if (outcome.fired_in.empty()) {
        if (is_open) return problems_ == 0 ? 0 : 1;
        is_open = true;
        n = 0;
      } else if (opens) {
        is_open = true;
        n = 0;  // the calls that open the device are not repeated
      }
    }
    std::cerr << name_ << ": more than " << kMostCalls << " calls\n";
    return 1;
  }

 private:
  using Json = nlohmann::ordered_json;

  Outcome run(int n) {
    FletchingProducerResetCounters();
    if (n > 0 && !companion_.empty() && !control_.set_fault(companion_, 1, error_)) return {};
    Run run(control_, n == 0 ? "" : name_, n);
    play(run, backend_);
    return run.outcome();
  }

  void judge(const Outcome& outcome, int n, bool is_open) {
    std::string wrong;
    const bool reported = !outcome.failed_in.empty();
    if (!reported) {
      const bool has_nobody = outcome.reporting == ErrorReporting::kMayReport ||
                              outcome.reporting == ErrorReporting::kSilent;
      const bool may_be_silent = has_nobody || gives_back(name_) || has_words(name_) ||
                                 is_tried_again(name_, outcome.reporting);
      if (!may_be_silent) wrong = "the failure is lost";
    } else if (!contains(outcome.text, companion_.empty() ? name_ : companion_) &&
               !has_no_status(name_)) {
      wrong = "the error does not name the function";
    } else if (!contains(outcome.text, error_) && !has_no_status(name_)) {
      wrong = "the error does not name the vendor's error";
    }
    if (wrong.empty()) wrong = left_behind(is_open);
    Json line{{"n", n},
              {"phase", is_open ? "open" : "opening"},
              {"step", outcome.fired_in},
              {"outcome", reported ? "reported" : "silent"},
              {"text", outcome.text}};
    if (!wrong.empty()) {
      ++problems_;
      line["problem"] = wrong;
    }
    print(line);
  }

  // Describes leftovers, or returns "". The vendor's objects are compared with those after the last
  // run without a fault.
  std::string left_behind(bool is_open) {
    FletchingProducerCounters counters{};
    FletchingProducerReadCounters(&counters);
    if (counters.live_allocations != 0 || counters.live_arrays != 0 || counters.live_schemas != 0 ||
        counters.live_streams != 0) {
      return "the producer leaks";
    }
    if (counters.double_released != 0) return "something was released twice";
    if (counters.exported != counters.released) return "not everything was released once";
    if (!is_open && why_absent(backend_).empty()) return "";  // no earlier run to compare with
    await_releases();
    const int64_t alive = control_.alive();
    if (alive == alive_) return "";
    return "the vendor's library has " + std::to_string(alive) + " things alive, expected " +
           std::to_string(alive_) + ": " + control_.report();
  }

  // A worker restores its context after the release callback.
  static void await_releases() {
    while (pending_releases().value().running > 0) std::this_thread::yield();
  }

  // Repeats the run without a fault.
  void recover(int n) {
    const Outcome outcome = run(0);
    if (!outcome.failed_in.empty()) {
      problem(n, outcome, "a run without a fault fails after it");
    }
    await_releases();
    alive_ = control_.alive();
    if (first_alive_ < 0) first_alive_ = alive_;
    if (alive_ > first_alive_) {
      problem(n, outcome, "things alive grow from run to run: " + control_.report());
    }
  }

  void problem(int n, const Outcome& outcome, const std::string& what) {
    ++problems_;
    print({{"n", n},
           {"step", outcome.failed_in},
           {"outcome", "reported"},
           {"text", outcome.text},
           {"problem", what}});
  }

  void print(const Json& rest) {
    Json line{{"backend", backend_}, {"function", name_}};
    line.update(rest);
    std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
  }

  const Control& control_;
  const std::string backend_;
  const std::string name_;
  const std::string error_;
  const std::string companion_;
  int64_t alive_ = 0;
  int64_t first_alive_ = -1;
  int problems_ = 0;
};

// Makes the second device, if there is one, current for the thread, so that the arrays' device must
// be set and then restored.
void use_the_second_device(const std::string& backend) {
  if (!backend.starts_with("rocm")) return;
  const auto hip = hip::functions();
  if (hip.ok()) (void)(*hip)->hip_set_device(1);
}

constexpr int kCannotRun = 2;

int usage() {
  std::cerr << "fletching_faults functions BACKEND       the functions of its runtime\n"
               "fletching_faults fault BACKEND FUNCTION  fails each of its calls in turn\n"
               "fletching_faults special NAME BACKEND    what is not one call\n";
  return kCannotRun;
}

int list(const VendorRuntime& runtime) {
  for (const VendorFunction& function : runtime.functions) std::puts(function.name);
  return 0;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 3 && arguments[0] == "special") {
    return special(arguments[1], arguments[2]);
  }
  const Vendor vendor = vendor_of(arguments.size() > 1 ? arguments[1] : "");
  if (vendor.runtime == nullptr) return usage();
  if (arguments.size() == 2 && arguments[0] == "functions") return list(*vendor.runtime);
  if (arguments.size() != 3 || arguments[0] != "fault") return usage();
  const Control control(*vendor.runtime);
  if (!control.is_there()) {
    std::cerr << arguments[1] << ": the library that is loaded cannot be made to fail\n";
    return kCannotRun;
  }
  use_the_second_device(arguments[1]);
  return Function(control, arguments[1], arguments[2], vendor.error).fail_each_call();
}

}  // namespace
}  // namespace fletching::faults

int main(int count, char** arguments) try {
  return fletching::faults::run({arguments + 1, arguments + count});
} catch (const std::exception& error) {
  std::fprintf(stderr, "fletching_faults: %s\n", error.what());
  return fletching::faults::kCannotRun;
}

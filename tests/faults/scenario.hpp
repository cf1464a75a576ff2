// SPDX-License-Identifier: Apache-2.0
//
// The kit's operations on a vendor library, step by step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "control.hpp"

namespace fletching::faults {

// Whether a step can report an error.
enum class ErrorReporting {
  kReports,       // returns an error
  kTriesContext,  // returns an error, except that it retries setting a context before it destroys
  kMayReport,     // also destroys objects or starts a thread, whose failures are not reported
  kSilent,        // a release callback, which returns nothing
};

// The result of one run of the scenario.
struct Outcome {
  std::string fired_in;  // the step in which the fault fired, or ""
  ErrorReporting reporting = ErrorReporting::kReports;
  std::string failed_in;  // the step with the first error, or ""
  std::string text;       // that error's message
};

// One run. Set the fault, if any, before it.
class Run {
 public:
  Run(const Control& control, std::string function, int64_t n)
      : control_(control),
        function_(std::move(function)),
        fires_at_(function_.empty() ? -1 : control.calls(function_) + n) {}

  // Runs the step. Returns false if it returns an error or an earlier step failed.
  bool step(const char* name, ErrorReporting reporting, const std::function<std::string()>& body);

  // Runs the step even if an earlier one failed.
  void clean_up(const char* name, ErrorReporting reporting,
                const std::function<std::string()>& body);

  [[nodiscard]] const Outcome& outcome() const { return outcome_; }

 private:
  const Control& control_;
  std::string function_;
  int64_t fires_at_;
  Outcome outcome_;
};

// Runs the library and the reference producer on this backend. Leaves nothing allocated after any
// failure, except objects that the producer keeps for the lifetime of the process.
void play(Run& run, const std::string& backend);

// Why the device is absent, or "". play() begins with this.
std::string why_absent(const std::string& backend);

}  // namespace fletching::faults

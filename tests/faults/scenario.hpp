// SPDX-License-Identifier: Apache-2.0
//
// Everything that the kit does with a vendor's library, step by step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "control.hpp"

namespace fletching::faults {

// Whether a step can report an error.
enum class Voice {
  kReports,       // it returns an error
  kTriesContext,  // the same, but that it asks for a context twice where it destroys something
  kMayReport,     // it also destroys things, or starts a thread: a failure there is not reported
  kSilent,        // a release callback returns nothing
};

// The result of one run of the scenario.
struct Outcome {
  std::string fired_in;  // the step in which the fault happened; "" when it did not
  Voice voice = Voice::kReports;
  std::string failed_in;  // the step with the first error; "" when there was none
  std::string text;       // of that error
};

// One run. The fault, if any, is set before.
class Run {
 public:
  Run(const Control& control, std::string function, int64_t n)
      : control_(control),
        function_(std::move(function)),
        fires_at_(function_.empty() ? -1 : control.calls(function_) + n) {}

  // Does it; false when its text is not "", or when an earlier step has failed.
  bool step(const char* name, Voice voice, const std::function<std::string()>& body);

  // The same, whatever has failed before.
  void clean_up(const char* name, Voice voice, const std::function<std::string()>& body);

  [[nodiscard]] const Outcome& outcome() const { return outcome_; }

 private:
  const Control& control_;
  std::string function_;
  int64_t fires_at_;
  Outcome outcome_;
};

// Uses the library and the reference producer on this backend. Leaves nothing behind, whatever
// fails, but for what the producer keeps for the life of the process.
void play(Run& run, const std::string& backend);

// Why the device is not there; "" when it is. What play() begins with.
std::string why_absent(const std::string& backend);

}  // namespace fletching::faults

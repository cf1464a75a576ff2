// SPDX-License-Identifier: Apache-2.0
//
// Runs a subject in a separate process, so that a crash or a hang is a result.
#ifndef FLETCHING_TESTS_CONFORMANCE_CHILD_HPP
#define FLETCHING_TESTS_CONFORMANCE_CHILD_HPP

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fletching/validate.h"

namespace fletching::conformance {

/// The run ends after so many crashes and hangs.
inline constexpr int kMostProcesses = 100;

/// The library with the subject, and the cases to play.
struct Request {
  std::string library;
  std::string host;  // a program that plays `library` instead of this one; "": this one
  int subject = 0;
  std::string group;                    // "": all
  std::string case_name;                // "": all
  std::vector<std::string> skipped;     // names of cases; not for a host
  std::string function;                 // a function of fletching/roles.h; "": plays the subjects
  std::string role;                     // of the function
  int most_hangs = kMostProcesses;      // ends after so many
  int level = FLETCHING_VALIDATE_DATA;  // of the validation layer, for a function
};

/// A line of the process that plays:
/// - the start: "subject";
/// - a case: "begin" with its group and name;
/// - a call of a function: "call", the text of FletchingConformanceCall;
/// - a fault: "finding", an object with the members of FletchingFinding;
/// - a result: "subject", "group", "name", "verdict", "answer", "rule", "message". After a crash or
///   a hang also "ended": "crash", "exit" or "hang";
/// - why it could not run: "error".
using Report = std::function<void(const nlohmann::json& line)>;

/// The argument with which the program starts itself; the remaining arguments are for run_child.
inline constexpr const char* kChild = "--child";

/// Plays the cases in the process that run_subject started. Returns its exit code: 3 if no subject
/// has that index. A host gets the same arguments and must write the same lines to file
/// descriptor 3, of which only those for the start, a case and a result are needed.
int run_child(int count, char** arguments);

enum class RunStatus { kDone, kNoSubject, kFailed };

/// Plays all cases of a subject or of the function, with one result each. If a process crashes, or
/// is silent for `seconds`, its current case is wrong and a new process plays the next one. Ends
/// after kMostProcesses.
RunStatus run_subject(const Request& request, int seconds, const Report& report);

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_CHILD_HPP

// SPDX-License-Identifier: Apache-2.0
//
// fletching_conformance: plays the suite on the subjects of a shared library, or a role on one of
// its functions. fletching-validate, which `fletching validate` runs, is the same program, linked
// into one file.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "child.hpp"

namespace {

using nlohmann::json;

constexpr const char* kUsage =
    "usage: fletching_conformance [--group GROUP ...] [--case CASE] [--skip CASE ...]\n"
    "         [--json FILE] [--lines FILE] [--seconds N] [--most-hangs N] [--host PROGRAM]\n"
    "         [--function NAME --as ROLE [--level N]] LIBRARY\n"
    "\n"
    "Plays the suite, or some groups of it, on each subject of a shared library, or a role on a\n"
    "function of it (fletching/roles.h). Prints a line for each wrong result, and the counts.\n"
    "--case: a name, or the beginning of some and a *. --skip: a name, not with --host. --json:\n"
    "every result, as a list. --lines: instead of printing, every line of the child process, one\n"
    "JSON object each. --seconds: how long a case may take (60). --most-hangs: after how many the\n"
    "run ends (100). --host: a program that loads LIBRARY and plays its subjects, such as an\n"
    "interpreter for a script. --level: of the validation layer, 0 to 2 (2).\n"
    "Exit codes: 0 nothing is wrong, 1 something is, 2 could not run.\n";
constexpr int kSeconds = 60;

struct Options {
  fletching::conformance::Request request;
  std::vector<std::string> groups;  // empty: all
  const char* file = nullptr;
  const char* lines = nullptr;
  int seconds = kSeconds;
};

bool parse(int count, char** arguments, Options& options) {
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (!name.starts_with("--")) {
      if (!options.request.library.empty()) return false;
      options.request.library = name;
      continue;
    }
    if (++i == count) return false;
    const char* const value = arguments[i];
    if (name == "--group") {
      options.groups.emplace_back(value);
    } else if (name == "--case") {
      options.request.case_name = value;
    } else if (name == "--skip") {
      options.request.skipped.emplace_back(value);
    } else if (name == "--host") {
      options.request.host = value;
    } else if (name == "--json") {
      options.file = value;
    } else if (name == "--lines") {
      options.lines = value;
    } else if (name == "--function") {
      options.request.function = value;
    } else if (name == "--as") {
      options.request.role = value;
    } else if (name == "--most-hangs") {
      options.request.most_hangs = std::atoi(value);
    } else if (name == "--level") {
      options.request.level = std::atoi(value);
    } else if (name == "--seconds") {
      options.seconds = std::atoi(value);
    } else {
      return false;
    }
  }
  const bool has_both = options.request.function.empty() == options.request.role.empty();
  return !options.request.library.empty() && has_both && options.seconds > 0;
}

std::string text(const json& result, const char* key) { return result.at(key).get<std::string>(); }

void print(const json& results) {
  std::map<std::string, std::map<std::string, int>> counts;
  for (const json& result : results) {
    ++counts[text(result, "subject") + ": " + text(result, "group")][text(result, "verdict")];
  }
  for (auto& [group, verdicts] : counts) {
    std::printf("%-32s %4d right %4d wrong %4d not supported %4d absent\n", group.c_str(),
                verdicts["right"], verdicts["wrong"], verdicts["not-supported"],
                verdicts["absent"]);
  }
}

int run(int count, char** arguments) {
  using namespace fletching::conformance;
  if (count > 1 && std::strcmp(arguments[1], kChild) == 0) {
    return run_child(count - 2, arguments + 2);
  }
  Options options;
  if (!parse(count, arguments, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  json results = json::array();
  int wrong = 0;
  std::ofstream lines;
  if (options.lines != nullptr) lines.open(options.lines);
  const auto report = [&](const json& result) {
    if (lines.is_open()) {
      lines << result.dump(-1, ' ', true, json::error_handler_t::replace) << '\n' << std::flush;
    }
    if (result.contains("error") && !lines.is_open()) {
      std::fprintf(stderr, "fletching_conformance: %s\n", text(result, "error").c_str());
    }
    if (!result.contains("verdict")) return;
    results.push_back(result);
    if (text(result, "verdict") != "wrong") return;
    ++wrong;
    if (lines.is_open()) return;
    const std::string rule = text(result, "rule");
    std::printf("%s: %s: %s: %s%s\n", text(result, "subject").c_str(),
                text(result, "group").c_str(), text(result, "name").c_str(),
                text(result, "message").c_str(), rule.empty() ? "" : (", rule " + rule).c_str());
  };
  if (options.groups.empty()) options.groups.emplace_back();
  for (const std::string& group : options.groups) {
    options.request.group = group;
    options.request.subject = 0;
    RunStatus ended = RunStatus::kDone;
    for (int& i = options.request.subject; ended == RunStatus::kDone; ++i) {
      ended = run_subject(options.request, options.seconds, report);
    }
    if (ended == RunStatus::kFailed) return 2;
  }
  if (!lines.is_open()) print(results);
  if (options.file != nullptr && !(std::ofstream(options.file) << results.dump(1) << '\n')) {
    std::fprintf(stderr, "fletching_conformance: cannot write %s\n", options.file);
    return 2;
  }
  if (!lines.is_open()) std::printf("%d wrong of %zu\n", wrong, results.size());
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fletching_conformance: %s\n", error.what());
    return 2;
  }
}

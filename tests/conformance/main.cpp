// SPDX-License-Identifier: Apache-2.0
//
// fletching_conformance LIBRARY [GROUP [CASE]]: plays the suite on the subject of a shared library.
// Prints a line for each wrong result, and a summary. Exit codes: 0 nothing is wrong, 1 something
// is, 2 could not run.
#include <dlfcn.h>

#include <cstdio>
#include <map>
#include <string>

#include "fletching/conformance.h"

namespace {

using Counts = std::map<std::string, std::map<std::string, int>>;  // by group and verdict

void report(void* context, const FletchingConformanceResult* result) {
  ++(*static_cast<Counts*>(context))[result->group][result->verdict];
  if (std::string(result->verdict) != "wrong") return;
  std::printf("%s %s: %s%s%s\n", result->group, result->name, result->message,
              *result->rule == '\0' ? "" : ", rule ", result->rule);
}

FletchingConformanceSubjectFunction subjects_of(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* const symbol = library == nullptr ? nullptr : dlsym(library, "FletchingConformanceSubject");
  if (symbol == nullptr) std::fprintf(stderr, "fletching_conformance: %s\n", dlerror());
  return reinterpret_cast<FletchingConformanceSubjectFunction>(symbol);
}

/// Returns the number of wrong results, or -1 if it could not run.
std::int64_t run(const FletchingSubject& subject, const char* group, const char* name) {
  Counts counts;
  const FletchingConformanceOptions options{sizeof options, group, name, &report, &counts};
  std::int64_t wrong = 0;
  FletchingMessage message{};
  if (FletchingConformanceRun(&subject, &options, &wrong, &message) != 0) {
    std::fprintf(stderr, "fletching_conformance: %s: %s\n", subject.name, message.text);
    return -1;
  }
  for (auto& [played, verdicts] : counts) {
    std::printf("%s: %-18s %4d right %4d wrong %4d not supported\n", subject.name, played.c_str(),
                verdicts["right"], verdicts["wrong"], verdicts["not-supported"]);
  }
  return wrong;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || count > 4) {
    std::fprintf(stderr, "usage: fletching_conformance LIBRARY [GROUP [CASE]]\n");
    return 2;
  }
  const auto subjects = subjects_of(arguments[1]);
  if (subjects == nullptr) return 2;
  std::int64_t wrong = 0;
  for (std::int32_t i = 0; const FletchingSubject* subject = subjects(i); ++i) {
    const std::int64_t found =
        run(*subject, count > 2 ? arguments[2] : nullptr, count > 3 ? arguments[3] : nullptr);
    if (found < 0) return 2;
    wrong += found;
  }
  std::printf("%lld wrong\n", static_cast<long long>(wrong));
  return wrong == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
//
// Collects the findings of the validation layer.
#ifndef FLETCHING_TESTS_VALIDATE_FINDINGS_HPP
#define FLETCHING_TESTS_VALIDATE_FINDINGS_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "fletching/validate.h"

namespace fletching::testing {

/// Rule, severity, party and path of each finding, on one line.
struct Findings {
  static void add(void* context, const FletchingFinding* finding) {
    auto& self = *static_cast<Findings*>(context);
    self.list.push_back(std::string(finding->rule) + " " + finding->severity + " " +
                        finding->party + " " + finding->path);
    self.messages.emplace_back(finding->message);
    self.histories.emplace_back(finding->history);
  }
  FletchingValidateOptions options(std::int32_t level) {
    return {sizeof(FletchingValidateOptions), level, &add, this};
  }

  std::vector<std::string> list;
  std::vector<std::string> messages;
  std::vector<std::string> histories;
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_VALIDATE_FINDINGS_HPP

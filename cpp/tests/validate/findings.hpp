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

/// All options except the report at exit, when the findings are already destroyed.
inline constexpr std::uint32_t kAllStress = FLETCHING_STRESS_REPORT_AT_EXIT - 1;
/// No stress, every option alone, and all together.
inline constexpr std::uint32_t kStress[] = {0,
                                            FLETCHING_STRESS_POISON,
                                            FLETCHING_STRESS_MOVE,
                                            FLETCHING_STRESS_PRIVATE_DATA,
                                            FLETCHING_STRESS_THREAD,
                                            FLETCHING_STRESS_DELAY,
                                            kAllStress};

/// Formats each finding as one line: rule, severity, party and path.
struct Findings {
  static void add(void* context, const FletchingFinding* finding) {
    auto& self = *static_cast<Findings*>(context);
    self.list.push_back(std::string(finding->rule) + " " + finding->severity + " " +
                        finding->party + " " + finding->path);
    self.messages.emplace_back(finding->message);
    self.histories.emplace_back(finding->history);
  }
  FletchingValidateOptions options(std::int32_t level) {
    return {sizeof(FletchingValidateOptions), level, &add, this, stress};
  }

  std::uint32_t stress = 0;
  std::vector<std::string> list;
  std::vector<std::string> messages;
  std::vector<std::string> histories;
};

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_VALIDATE_FINDINGS_HPP

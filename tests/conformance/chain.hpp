// SPDX-License-Identifier: Apache-2.0
//
// Subjects of other libraries in this process, through which an array passes.
#ifndef FLETCHING_TESTS_CONFORMANCE_CHAIN_HPP
#define FLETCHING_TESTS_CONFORMANCE_CHAIN_HPP

#include <string>
#include <vector>

#include "fletching/conformance.h"

namespace fletching::conformance {

/// One language of a chain: "go". If `subject` is NULL, `problem` gives the reason.
struct Link {
  std::string name;
  const FletchingSubject* subject;
  std::string problem;
};

/// The languages that FLETCHING_CHAIN names, such as "cpp go rust"; none if it is unset. The first
/// subject of libfletching_subject_NAME.so in FLETCHING_LIB_DIR plays each, except for the one
/// under test, which plays itself: a process has one Go runtime.
std::vector<Link> links(const FletchingSubject& tested);

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_CHAIN_HPP

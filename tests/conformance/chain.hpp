// SPDX-License-Identifier: Apache-2.0
//
// Subjects of other libraries in this process that pass an array on.
#ifndef FLETCHING_TESTS_CONFORMANCE_CHAIN_HPP
#define FLETCHING_TESTS_CONFORMANCE_CHAIN_HPP

#include <string>
#include <vector>

#include "fletching/conformance.h"

namespace fletching::conformance {

/// One language of a chain, such as "go". If `subject` is NULL, `problem` gives the reason.
struct Link {
  std::string name;
  const FletchingSubject* subject;
  std::string problem;
};

/// The languages in FLETCHING_CHAIN, such as "cpp go rust"; empty if it is unset. Each is the first
/// subject of libfletching_subject_NAME.so in FLETCHING_LIB_DIR, except the language under test,
/// which uses `tested`: a process can have only one Go runtime.
std::vector<Link> links(const FletchingSubject& tested);

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_CHAIN_HPP

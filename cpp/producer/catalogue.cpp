#include "catalogue.hpp"

namespace fletching::producer {
namespace {

std::vector<Case> make_cases() {
  std::vector<Case> cases;
  for (NamedNodes group : {primitive_cases(), binary_cases(), nested_cases(), batch_cases()}) {
    for (auto& [name, node] : group) {
      cases.push_back({std::move(name), std::move(node)});
    }
  }
  return cases;
}

}  // namespace

const std::vector<Case>& catalogue() {
  static const std::vector<Case> cases = make_cases();
  return cases;
}

}  // namespace fletching::producer

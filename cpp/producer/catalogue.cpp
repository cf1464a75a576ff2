#include "catalogue.hpp"

namespace fletching::producer {
namespace {

std::vector<Case> MakeCases() {
  std::vector<Case> cases;
  for (NamedNodes group : {PrimitiveCases(), BinaryCases(), NestedCases(), BatchCases()}) {
    for (auto& [name, node] : group) {
      std::string text = Describe(node);
      cases.push_back({std::move(name), std::move(node), std::move(text)});
    }
  }
  return cases;
}

}  // namespace

const std::vector<Case>& Catalogue() {
  static const std::vector<Case> cases = MakeCases();
  return cases;
}

}  // namespace fletching::producer

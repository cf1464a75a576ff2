// Target triples for which clang can lay out structs.
#ifndef FLETCHING_EXTRACT_TARGETS_HPP
#define FLETCHING_EXTRACT_TARGETS_HPP

#include <string>

#include "llvm/Support/Error.h"

namespace fletching::extract {

/// Returns an error that describes the mistake in the triple. Clang itself parses a misspelled
/// system as a vendor and uses the bare-metal layout.
llvm::Error check_triple(const std::string& triple);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_TARGETS_HPP

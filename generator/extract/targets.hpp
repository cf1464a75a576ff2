// Target triples: which of them clang can lay structs out for.
#ifndef FLETCHING_EXTRACT_TARGETS_HPP
#define FLETCHING_EXTRACT_TARGETS_HPP

#include <string>

#include "llvm/Support/Error.h"

namespace fletching::extract {

/// An error that says what is wrong with the triple. Clang itself takes a misspelled system for a
/// vendor, and lays out for bare metal.
llvm::Error check_triple(const std::string& triple);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_TARGETS_HPP

// Target triples: which of them clang can lay structs out for.
#pragma once

#include <string>

#include "llvm/Support/Error.h"

namespace fletching::extract {

/// An error that says what is wrong with the triple. Clang itself takes a misspelled system for a
/// vendor, and lays out for bare metal.
llvm::Error CheckTriple(const std::string& triple);

}  // namespace fletching::extract

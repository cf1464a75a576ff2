// Values of macro bodies.
#ifndef FLETCHING_EXTRACT_EVALUATE_HPP
#define FLETCHING_EXTRACT_EVALUATE_HPP

#include <optional>

#include "clang/Parse/Parser.h"
#include "llvm/ADT/APSInt.h"

namespace fletching::extract {

/// Evaluates the body as an integer constant expression at the end of the file, with Clang's
/// parser. Returns nullopt for any other body. `body` contains raw tokens. `parser` has read the
/// file and still has its scope.
std::optional<llvm::APSInt> evaluate(llvm::ArrayRef<clang::Token> body, clang::Parser& parser);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_EVALUATE_HPP

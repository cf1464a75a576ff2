// Values of macro bodies.
#pragma once

#include <optional>

#include "clang/AST/ASTContext.h"
#include "clang/Lex/Preprocessor.h"
#include "llvm/ADT/APSInt.h"

namespace fletching::extract {

/// The body as an integer constant expression at the end of the file: literals, other macros,
/// enumerators, operators, casts to integer types. Nothing when it is anything else. `body` holds
/// raw tokens.
std::optional<llvm::APSInt> Evaluate(llvm::ArrayRef<clang::Token> body,
                                     clang::Preprocessor& preprocessor,
                                     const clang::ASTContext& context);

}  // namespace fletching::extract

// The enums, typedefs and records of a run.
#ifndef FLETCHING_EXTRACT_DECLARATIONS_HPP
#define FLETCHING_EXTRACT_DECLARATIONS_HPP

#include "clang/AST/ASTContext.h"
#include "llvm/Support/JSON.h"

namespace fletching::extract {

/// Adds "enums", "typedefs" and "records", in the order of the file.
void add_declarations(llvm::json::Object& run, const clang::ASTContext& context);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_DECLARATIONS_HPP

// The enums, typedefs and records of a run.
#pragma once

#include "clang/AST/ASTContext.h"
#include "llvm/Support/JSON.h"

namespace fletching::extract {

/// Adds "enums", "typedefs" and "records", in the order of the file.
void AddDeclarations(llvm::json::Object& run, const clang::ASTContext& context);

}  // namespace fletching::extract

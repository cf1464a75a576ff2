// Spells clang's types in the language of the spec, identically for C and C++ (README.md,
// "Types").
#ifndef FLETCHING_EXTRACT_TYPES_HPP
#define FLETCHING_EXTRACT_TYPES_HPP

#include <string>

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "llvm/Support/JSON.h"

namespace fletching::extract {

/// For example `int64[3]`, `const void**`, `ArrowDeviceType`, `callback(ArrowArray*) -> void`.
std::string spell_type(clang::QualType type, const clang::ASTContext& context);

/// The name of a record or enum, or the name X of `typedef struct {..} X`. Empty if it has none.
std::string tag_name(const clang::TagDecl* tag);

/// The name with its namespaces and classes: `ns::X`.
std::string qualified_name(const clang::NamedDecl* named);

/// The parameters and result of a function pointer field; null for other fields.
llvm::json::Value describe_callback(const clang::FieldDecl* field,
                                    const clang::ASTContext& context);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_TYPES_HPP

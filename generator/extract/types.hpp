// Spells clang's types in the spec's own language, the same from C and from C++ (README.md,
// "Types").
#ifndef FLETCHING_EXTRACT_TYPES_HPP
#define FLETCHING_EXTRACT_TYPES_HPP

#include <string>

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "llvm/Support/JSON.h"

namespace fletching::extract {

/// `int64[3]`, `const void**`, `ArrowDeviceType`, `callback(ArrowArray*) -> void`.
std::string spell_type(clang::QualType type, const clang::ASTContext& context);

/// The name others know a record or enum by: its own, or that of `typedef struct {..} X`. Empty
/// when it has none.
std::string tag_name(const clang::TagDecl* tag);

/// The name with the namespaces and classes around it: `ns::X`.
std::string qualified_name(const clang::NamedDecl* named);

/// The parameters and result of a function pointer field; null for any other field.
llvm::json::Value describe_callback(const clang::FieldDecl* field,
                                    const clang::ASTContext& context);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_TYPES_HPP

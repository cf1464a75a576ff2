// The possible changes for each kind of node.
#ifndef FLETCHING_MUTANTS_CODE_OPERATORS_HPP
#define FLETCHING_MUTANTS_CODE_OPERATORS_HPP

#include <string>
#include <vector>

#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/Stmt.h"
#include "mutant.hpp"

namespace fletching::mutate {

/// The state and the output of all operators.
struct Output {
  clang::ASTContext& context;
  Source source;
  std::string function;  ///< the visited function
  std::vector<Mutant> mutants;
};

void mutate_binary(Output& out, const clang::Expr* whole, clang::BinaryOperatorKind code,
                   const clang::Expr* left, const clang::Expr* right, clang::SourceLocation sign);
void mutate_unary(Output& out, const clang::UnaryOperator* node);
void mutate_condition(Output& out, const clang::Expr* condition);
void mutate_integer(Output& out, const clang::IntegerLiteral* literal, const clang::Stmt* parent);
void mutate_bool(Output& out, const clang::CXXBoolLiteralExpr* literal);
void mutate_call(Output& out, const clang::CallExpr* call);
void mutate_return(Output& out, const clang::ReturnStmt* node, clang::QualType returned);
/// Removes a statement.
void mutate_statement(Output& out, const clang::Stmt* node);
/// Removes a return, break or continue with code after it.
void mutate_early_exit(Output& out, const clang::Stmt* node);

}  // namespace fletching::mutate

#endif  // FLETCHING_MUTANTS_CODE_OPERATORS_HPP

#include "operators.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "clang/AST/DeclCXX.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Basic/SourceManager.h"

namespace fletching::mutate {
namespace {

bool is_c(const Output& out) { return !out.context.getLangOpts().CPlusPlus; }

std::string chosen(const Output& out) {
  return std::string(is_c(out) ? "" : "::") + "fletching_mutant(@NUMBER@)";
}

std::string cast_to(const Output& out, const std::string& type) {
  return is_c(out) ? "(" + type + ")" : "static_cast<" + type + ">";
}

struct HasLambda : clang::RecursiveASTVisitor<HasLambda> {
  bool found = false;
  bool VisitLambdaExpr(clang::LambdaExpr*) {
    found = true;
    return false;
  }
};

// Each lambda expression has a distinct type, so a copy of it would not compile in its place.
bool can_be_copied(const clang::Expr* node) {
  HasLambda visitor;
  visitor.TraverseStmt(const_cast<clang::Expr*>(node));
  return !visitor.found;
}

void add(Output& out, const std::optional<Range>& range, std::string kind, std::string after,
         std::string open, std::string close) {
  if (!range) return;
  std::string before = out.source.text(*range);
  if (before == after) return;
  out.mutants.push_back({*range, std::move(kind), out.function, std::move(before), std::move(after),
                         std::move(open), std::move(close)});
}

void replace(Output& out, const clang::Expr* node, std::string kind, const std::string& after) {
  if (!can_be_copied(node)) return;
  add(out, out.source.range(node->getSourceRange()), std::move(kind), after,
      "(" + chosen(out) + " ? (" + after + ") : (", "))");
}

// Inverts a bool without a copy, by comparing it with the selection.
void invert(Output& out, const clang::Expr* node, std::string kind, std::string after) {
  add(out, out.source.range(node->getSourceRange()), std::move(kind), std::move(after),
      "(" + chosen(out) + " != " + cast_to(out, "bool") + "(", "))");
}

std::string text_of(const Output& out, const clang::Stmt* node) {
  const auto range = out.source.range(node->getSourceRange());
  return range ? out.source.text(*range) : std::string();
}

using Code = clang::BinaryOperatorKind;
struct Exchange {
  Code from;
  Code to;
  const char* kind;
};
constexpr std::array kExchanges = {
    Exchange{clang::BO_LT, clang::BO_LE, "relation"},
    Exchange{clang::BO_LE, clang::BO_LT, "relation"},
    Exchange{clang::BO_GT, clang::BO_GE, "relation"},
    Exchange{clang::BO_GE, clang::BO_GT, "relation"},
    Exchange{clang::BO_EQ, clang::BO_NE, "relation"},
    Exchange{clang::BO_NE, clang::BO_EQ, "relation"},
    Exchange{clang::BO_LAnd, clang::BO_LOr, "logic"},
    Exchange{clang::BO_LOr, clang::BO_LAnd, "logic"},
    Exchange{clang::BO_Add, clang::BO_Sub, "arithmetic"},
    Exchange{clang::BO_Sub, clang::BO_Add, "arithmetic"},
    Exchange{clang::BO_Mul, clang::BO_Div, "arithmetic"},
    Exchange{clang::BO_Div, clang::BO_Mul, "arithmetic"},
    Exchange{clang::BO_Rem, clang::BO_Mul, "arithmetic"},
    Exchange{clang::BO_Shl, clang::BO_Shr, "arithmetic"},
    Exchange{clang::BO_Shr, clang::BO_Shl, "arithmetic"},
    Exchange{clang::BO_And, clang::BO_Or, "arithmetic"},
    Exchange{clang::BO_Or, clang::BO_And, "arithmetic"},
    Exchange{clang::BO_Xor, clang::BO_And, "arithmetic"},
    Exchange{clang::BO_AddAssign, clang::BO_SubAssign, "arithmetic"},
    Exchange{clang::BO_SubAssign, clang::BO_AddAssign, "arithmetic"},
    Exchange{clang::BO_MulAssign, clang::BO_DivAssign, "arithmetic"},
    Exchange{clang::BO_OrAssign, clang::BO_AndAssign, "arithmetic"},
    Exchange{clang::BO_AndAssign, clang::BO_OrAssign, "arithmetic"},
};

const Exchange* exchange_of(Code code) {
  for (const Exchange& exchange : kExchanges) {
    if (exchange.from == code) return &exchange;
  }
  return nullptr;
}

bool is_number(const clang::Expr* node) {
  const clang::QualType type = node->getType();
  return !node->isTypeDependent() && type->isArithmeticType();
}

// A pointer and a number, in this order, can also be subtracted.
bool can_calculate(const clang::Expr* left, const clang::Expr* right) {
  const bool is_place = !left->isTypeDependent() && left->getType()->isPointerType();
  return is_number(right) && (is_number(left) || is_place);
}

// Adds the cast that braces need around a value that is not constant.
std::string cast_around(const Output& out, const clang::Stmt* parent) {
  const auto* cast = llvm::dyn_cast_or_null<clang::ImplicitCastExpr>(parent);
  if (cast == nullptr || cast->getCastKind() != clang::CK_IntegralCast) return {};
  const clang::QualType type = cast->getType().getCanonicalType().getUnqualifiedType();
  if (!type->isBuiltinType() || type->isDependentType()) return {};
  clang::PrintingPolicy policy{clang::LangOptions()};
  policy.Bool = true;
  return cast_to(out, type.getAsString(policy));
}

bool is_null_pointer(const clang::Stmt* parent) {
  const auto* cast = llvm::dyn_cast_or_null<clang::ImplicitCastExpr>(parent);
  return cast != nullptr && cast->getCastKind() == clang::CK_NullToPointer;
}

bool can_be_empty(clang::QualType type) {
  const clang::CXXRecordDecl* record = type->getAsCXXRecordDecl();
  if (record == nullptr || !record->hasDefinition() || record->isDependentContext()) return false;
  if (!record->hasDefaultConstructor()) return false;
  for (const clang::CXXConstructorDecl* constructor : record->ctors()) {
    if (constructor->isDefaultConstructor() &&
        (constructor->isDeleted() || constructor->isExplicit())) {
      return false;
    }
  }
  return true;
}

const clang::Expr* bare(const clang::Expr* node) { return node->IgnoreUnlessSpelledInSource(); }

bool is_same_type(const clang::Expr* left, const clang::Expr* right) {
  if (left->isTypeDependent() || right->isTypeDependent()) return false;
  const auto plain = [](const clang::Expr* node) {
    return bare(node)->getType().getCanonicalType().getUnqualifiedType();
  };
  return plain(left) == plain(right);
}

// Whether the order of the arguments does not matter. add and multiply are Fletching's functions
// with overflow checks.
bool is_symmetric(const clang::FunctionDecl* function) {
  const std::string name = function->getNameAsString();
  return name == "min" || name == "max" || name == "swap" || name == "add" || name == "multiply";
}

}  // namespace

void mutate_binary(Output& out, const clang::Expr* whole, Code code, const clang::Expr* left,
                   const clang::Expr* right, clang::SourceLocation sign) {
  const Exchange* exchange = exchange_of(code);
  if (exchange == nullptr || sign.isMacroID()) return;
  const bool is_calculated = std::string_view(exchange->kind) == "arithmetic";
  if (is_calculated && !can_calculate(left, right)) return;
  const std::string after = text_of(out, left) + " " +
                            clang::BinaryOperator::getOpcodeStr(exchange->to).str() + " " +
                            text_of(out, right);
  const bool is_equality = code == clang::BO_EQ || code == clang::BO_NE;
  if (is_equality) {
    invert(out, whole, exchange->kind, after);
  } else {
    replace(out, whole, exchange->kind, after);
  }
}

void mutate_unary(Output& out, const clang::UnaryOperator* node) {
  if (node->getOperatorLoc().isMacroID()) return;
  const std::string operand = text_of(out, node->getSubExpr());
  if (node->getOpcode() == clang::UO_LNot) return invert(out, node, "not", operand);
  if (!node->isIncrementDecrementOp() || !is_number(node->getSubExpr())) return;
  const std::string sign = node->isIncrementOp() ? "--" : "++";
  replace(out, node, "arithmetic", node->isPrefix() ? sign + operand : operand + sign);
}

void mutate_condition(Output& out, const clang::Expr* condition) {
  // A macro may use its argument for more than the condition.
  const clang::SourceLocation begin = condition->getBeginLoc();
  if (out.context.getSourceManager().isMacroArgExpansion(begin)) return;
  const clang::Expr* node = condition->IgnoreParenImpCasts();
  const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(node);
  const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(node);
  const bool is_inverted_anyway = (unary != nullptr && unary->getOpcode() == clang::UO_LNot) ||
                                  (binary != nullptr && binary->isEqualityOp()) ||
                                  llvm::isa<clang::CXXBoolLiteralExpr>(node);
  if (is_inverted_anyway) return;
  invert(out, condition, "condition", "!(" + text_of(out, condition) + ")");
}

void mutate_integer(Output& out, const clang::IntegerLiteral* literal, const clang::Stmt* parent) {
  if (literal->getLocation().isMacroID() || is_null_pointer(parent)) return;
  const std::string before = text_of(out, literal);
  std::string after = before + " + 1";
  if (before == "0") after = "1";
  if (before == "1") after = "0";
  add(out, out.source.range(literal->getSourceRange()), "constant", after,
      cast_around(out, parent) + "(" + chosen(out) + " ? " + after + " : ", ")");
}

void mutate_bool(Output& out, const clang::CXXBoolLiteralExpr* literal) {
  if (literal->getLocation().isMacroID()) return;
  invert(out, literal, "constant", literal->getValue() ? "false" : "true");
}

void mutate_call(Output& out, const clang::CallExpr* call) {
  const clang::FunctionDecl* function = call->getDirectCallee();
  if (llvm::isa<clang::CXXOperatorCallExpr>(call) || call->isTypeDependent()) return;
  if (function == nullptr || is_symmetric(function)) return;
  const auto whole = out.source.range(call->getSourceRange());
  for (unsigned i = 0; i + 1 < call->getNumArgs() && i + 1 < function->getNumParams(); ++i) {
    const clang::Expr* first = call->getArg(i);
    const clang::Expr* second = call->getArg(i + 1);
    if (llvm::isa<clang::CXXDefaultArgExpr>(second) || !is_same_type(first, second)) continue;
    if (function->getParamDecl(i)->getType().getCanonicalType() !=
        function->getParamDecl(i + 1)->getType().getCanonicalType()) {
      continue;
    }
    const auto one = out.source.range(bare(first)->getSourceRange());
    const auto two = out.source.range(bare(second)->getSourceRange());
    if (!whole || !one || !two || one->end > two->begin) continue;
    const auto part = [&](unsigned begin, unsigned end) {
      Range range = *whole;
      range.begin = begin;
      range.end = end;
      return out.source.text(range);
    };
    const std::string after = part(whole->begin, one->begin) + out.source.text(*two) + ", " +
                              out.source.text(*one) + part(two->end, whole->end);
    if (out.source.text(*one) != out.source.text(*two)) replace(out, call, "arguments", after);
  }
}

void mutate_return(Output& out, const clang::ReturnStmt* node, clang::QualType returned) {
  const clang::Expr* value = node->getRetValue();
  if (value == nullptr || returned.isNull() || returned->isReferenceType()) return;
  const clang::Expr* spelled = bare(value);
  if (llvm::isa<clang::IntegerLiteral, clang::CXXBoolLiteralExpr>(spelled)) return;
  const clang::QualType type = value->isTypeDependent() ? returned : value->getType();
  if (type->isBooleanType() || returned->isBooleanType()) {  // in C, comparisons have type int
    const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(spelled);
    const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(spelled);
    if ((binary != nullptr && binary->isEqualityOp()) || unary != nullptr) return;
    return invert(out, value, "return", "!(" + text_of(out, value) + ")");
  }
  if (type->isIntegerType() && type->isBuiltinType()) {
    return replace(out, value, "return", "(" + text_of(out, value) + ") + 1");
  }
  if (type->isPointerType() && !llvm::isa<clang::CXXNullPtrLiteralExpr>(spelled)) {
    const std::string null = is_c(out) ? "NULL" : "nullptr";
    return add(out, out.source.range(value->getSourceRange()), "return", null,
               "(" + chosen(out) + " ? " + null + " : (", "))");
  }
  if (!can_be_empty(returned) || text_of(out, value) == "{}") return;
  add(out, out.source.statement(node->getSourceRange()), "return", "return {};",
      "{ if (" + chosen(out) + ") return {}; ", " }");
}

void mutate_statement(Output& out, const clang::Stmt* node) {
  const auto* expression = llvm::dyn_cast<clang::Expr>(node);
  if (expression == nullptr || node->getBeginLoc().isMacroID()) return;
  const clang::Expr* inner = expression->IgnoreUnlessSpelledInSource();
  if (const auto* cast = llvm::dyn_cast<clang::ExplicitCastExpr>(inner)) {
    inner = cast->getSubExpr()->IgnoreUnlessSpelledInSource();
  }
  const auto* binary = llvm::dyn_cast<clang::BinaryOperator>(inner);
  const auto* unary = llvm::dyn_cast<clang::UnaryOperator>(inner);
  if (!llvm::isa<clang::CallExpr, clang::CXXDeleteExpr>(inner) &&
      !(binary != nullptr && binary->isAssignmentOp()) &&
      !(unary != nullptr && unary->isIncrementDecrementOp())) {
    return;
  }
  add(out, out.source.statement(node->getSourceRange()), "statement", ";",
      "{ if (!" + chosen(out) + ") ", " }");
}

void mutate_early_exit(Output& out, const clang::Stmt* node) {
  add(out, out.source.statement(node->getSourceRange()), "exit", ";",
      "{ if (!" + chosen(out) + ") ", " }");
}

}  // namespace fletching::mutate

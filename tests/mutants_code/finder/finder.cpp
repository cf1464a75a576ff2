#include "finder.hpp"

#include <utility>

#include "clang/AST/RecursiveASTVisitor.h"
#include "operators.hpp"

namespace fletching::mutate {
namespace {

// Types and code evaluated by the compiler cannot select a mutant at run time.
bool is_constant_place(const clang::Stmt* node) {
  return llvm::isa<clang::RequiresExpr, clang::ConceptSpecializationExpr, clang::TypeTraitExpr,
                   clang::UnaryExprOrTypeTraitExpr, clang::CXXNoexceptExpr, clang::CXXTypeidExpr,
                   clang::UserDefinedLiteral, clang::OffsetOfExpr>(node);
}

// Returns a name such as "Owner::take_child", without namespaces, one of which has the version.
std::string name_of(const clang::FunctionDecl* function) {
  const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(function);
  const std::string name = function->getNameAsString();
  return method == nullptr ? name : method->getParent()->getNameAsString() + "::" + name;
}

class Finder : public clang::RecursiveASTVisitor<Finder> {
 public:
  Finder(clang::ASTContext& context, const std::string& folder)
      : out_{context, Source(context, folder), {}, {}} {}

  std::vector<Mutant> take() { return std::move(out_.mutants); }

  bool TraverseDecl(clang::Decl* node) {
    if (node == nullptr || node->isImplicit()) return true;
    if (const auto* pattern = llvm::dyn_cast<clang::TemplateDecl>(node)) {
      return TraverseDecl(pattern->getTemplatedDecl());
    }
    if (auto* function = llvm::dyn_cast<clang::FunctionDecl>(node)) return walk(function);
    if (auto* variable = llvm::dyn_cast<clang::VarDecl>(node)) return walk(variable);
    if (auto* field = llvm::dyn_cast<clang::FieldDecl>(node)) {
      return TraverseStmt(field->getInClassInitializer());
    }
    if (auto* friendly = llvm::dyn_cast<clang::FriendDecl>(node)) {
      return TraverseDecl(friendly->getFriendDecl());
    }
    if (llvm::isa<clang::EnumDecl>(node)) return true;
    if (const auto* group = llvm::dyn_cast<clang::DeclContext>(node)) {
      for (clang::Decl* inner : group->decls()) TraverseDecl(inner);
    }
    return true;
  }

  bool TraverseStmt(clang::Stmt* node) {
    if (node == nullptr || is_constant_place(node)) return true;
    if (auto* choice = llvm::dyn_cast<clang::IfStmt>(node);
        choice != nullptr && (choice->isConstexpr() || choice->isConsteval())) {
      return TraverseStmt(choice->getThen()) && TraverseStmt(choice->getElse());
    }
    if (auto* label = llvm::dyn_cast<clang::CaseStmt>(node)) {
      visit_branch(label->getSubStmt());
      return TraverseStmt(label->getSubStmt());
    }
    above_.push_back(node);
    const bool goes_on = RecursiveASTVisitor::TraverseStmt(node);
    above_.pop_back();
    return goes_on;
  }

  bool TraverseLambdaExpr(clang::LambdaExpr* node, DataRecursionQueue* = nullptr) {
    for (const clang::LambdaCapture& capture : node->captures()) {
      if (node->isInitCapture(&capture)) TraverseDecl(capture.getCapturedVar());
    }
    const clang::QualType returned =
        std::exchange(returned_, node->getCallOperator()->getReturnType());
    const bool was_deduced = std::exchange(is_deduced_, !node->hasExplicitResultType());
    std::vector<clang::Stmt*> above = std::exchange(above_, {});
    TraverseStmt(node->getBody());
    above_ = std::move(above);
    is_deduced_ = was_deduced;
    returned_ = returned;
    return true;
  }

  bool TraverseTypeLoc(clang::TypeLoc) { return true; }
  bool TraverseType(clang::QualType) { return true; }
  bool TraverseTemplateArgumentLoc(const clang::TemplateArgumentLoc&) { return true; }
  bool TraverseNestedNameSpecifierLoc(clang::NestedNameSpecifierLoc) { return true; }

  bool VisitBinaryOperator(clang::BinaryOperator* node) {
    mutate_binary(out_, node, node->getOpcode(), node->getLHS(), node->getRHS(),
                  node->getOperatorLoc());
    return true;
  }

  bool VisitCXXRewrittenBinaryOperator(clang::CXXRewrittenBinaryOperator* node) {
    const auto parts = node->getDecomposedForm();
    mutate_binary(out_, node, parts.Opcode, parts.LHS, parts.RHS, node->getOperatorLoc());
    return true;
  }

  bool VisitCXXOperatorCallExpr(clang::CXXOperatorCallExpr* node) {
    if (!node->isComparisonOp() || node->getNumArgs() != 2) return true;
    const auto code = clang::BinaryOperator::getOverloadedOpcode(node->getOperator());
    mutate_binary(out_, node, code, node->getArg(0), node->getArg(1), node->getOperatorLoc());
    return true;
  }

  bool VisitUnaryOperator(clang::UnaryOperator* node) {
    mutate_unary(out_, node);
    return true;
  }

  bool VisitIntegerLiteral(clang::IntegerLiteral* node) {
    mutate_integer(out_, node, parent());
    return true;
  }

  bool VisitCXXBoolLiteralExpr(clang::CXXBoolLiteralExpr* node) {
    mutate_bool(out_, node);
    return true;
  }

  bool VisitCallExpr(clang::CallExpr* node) {
    mutate_call(out_, node);
    return true;
  }

  bool VisitConditionalOperator(clang::ConditionalOperator* node) {
    mutate_condition(out_, node->getCond());
    return true;
  }

  bool VisitIfStmt(clang::IfStmt* node) {
    if (node->getConditionVariable() == nullptr) mutate_condition(out_, node->getCond());
    visit_branch(node->getThen());
    visit_branch(node->getElse());
    return true;
  }

  bool VisitWhileStmt(clang::WhileStmt* node) {
    if (node->getConditionVariable() == nullptr) mutate_condition(out_, node->getCond());
    visit_branch(node->getBody());
    return true;
  }

  bool VisitForStmt(clang::ForStmt* node) {
    if (node->getCond() != nullptr) mutate_condition(out_, node->getCond());
    visit_branch(node->getBody());
    return true;
  }

  bool VisitDoStmt(clang::DoStmt* node) {
    mutate_condition(out_, node->getCond());
    return true;
  }

  bool VisitCXXForRangeStmt(clang::CXXForRangeStmt* node) {
    visit_branch(node->getBody());
    return true;
  }

  bool VisitDefaultStmt(clang::DefaultStmt* node) {
    visit_branch(node->getSubStmt());
    return true;
  }

  bool VisitCompoundStmt(clang::CompoundStmt* node) {
    for (const clang::Stmt* inner : node->body()) mutate_statement(out_, inner);
    return true;
  }

  bool VisitReturnStmt(clang::ReturnStmt* node) {
    if (!is_deduced_ || !returned_->isRecordType()) mutate_return(out_, node, returned_);
    if (can_be_left_out()) mutate_early_exit(out_, node);
    return true;
  }

  bool VisitBreakStmt(clang::BreakStmt* node) {
    if (can_be_left_out()) mutate_early_exit(out_, node);
    return true;
  }

  bool VisitContinueStmt(clang::ContinueStmt* node) {
    if (can_be_left_out()) mutate_early_exit(out_, node);
    return true;
  }

 private:
  bool walk(clang::FunctionDecl* function) {
    if (!function->doesThisDeclarationHaveABody() || function->isConsteval()) return true;
    if (function->isDefaulted()) return true;
    const std::string name = std::exchange(out_.function, name_of(function));
    const clang::QualType returned = std::exchange(returned_, function->getReturnType());
    const bool was_deduced =
        std::exchange(is_deduced_, function->getReturnType()->getContainedAutoType() != nullptr);
    std::vector<clang::Stmt*> above = std::exchange(above_, {});
    if (const auto* constructor = llvm::dyn_cast<clang::CXXConstructorDecl>(function)) {
      for (const clang::CXXCtorInitializer* initializer : constructor->inits()) {
        if (initializer->isWritten()) TraverseStmt(initializer->getInit());
      }
    }
    TraverseStmt(function->getBody());
    above_ = std::move(above);
    is_deduced_ = was_deduced;
    returned_ = returned;
    out_.function = name;
    return true;
  }

  bool walk(clang::VarDecl* variable) {
    if (llvm::isa<clang::ParmVarDecl>(variable) || variable->isCXXForRangeDecl()) return true;
    if (!variable->isLocalVarDecl() && !variable->isInitCapture()) return true;
    if (variable->isConstexpr() || !variable->hasInit()) return true;
    const clang::Expr* init = variable->getInit();
    // A constant that may be used as an array length.
    if (variable->mightBeUsableInConstantExpressions(out_.context) && !init->isValueDependent() &&
        init->isCXX11ConstantExpr(out_.context)) {
      return true;
    }
    return TraverseStmt(variable->getInit());
  }

  void visit_branch(const clang::Stmt* branch) {
    if (branch != nullptr && !llvm::isa<clang::CompoundStmt>(branch)) {
      mutate_statement(out_, branch);
    }
  }

  [[nodiscard]] const clang::Stmt* parent() const {
    return above_.size() < 2 ? nullptr : above_[above_.size() - 2];
  }

  /// Whether the statement is in a branch without an else, so that the code after it runs instead.
  [[nodiscard]] bool can_be_left_out() const {
    for (auto above = above_.rbegin() + 1; above < above_.rend(); ++above) {
      if (llvm::isa<clang::CompoundStmt>(*above)) continue;
      const auto* choice = llvm::dyn_cast<clang::IfStmt>(*above);
      return choice != nullptr && choice->getElse() == nullptr;
    }
    return false;
  }

  Output out_;
  clang::QualType returned_;
  bool is_deduced_ = false;
  std::vector<clang::Stmt*> above_;  // the visited node and its parents, outermost first
};

}  // namespace

std::vector<Mutant> find_mutants(clang::ASTContext& context, const std::string& folder) {
  Finder finder(context, folder);
  finder.TraverseDecl(context.getTranslationUnitDecl());
  return finder.take();
}

}  // namespace fletching::mutate

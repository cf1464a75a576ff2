#include "evaluate.hpp"

#include <memory>
#include <vector>

#include "clang/AST/ASTDiagnostic.h"
#include "clang/Lex/Preprocessor.h"
#include "clang/Parse/RAIIObjectsForParser.h"
#include "clang/Sema/Sema.h"
#include "llvm/ADT/STLExtras.h"

namespace fletching::extract {
namespace {

using clang::Token;
using clang::tok::TokenKind;

// More than any constant needs, and few enough to stop a macro that doubles itself forty times.
constexpr size_t kMostTokens = 2000;

// Its address marks the end of a body.
constexpr char kEndMark = 0;

// Adds a marked end, because the parser invents an end when it fails.
void enter_tokens(llvm::ArrayRef<Token> tokens, clang::Preprocessor& preprocessor, bool expand) {
  auto stream = std::make_unique<Token[]>(tokens.size() + 1);
  Token* end = llvm::copy(tokens, stream.get());
  end->startToken();
  end->setKind(TokenKind::eof);
  end->setEofData(&kEndMark);
  preprocessor.EnterTokenStream(std::move(stream), tokens.size() + 1, !expand,
                                /*IsReinject=*/false);
}

bool is_our_end(const Token& token) {
  return token.is(TokenKind::eof) && token.getEofData() == &kEndMark;
}

// The body after macro expansion. Empty if it is too long, or if it is C++ and the language is C,
// where Clang 19 never returns from `( ::`.
std::vector<Token> expand_macros(llvm::ArrayRef<Token> body, clang::Preprocessor& preprocessor) {
  std::vector<Token> expanded(body);
  for (Token& token : expanded) {
    if (token.is(TokenKind::raw_identifier)) preprocessor.LookUpIdentifierInfo(token);
  }
  enter_tokens(expanded, preprocessor, /*expand=*/true);
  expanded.clear();
  Token token;
  for (preprocessor.Lex(token); token.isNot(TokenKind::eof); preprocessor.Lex(token)) {
    const bool hangs = token.is(TokenKind::coloncolon) && !preprocessor.getLangOpts().CPlusPlus;
    if (hangs || expanded.size() == kMostTokens) return {};
    expanded.push_back(token);
  }
  return expanded;
}

// Compilers define bit shifts into and past the sign, which are undefined in C17.
bool is_harmless(const clang::PartialDiagnostic& note) {
  return note.getDiagID() == clang::diag::note_constexpr_lshift_of_negative ||
         note.getDiagID() == clang::diag::note_constexpr_lshift_discards;
}

}  // namespace

std::optional<llvm::APSInt> evaluate(llvm::ArrayRef<Token> body, clang::Parser& parser) {
  clang::Preprocessor& preprocessor = parser.getPreprocessor();
  const clang::DiagnosticErrorTrap trap(preprocessor.getDiagnostics());
  const clang::ParenBraceBracketBalancer balancer(parser);
  enter_tokens(expand_macros(body, preprocessor), preprocessor, /*expand=*/false);
  parser.ConsumeAnyToken();
  clang::ExprResult expression = parser.ParseConstantExpression();
  const bool whole = parser.getCurToken().is(TokenKind::eof);
  while (!is_our_end(parser.getCurToken())) parser.ConsumeAnyToken();
  if (!whole || !expression.isUsable()) return std::nullopt;
  clang::Sema& sema = parser.getActions();
  expression = sema.VerifyIntegerConstantExpression(expression.get(), /*Result=*/nullptr);
  if (expression.isInvalid() || trap.hasUnrecoverableErrorOccurred()) return std::nullopt;
  // In C, undefined behavior yields a value and a note.
  llvm::SmallVector<clang::PartialDiagnosticAt> notes;
  llvm::APSInt value = expression.get()->EvaluateKnownConstInt(sema.Context, &notes);
  if (!notes.empty() && !is_harmless(notes.front().second)) return std::nullopt;
  return value;
}

}  // namespace fletching::extract

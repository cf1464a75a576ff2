#include "directives.hpp"

#include <utility>

#include "clang/Lex/Lexer.h"

namespace fletching::extract {
namespace {

using clang::Token;
using clang::tok::TokenKind;

// One `#if` ... `#endif`.
struct Level {
  std::string condition;            // of the branch that the scan is in
  std::vector<std::string> passed;  // of the branches before it
  std::optional<size_t> guard;      // index of the guard that this is
};

// `#ifndef X`, until something other than `#define X` follows.
struct Candidate {
  std::string macro;
  unsigned keyword_offset;
};

bool IsSimple(llvm::StringRef condition) {
  condition.consume_front("!");
  return condition.consume_front("defined(") && condition.consume_back(")") &&
         condition.find_first_of("()&|! ") == llvm::StringRef::npos;
}

std::string Negated(const std::string& condition) {
  if (!IsSimple(condition)) return "!(" + condition + ")";
  return condition.front() == '!' ? condition.substr(1) : "!" + condition;
}

// All of it: a later branch is read only when those before it were not.
std::string BranchCondition(const Level& level) {
  std::string all;
  for (const std::string& passed : level.passed) {
    if (!all.empty()) all += " && ";
    all += Negated(passed);
  }
  if (all.empty()) return level.condition;
  if (level.condition.empty()) return all;
  const bool simple = IsSimple(level.condition);
  return all + " && " + (simple ? level.condition : "(" + level.condition + ")");
}

class Scanner {
 public:
  Scanner(clang::FileID file, const clang::SourceManager& sources,
          const clang::LangOptions& language)
      : sources_(sources),
        language_(language),
        lexer_(file, sources.getBufferOrFake(file), sources, language) {}

  Directives Scan() {
    Next();
    while (token_.isNot(TokenKind::eof)) {
      if (token_.is(TokenKind::hash) && token_.isAtStartOfLine()) {
        ScanDirective();
      } else {
        candidate_.reset();
        Next();
      }
    }
    while (!levels_.empty()) EndIf(Offset(token_));
    return std::move(found_);
  }

 private:
  void Next() { lexer_.LexFromRawLexer(token_); }

  [[nodiscard]] unsigned Offset(const Token& token) const {
    return sources_.getFileOffset(token.getLocation());
  }

  void ScanDirective() {
    Next();
    std::vector<Token> line;
    while (token_.isNot(TokenKind::eof) && !token_.isAtStartOfLine()) {
      line.push_back(token_);
      Next();
    }
    if (line.empty() || line.front().isNot(TokenKind::raw_identifier)) return;
    const Token keyword = line.front();
    const std::optional<Candidate> candidate = std::exchange(candidate_, std::nullopt);
    const llvm::ArrayRef<Token> rest = llvm::ArrayRef(line).drop_front();
    const llvm::StringRef name = keyword.getRawIdentifier();
    if (name == "define") {
      AddDefine(rest, candidate);
    } else if (name == "if" || name == "ifdef" || name == "ifndef") {
      Begin(keyword, Condition(name, rest));
    } else if (name == "elif" || name == "elifdef" || name == "elifndef") {
      NextBranch(Condition(name.drop_front(2), rest));
    } else if (name == "else") {
      NextBranch("");
    } else if (name == "endif") {
      EndIf(Offset(keyword));
    }
  }

  void Begin(const Token& keyword, std::string condition) {
    if (IsSimple(condition) && condition.front() == '!') {
      const llvm::StringRef macro = llvm::StringRef(condition).drop_front(9).drop_back();
      candidate_ = Candidate{macro.str(), Offset(keyword)};
    }
    levels_.push_back({std::move(condition), {}, std::nullopt});
  }

  void NextBranch(std::string condition) {
    if (levels_.empty()) return;
    Level& level = levels_.back();
    level.passed.push_back(std::exchange(level.condition, std::move(condition)));
  }

  void EndIf(unsigned offset) {
    if (levels_.empty()) return;
    if (const std::optional<size_t> guard = levels_.back().guard) {
      found_.guards[*guard].end_offset = offset;
    }
    levels_.pop_back();
  }

  void AddDefine(llvm::ArrayRef<Token> line, const std::optional<Candidate>& candidate) {
    if (line.empty() || line.front().isNot(TokenKind::raw_identifier)) return;
    Define define;
    define.name = line.front().getRawIdentifier().str();
    define.name_offset = Offset(line.front());
    define.conditions = Conditions(levels_.size());
    line = line.drop_front();
    define.function_like =
        !line.empty() && line.front().is(TokenKind::l_paren) && !line.front().hasLeadingSpace();
    define.body.assign(line.begin(), line.end());
    define.text = Spell(line);
    if (candidate && candidate->macro == define.name) {
      levels_.back().guard = found_.guards.size();
      found_.guards.push_back({define.name, candidate->keyword_offset, define.name_offset, 0,
                               Conditions(levels_.size() - 1)});
    }
    found_.defines.push_back(std::move(define));
  }

  // Every spelling of "is it defined" comes out as `defined(X)` or `!defined(X)`.
  [[nodiscard]] std::string Condition(llvm::StringRef keyword, llvm::ArrayRef<Token> line) const {
    if (keyword != "if") {
      const std::string name = line.empty() ? "" : Spell(line.take_front());
      return (keyword == "ifndef" ? "!defined(" : "defined(") + name + ")";
    }
    std::string spelled;
    for (const Token& token : line)
      spelled += clang::Lexer::getSpelling(token, sources_, language_);
    const llvm::StringRef sign = llvm::StringRef(spelled).starts_with("!") ? "!" : "";
    const llvm::ArrayRef<Token> atom = line.drop_front(sign.size());
    if (atom.size() == 2 && IsDefined(atom[0]))
      return sign.str() + "defined(" + Spell(atom[1]) + ")";
    return IsSimple(spelled) ? spelled : Spell(line);
  }

  static bool IsDefined(const Token& token) {
    return token.is(TokenKind::raw_identifier) && token.getRawIdentifier() == "defined";
  }

  [[nodiscard]] std::vector<std::string> Conditions(size_t depth) const {
    std::vector<std::string> conditions;
    conditions.reserve(depth);
    for (size_t i = 0; i < depth; ++i) conditions.push_back(BranchCondition(levels_[i]));
    return conditions;
  }

  [[nodiscard]] std::string Spell(llvm::ArrayRef<Token> tokens) const {
    std::string text;
    for (const Token& token : tokens) {
      if (!text.empty() && token.hasLeadingSpace()) text += ' ';
      text += clang::Lexer::getSpelling(token, sources_, language_);
    }
    return text;
  }

  const clang::SourceManager& sources_;
  const clang::LangOptions& language_;
  clang::Lexer lexer_;
  Token token_;
  std::vector<Level> levels_;
  std::optional<Candidate> candidate_;
  Directives found_;
};

}  // namespace

Directives ScanDirectives(clang::FileID file, const clang::SourceManager& sources,
                          const clang::LangOptions& language) {
  return Scanner(file, sources, language).Scan();
}

}  // namespace fletching::extract

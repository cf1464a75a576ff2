#include "directives.hpp"

#include <utility>

#include "clang/Lex/Lexer.h"

namespace fletching::extract {
namespace {

using clang::Token;
using clang::tok::TokenKind;

// One `#if` ... `#endif`.
struct Level {
  std::string condition;            // the current branch's condition
  std::vector<std::string> passed;  // conditions of the previous branches
  std::optional<size_t> guard;      // index of the guard, if this is one
};

// An `#ifndef X` that becomes a guard if `#define X` follows.
struct Candidate {
  std::string macro;
  unsigned keyword_offset;
};

bool is_simple(llvm::StringRef condition) {
  condition.consume_front("!");
  return condition.consume_front("defined(") && condition.consume_back(")") &&
         condition.find_first_of("()&|! ") == llvm::StringRef::npos;
}

std::string negate(const std::string& condition) {
  if (!is_simple(condition)) return "!(" + condition + ")";
  return condition.front() == '!' ? condition.substr(1) : "!" + condition;
}

// The whole condition: a later branch is read only if the previous ones were not.
std::string branch_condition(const Level& level) {
  std::string all;
  for (const std::string& passed : level.passed) {
    if (!all.empty()) all += " && ";
    all += negate(passed);
  }
  if (all.empty()) return level.condition;
  if (level.condition.empty()) return all;
  const bool simple = is_simple(level.condition);
  return all + " && " + (simple ? level.condition : "(" + level.condition + ")");
}

class Scanner {
 public:
  Scanner(clang::FileID file, const clang::SourceManager& sources,
          const clang::LangOptions& language)
      : sources_(sources),
        language_(language),
        lexer_(file, sources.getBufferOrFake(file), sources, language) {}

  Directives scan() {
    next();
    while (token_.isNot(TokenKind::eof)) {
      if (token_.is(TokenKind::hash) && token_.isAtStartOfLine()) {
        scan_directive();
      } else {
        candidate_.reset();
        next();
      }
    }
    while (!levels_.empty()) end_level(offset_of(token_));
    return std::move(found_);
  }

 private:
  void next() { lexer_.LexFromRawLexer(token_); }

  [[nodiscard]] unsigned offset_of(const Token& token) const {
    return sources_.getFileOffset(token.getLocation());
  }

  void scan_directive() {
    next();
    std::vector<Token> line;
    while (token_.isNot(TokenKind::eof) && !token_.isAtStartOfLine()) {
      line.push_back(token_);
      next();
    }
    if (line.empty() || line.front().isNot(TokenKind::raw_identifier)) return;
    const Token keyword = line.front();
    const std::optional<Candidate> candidate = std::exchange(candidate_, std::nullopt);
    const llvm::ArrayRef<Token> rest = llvm::ArrayRef(line).drop_front();
    const llvm::StringRef name = keyword.getRawIdentifier();
    if (name == "define") {
      add_define(rest, candidate);
    } else if (name == "if" || name == "ifdef" || name == "ifndef") {
      begin_level(keyword, spell_condition(name, rest));
    } else if (name == "elif" || name == "elifdef" || name == "elifndef") {
      next_branch(spell_condition(name.drop_front(2), rest));
    } else if (name == "else") {
      next_branch("");
    } else if (name == "endif") {
      end_level(offset_of(keyword));
    }
  }

  void begin_level(const Token& keyword, std::string condition) {
    if (is_simple(condition) && condition.front() == '!') {
      const llvm::StringRef macro = llvm::StringRef(condition).drop_front(9).drop_back();
      candidate_ = Candidate{macro.str(), offset_of(keyword)};
    }
    levels_.push_back({std::move(condition), {}, std::nullopt});
  }

  void next_branch(std::string condition) {
    if (levels_.empty()) return;
    Level& level = levels_.back();
    level.passed.push_back(std::exchange(level.condition, std::move(condition)));
  }

  void end_level(unsigned offset) {
    if (levels_.empty()) return;
    if (const std::optional<size_t> guard = levels_.back().guard) {
      found_.guards[*guard].end_offset = offset;
    }
    levels_.pop_back();
  }

  void add_define(llvm::ArrayRef<Token> line, const std::optional<Candidate>& candidate) {
    if (line.empty() || line.front().isNot(TokenKind::raw_identifier)) return;
    Define define;
    define.name = line.front().getRawIdentifier().str();
    define.name_offset = offset_of(line.front());
    define.conditions = conditions_around(levels_.size());
    line = line.drop_front();
    define.function_like =
        !line.empty() && line.front().is(TokenKind::l_paren) && !line.front().hasLeadingSpace();
    define.body.assign(line.begin(), line.end());
    define.text = spell(line);
    if (candidate && candidate->macro == define.name) {
      levels_.back().guard = found_.guards.size();
      found_.guards.push_back({define.name, candidate->keyword_offset, define.name_offset, 0,
                               conditions_around(levels_.size() - 1)});
    }
    found_.defines.push_back(std::move(define));
  }

  // Normalizes every form of a definition check to `defined(X)` or `!defined(X)`.
  [[nodiscard]] std::string spell_condition(llvm::StringRef keyword,
                                            llvm::ArrayRef<Token> line) const {
    if (keyword != "if") {
      const std::string name = line.empty() ? "" : spell(line.take_front());
      return (keyword == "ifndef" ? "!defined(" : "defined(") + name + ")";
    }
    std::string spelled;
    for (const Token& token : line)
      spelled += clang::Lexer::getSpelling(token, sources_, language_);
    const llvm::StringRef sign = llvm::StringRef(spelled).starts_with("!") ? "!" : "";
    const llvm::ArrayRef<Token> atom = line.drop_front(sign.size());
    if (atom.size() == 2 && is_defined(atom[0]))
      return sign.str() + "defined(" + spell(atom[1]) + ")";
    return is_simple(spelled) ? spelled : spell(line);
  }

  static bool is_defined(const Token& token) {
    return token.is(TokenKind::raw_identifier) && token.getRawIdentifier() == "defined";
  }

  [[nodiscard]] std::vector<std::string> conditions_around(size_t depth) const {
    std::vector<std::string> conditions;
    conditions.reserve(depth);
    for (size_t i = 0; i < depth; ++i) conditions.push_back(branch_condition(levels_[i]));
    return conditions;
  }

  [[nodiscard]] std::string spell(llvm::ArrayRef<Token> tokens) const {
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

Directives scan_directives(clang::FileID file, const clang::SourceManager& sources,
                           const clang::LangOptions& language) {
  return Scanner(file, sources, language).scan();
}

}  // namespace fletching::extract

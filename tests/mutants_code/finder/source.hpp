// The location and text of an expression or a statement.
#ifndef FLETCHING_MUTANTS_CODE_SOURCE_HPP
#define FLETCHING_MUTANTS_CODE_SOURCE_HPP

#include <optional>
#include <string>

#include "clang/AST/ASTContext.h"
#include "clang/Basic/SourceLocation.h"

namespace fletching::mutate {

/// Byte offsets in one file.
struct Range {
  std::string file;
  unsigned begin = 0;
  unsigned end = 0;
  unsigned line = 0;
  unsigned column = 0;
};

/// Results are empty for code that comes only from a macro, and for other folders.
class Source {
 public:
  Source(const clang::ASTContext& context, std::string folder)
      : sources_(context.getSourceManager()),
        options_(context.getLangOpts()),
        folder_(std::move(folder)) {}

  [[nodiscard]] std::optional<Range> range(clang::SourceRange tokens) const;
  /// Includes the semicolon.
  [[nodiscard]] std::optional<Range> statement(clang::SourceRange tokens) const;

  /// The text on one line and without comments, so that a copy of it does not move lines.
  [[nodiscard]] std::string text(const Range& range) const;

 private:
  const clang::SourceManager& sources_;
  const clang::LangOptions& options_;
  std::string folder_;
};

}  // namespace fletching::mutate

#endif  // FLETCHING_MUTANTS_CODE_SOURCE_HPP

#include "source.hpp"

#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"

namespace fletching::mutate {

std::optional<Range> Source::range(clang::SourceRange tokens) const {
  const clang::CharSourceRange chars = clang::Lexer::makeFileCharRange(
      clang::CharSourceRange::getTokenRange(tokens), sources_, options_);
  if (chars.isInvalid()) return std::nullopt;
  const clang::PresumedLoc seen = sources_.getPresumedLoc(chars.getBegin());
  const auto [file, begin] = sources_.getDecomposedLoc(chars.getBegin());
  const unsigned end = sources_.getFileOffset(chars.getEnd());
  const auto entry = sources_.getFileEntryRefForID(file);
  if (!entry || !entry->getName().starts_with(folder_) || end <= begin) return std::nullopt;
  return Range{entry->getName().str(), begin, end, seen.getLine(), seen.getColumn()};
}

std::optional<Range> Source::statement(clang::SourceRange tokens) const {
  std::optional<Range> found = range(tokens);
  if (!found) return std::nullopt;
  const clang::SourceLocation last = sources_.getFileLoc(tokens.getEnd());
  const clang::SourceLocation after = clang::Lexer::findLocationAfterToken(
      last, clang::tok::semi, sources_, options_, /*SkipTrailingWhitespaceAndNewLine=*/false);
  if (after.isInvalid()) return std::nullopt;
  found->end = sources_.getFileOffset(after);
  return found;
}

std::string Source::text(const Range& range) const {
  const auto file = sources_.getFileManager().getOptionalFileRef(range.file);
  const llvm::StringRef all = sources_.getBufferData(sources_.translateFile(*file));
  const llvm::StringRef part = all.slice(range.begin, range.end);
  const std::string copy = part.str();  // the lexer needs NUL-terminated text
  clang::Lexer lexer(clang::SourceLocation(), options_, copy.data(), copy.data(),
                     copy.data() + copy.size());
  std::string text;
  bool is_last = false;
  while (!is_last) {
    clang::Token token;
    is_last = lexer.LexFromRawLexer(token);
    if (token.is(clang::tok::eof)) break;
    const auto at = static_cast<size_t>(lexer.getBufferLocation() - copy.data());
    if (!text.empty() && (token.hasLeadingSpace() || token.isAtStartOfLine())) text += ' ';
    text.append(copy, at - token.getLength(), token.getLength());
  }
  return text;
}

}  // namespace fletching::mutate

// Reads the preprocessor directives of a file as text, including skipped ones.
#ifndef FLETCHING_EXTRACT_DIRECTIVES_HPP
#define FLETCHING_EXTRACT_DIRECTIVES_HPP

#include <optional>
#include <string>
#include <vector>

#include "clang/Basic/LangOptions.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Token.h"

namespace fletching::extract {

/// A `#define`. Places are offsets in the file.
struct Define {
  std::string name;
  unsigned name_offset = 0;
  bool function_like = false;
  std::vector<clang::Token> body;  // raw tokens
  std::string text;                // the spelled body
  std::vector<std::string> conditions;
};

/// `#ifndef X` directly followed by `#define X`.
struct Guard {
  std::string macro;
  unsigned keyword_offset = 0;  // of `ifndef`
  unsigned define_offset = 0;   // of X after `define`
  unsigned end_offset = 0;      // of `endif`, or the end of the file
  std::vector<std::string> conditions;
};

struct Directives {
  std::vector<Define> defines;
  std::vector<Guard> guards;
};

Directives scan_directives(clang::FileID file, const clang::SourceManager& sources,
                           const clang::LangOptions& language);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_DIRECTIVES_HPP

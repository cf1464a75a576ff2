// The macros and guards of a run, as the preprocessor reached them and as the files contain them.
#ifndef FLETCHING_EXTRACT_MACROS_HPP
#define FLETCHING_EXTRACT_MACROS_HPP

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "clang/Lex/PPCallbacks.h"
#include "clang/Parse/Parser.h"
#include "llvm/Support/JSON.h"

namespace fletching::extract {

/// A file and offset, which are equal for repeated inclusions of a file.
using Place = std::pair<const clang::FileEntry*, unsigned>;

/// Records of the preprocessor for user files.
struct Preprocessing {
  struct Definition {
    Place place;
    std::string name;
    bool undefined = false;  // by a later `#undef`
  };
  std::vector<Definition>
      definitions;               // in order; a place is repeated if its file is included again
  std::set<Place> conditionals;  // evaluated `#if` and `#ifndef`: the keyword's place
};

/// Fills `result`, which must outlive the parsing of the file.
std::unique_ptr<clang::PPCallbacks> record_preprocessing(const clang::SourceManager& sources,
                                                         Preprocessing& result);

/// Adds "guards", "macros" and "skipped_macros" after the file has been parsed.
void add_macros(llvm::json::Object& run, const Preprocessing& done, clang::Parser& parser);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_MACROS_HPP

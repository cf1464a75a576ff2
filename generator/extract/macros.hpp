// The macros and guards of a run, as the preprocessor reached them and as the files have them.
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

/// A place that is the same when a file is included twice: file and offset.
using Place = std::pair<const clang::FileEntry*, unsigned>;

/// The work of the preprocessor in user files.
struct Preprocessing {
  struct Definition {
    Place place;
    std::string name;
    bool undefined = false;  // by a later `#undef`
  };
  std::vector<Definition>
      definitions;               // in order; the same place again when a file is included again
  std::set<Place> conditionals;  // `#if` and `#ifndef` that were evaluated; the keyword's place
};

/// Fills `result`, which outlives the parsing of the file.
std::unique_ptr<clang::PPCallbacks> record_preprocessing(const clang::SourceManager& sources,
                                                         Preprocessing& result);

/// Adds "guards", "macros" and "skipped_macros" once the file has been parsed.
void add_macros(llvm::json::Object& run, const Preprocessing& done, clang::Parser& parser);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_MACROS_HPP

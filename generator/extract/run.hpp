// One run: one header, one language, one target.
#ifndef FLETCHING_EXTRACT_RUN_HPP
#define FLETCHING_EXTRACT_RUN_HPP

#include <string>
#include <vector>

#include "clang/Basic/FileManager.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace fletching::extract {

struct Input {
  std::string file;
  std::vector<std::string> flags;
};

/// "c" or "c++", and a target triple accepted by `check_triple`.
struct Run {
  std::string language;
  std::string target;
};

/// Returns the facts listed in README.md. Fails if clang cannot start, for example because of an
/// unknown flag; errors in the header are part of the facts.
llvm::Expected<llvm::json::Object> extract_facts(const Input& input, const Run& run,
                                                 clang::FileManager& files);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_RUN_HPP

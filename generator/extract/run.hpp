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
  std::string resource_dir;  // clang's, for <stdint.h> and its like
  std::vector<std::string> flags;
};

/// "c" or "c++", and a target triple that `check_triple` has accepted.
struct Run {
  std::string language;
  std::string target;
};

/// The facts as README.md lists them. An error when clang would not begin, such as for an unknown
/// flag; errors in the header itself are in the facts.
llvm::Expected<llvm::json::Object> extract_facts(const Input& input, const Run& run,
                                                 clang::FileManager& files);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_RUN_HPP

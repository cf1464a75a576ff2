// One run: one header, one language, one target.
#pragma once

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

/// "c" or "c++", and a target triple that `CheckTriple` has accepted.
struct Run {
  std::string language;
  std::string target;
};

/// The facts as README.md lists them. An error when clang would not begin, such as for an unknown
/// flag; what is wrong in the header itself is in the facts.
llvm::Expected<llvm::json::Object> Extract(const Input& input, const Run& run,
                                           clang::FileManager& files);

}  // namespace fletching::extract

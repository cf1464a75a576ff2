// Clang's own freestanding headers. CMakeLists.txt writes clang_headers.cpp from LLVM's files, so
// that the program needs no Clang where it runs.
#ifndef FLETCHING_EXTRACT_CLANG_HEADERS_HPP
#define FLETCHING_EXTRACT_CLANG_HEADERS_HPP

#include "llvm/ADT/ArrayRef.h"

namespace fletching::extract {

struct MemoryHeader {
  const char* name;  // "stdint.h"
  const char* text;
};

llvm::ArrayRef<MemoryHeader> clang_headers();

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_CLANG_HEADERS_HPP

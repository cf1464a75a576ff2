// The files that exist only in memory: Clang's headers, stand-ins for the standard headers that ABI
// headers include and Clang lacks, and standard input.
#ifndef FLETCHING_EXTRACT_STAND_INS_HPP
#define FLETCHING_EXTRACT_STAND_INS_HPP

#include <memory>

#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/VirtualFileSystem.h"

namespace fletching::extract {

/// Searched after the user's include folders and Clang's headers.
inline constexpr char kStandInFolder[] = "/fletching-stand-ins";

/// Clang's headers.
inline constexpr char kClangFolder[] = "/fletching-clang";

/// The name of standard input, in the current folder.
inline constexpr char kStandardInput[] = "<stdin>";

/// The real file system, overlaid with the headers in memory and with standard input, which may be
/// null.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> file_system(
    std::unique_ptr<llvm::MemoryBuffer> standard_input);

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_STAND_INS_HPP

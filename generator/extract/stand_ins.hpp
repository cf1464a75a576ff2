// The standard headers that ABI headers include and clang's header folder lacks.
#ifndef FLETCHING_EXTRACT_STAND_INS_HPP
#define FLETCHING_EXTRACT_STAND_INS_HPP

#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/Support/VirtualFileSystem.h"

namespace fletching::extract {

/// Searched after the user's include folders and clang's folder.
inline constexpr char kStandInFolder[] = "/fletching-stand-ins";

/// The real file system, overlaid with the stand-ins.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> file_system_with_stand_ins();

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_STAND_INS_HPP

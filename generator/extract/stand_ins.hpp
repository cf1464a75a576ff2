// The few standard headers that ABI headers include and that clang's own header folder lacks.
#ifndef FLETCHING_EXTRACT_STAND_INS_HPP
#define FLETCHING_EXTRACT_STAND_INS_HPP

#include "llvm/ADT/IntrusiveRefCntPtr.h"
#include "llvm/Support/VirtualFileSystem.h"

namespace fletching::extract {

/// Searched after every include folder of the user's and after clang's own.
inline constexpr char kStandInFolder[] = "/fletching-stand-ins";

/// The real file system with the stand-ins over it.
llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> file_system_with_stand_ins();

}  // namespace fletching::extract

#endif  // FLETCHING_EXTRACT_STAND_INS_HPP

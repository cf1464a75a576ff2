#include "stand_ins.hpp"

#include <string>
#include <utility>

#include "clang_headers.hpp"

namespace fletching::extract {
namespace {

// Contain only the names that inline helpers of an ABI header use. Function bodies are not read,
// but their declarations are.
constexpr MemoryHeader kStandIns[] = {
    {"assert.h", R"(#undef assert
#define assert(condition) ((void)sizeof(condition))
#if !defined(__cplusplus) && __STDC_VERSION__ < 202311L
#undef static_assert
#define static_assert _Static_assert
#endif
)"},
    {"errno.h", R"(#pragma once
extern int errno;
#define EINVAL 22
#define ENOMEM 12
)"},
    {"inttypes.h", "#pragma once\n#include <stdint.h>\n"},
    {"stdio.h", R"(#pragma once
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct _IO_FILE FILE;
extern FILE* stderr;
int fprintf(FILE*, const char*, ...);
int snprintf(char*, size_t, const char*, ...);
#ifdef __cplusplus
}
#endif
)"},
    {"stdlib.h", R"(#pragma once
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
void* malloc(size_t);
void* calloc(size_t, size_t);
void* realloc(void*, size_t);
void free(void*);
void abort(void);
#ifdef __cplusplus
}
#endif
)"},
    {"string.h", R"(#pragma once
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
void* memcpy(void*, const void*, size_t);
void* memmove(void*, const void*, size_t);
void* memset(void*, int, size_t);
int memcmp(const void*, const void*, size_t);
size_t strlen(const char*);
int strcmp(const char*, const char*);
#ifdef __cplusplus
}
#endif
)"},
    {"cassert", "#include <assert.h>\n"},
    {"cerrno", "#include <errno.h>\n"},
    {"cinttypes", "#include <cstdint>\n"},
    {"cstdio", "#include <stdio.h>\n"},
    {"cstddef", R"(#pragma once
#include <stddef.h>
namespace std {
using ::ptrdiff_t;
using ::size_t;
using nullptr_t = decltype(nullptr);
}
)"},
    {"cstdint", R"(#pragma once
#include <stdint.h>
namespace std {
using ::int8_t;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::uint8_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::intptr_t;
using ::uintptr_t;
}
)"},
    {"cstdlib", R"(#pragma once
#include <stdlib.h>
namespace std {
using ::abort;
using ::calloc;
using ::free;
using ::malloc;
using ::realloc;
}
)"},
    {"cstring", R"(#pragma once
#include <string.h>
namespace std {
using ::memcmp;
using ::memcpy;
using ::memmove;
using ::memset;
using ::strcmp;
using ::strlen;
}
)"},
};

void add_files(llvm::vfs::InMemoryFileSystem& memory, const std::string& folder,
               llvm::ArrayRef<MemoryHeader> headers) {
  for (const MemoryHeader& header : headers) {
    memory.addFile(folder + "/" + header.name, 0, llvm::MemoryBuffer::getMemBuffer(header.text));
  }
}

}  // namespace

llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem> file_system(
    std::unique_ptr<llvm::MemoryBuffer> standard_input) {
  auto overlay =
      llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(llvm::vfs::getRealFileSystem());
  auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  add_files(*memory, kClangFolder, clang_headers());
  add_files(*memory, kStandInFolder, kStandIns);
  overlay->pushOverlay(memory);  // sets the current folder of `memory`
  if (standard_input) memory->addFile(kStandardInput, 0, std::move(standard_input));
  return overlay;
}

}  // namespace fletching::extract

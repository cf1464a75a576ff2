#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
#include <cassert>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#endif

#define NO_MEMORY ENOMEM

static_assert(sizeof(int64_t) == 8, "int64_t");

#ifdef __cplusplus
static_assert(sizeof(std::int64_t) == 8 && sizeof(std::size_t) == sizeof(size_t), "std");
#endif

struct Buffer {
  FILE* log;
  int64_t size;
};

static inline int Fill(struct Buffer* buffer, void** out) {
  assert(buffer != NULL);
  *out = malloc((size_t)buffer->size);
  if (*out == NULL) return ENOMEM;
  memset(*out, 0, (size_t)buffer->size);
  return 0;
}

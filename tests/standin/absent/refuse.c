// SPDX-License-Identifier: Apache-2.0
//
// Preload this library to hide the vendors' libraries: dlopen fails for them wherever they are,
// even if they are already loaded.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int is_vendors(const char* file) {
  static const char* const names[] = {"libcuda.so", "libamdhip64.so", "libOpenCL.so",
                                      "libvulkan.so"};
  const char* slash = strrchr(file, '/');
  const char* name = slash != NULL ? slash + 1 : file;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    if (strncmp(name, names[i], strlen(names[i])) == 0) return 1;
  }
  return 0;
}

void* dlopen(const char* file, int flags) {
  void* (*next)(const char*, int) = NULL;
  void* found = dlsym(RTLD_NEXT, "dlopen");
  memcpy(&next, &found, sizeof next);
  if (file == NULL || !is_vendors(file)) return next(file, flags);
  // Produces the loader's own error for a missing file.
  char refused[256];
  snprintf(refused, sizeof refused, "/not-installed/%s",
           strrchr(file, '/') != NULL ? strrchr(file, '/') + 1 : file);
  return next(refused, flags);
}

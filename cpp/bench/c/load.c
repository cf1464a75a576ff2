/* SPDX-License-Identifier: Apache-2.0
 *
 * `load LIBRARY TIMES`: loads and unloads a shared library, for callgrind. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s LIBRARY TIMES\n", argv[0]);
    return 2;
  }
  for (long left = strtol(argv[2], NULL, 10); left > 0; --left) {
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    dlclose(library);
  }
  return 0;
}

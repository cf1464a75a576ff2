// SPDX-License-Identifier: Apache-2.0
//
// Loads a plug-in, uses an array of it, and unloads the plug-in once no struct refers to its code.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fletching/abi.h"

typedef int (*Produce)(struct ArrowDeviceArray* out);
typedef int (*MayUnload)(void);

static void find(void* plugin, const char* name, void* function) {
  void* symbol = dlsym(plugin, name);
  memcpy(function, &symbol, sizeof symbol);
}

int main(int argc, char** argv) {
  void* plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  Produce produce = NULL;
  MayUnload may_unload = NULL;
  if (plugin != NULL) find(plugin, "plugin_produce", &produce);
  if (plugin != NULL) find(plugin, "plugin_may_unload", &may_unload);
  if (produce == NULL || may_unload == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;

  struct ArrowDeviceArray array;
  if (produce(&array) != 0) return 1;
  printf("%d values, may unload: %d\n", (int)array.array.length, may_unload());
  array.array.release(&array.array);  // runs code of the plug-in
  printf("released, may unload: %d\n", may_unload());
  if (may_unload()) dlclose(plugin);
  printf("still loaded: %d\n", dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL);
  return 0;
}

#include "library.h"

#include <dlfcn.h>
#include <stddef.h>

/* The types match oracle.h: a forwarder that does not fit it does not compile. */
#define FORWARD(result, name, parameters, arguments)  \
  static __typeof__(FletchingOracle##name)* g_##name; \
  result fletching_go_oracle_##name parameters { return g_##name arguments; }
FLETCHING_GO_ORACLE_FUNCTIONS(FORWARD)

#define RESOLVE(result, name, parameters, arguments)            \
  *(void**)&g_##name = dlsym(library, "FletchingOracle" #name); \
  if (g_##name == NULL) return "the symbol FletchingOracle" #name " is missing";

const char* fletching_go_oracle_open(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return dlerror();
  FLETCHING_GO_ORACLE_FUNCTIONS(RESOLVE)
  return NULL;
}

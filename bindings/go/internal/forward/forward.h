/* Functions of a library that is opened at run time. Included once by a file that has defined
 *
 *   FUNCTIONS(X)  X(result, name, parameters, arguments) for each function
 *   THEIRS(name)  the library's function, which a header declares
 *   OURS(name)    the name of the forwarder; OURS(open) opens the library
 */
#include <dlfcn.h>
#include <stddef.h>

/* Fails to compile if a forwarder does not match the declaration. */
#define FORWARD(result, name, parameters, arguments) \
  static __typeof__(THEIRS(name))* g_##name;         \
  result OURS(name) parameters { return g_##name arguments; }
FUNCTIONS(FORWARD)

#define TEXT_(name) #name
#define TEXT(name) TEXT_(name)
#define RESOLVE(result, name, parameters, arguments)       \
  *(void**)&g_##name = dlsym(library, TEXT(THEIRS(name))); \
  if (g_##name == NULL) return "the symbol " TEXT(THEIRS(name)) " is missing";

/* Returns NULL, or the reason why the library cannot be used, which is valid until the next
 * call. */
const char* OURS(open)(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return dlerror();
  FUNCTIONS(RESOLVE)
  return NULL;
}

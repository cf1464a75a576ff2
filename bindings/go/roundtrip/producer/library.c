#include "library.h"

#include <dlfcn.h>
#include <stddef.h>

/* The types match the headers: a forwarder that does not fit them does not compile. */
#define FORWARD(result, name, parameters, arguments)    \
  static __typeof__(FletchingProducer##name)* g_##name; \
  result fletching_go_producer_##name parameters { return g_##name arguments; }
FLETCHING_GO_PRODUCER_FUNCTIONS(FORWARD)

#define RESOLVE(result, name, parameters, arguments)              \
  *(void**)&g_##name = dlsym(library, "FletchingProducer" #name); \
  if (g_##name == NULL) return "the symbol FletchingProducer" #name " is missing";

const char* fletching_go_producer_open(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return dlerror();
  FLETCHING_GO_PRODUCER_FUNCTIONS(RESOLVE)
  return NULL;
}

static const struct FletchingExtDevEvent* event_at(uintptr_t event) {
  return (const struct FletchingExtDevEvent*)event;
}

int fletching_go_producer_ext_dev_query(uintptr_t event) {
  return event_at(event)->query(event_at(event));
}

void fletching_go_producer_ext_dev_synchronize(uintptr_t event) {
  event_at(event)->synchronize(event_at(event));
}

int fletching_go_producer_ext_dev_wait_on(uintptr_t event, uintptr_t queue) {
  return event_at(event)->wait_on(event_at(event), (struct FletchingExtDevQueue*)queue);
}

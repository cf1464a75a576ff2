#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

/* The types match hostile.h: a forwarder that does not fit it does not compile. */
#define FORWARD(result, name, parameters, arguments)   \
  static __typeof__(FletchingHostile##name)* g_##name; \
  result fletching_go_peer_##name parameters { return g_##name arguments; }
FLETCHING_GO_PEER_FUNCTIONS(FORWARD)

#define RESOLVE(result, name, parameters, arguments)             \
  *(void**)&g_##name = dlsym(library, "FletchingHostile" #name); \
  if (g_##name == NULL) return "the symbol FletchingHostile" #name " is missing";

const char* fletching_go_peer_open(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return dlerror();
  FLETCHING_GO_PEER_FUNCTIONS(RESOLVE)
  return NULL;
}

static void release_leaf(struct ArrowArray* self) {
  free(self->private_data);
  self->release = NULL;
}

void fletching_go_peer_leaf(struct ArrowDeviceArray* out) {
  const void** const buffers = calloc(2, sizeof *buffers);
  *out = (struct ArrowDeviceArray){.array = {.length = 1,
                                             .n_buffers = 2,
                                             .buffers = buffers,
                                             .release = release_leaf,
                                             .private_data = buffers},
                                   .device_id = -1,
                                   .device_type = ARROW_DEVICE_CPU};
}

void fletching_go_peer_release(struct ArrowArray* array, int count) {
  void (*const release)(struct ArrowArray*) = array->release;
  for (int i = 0; i < count; ++i) release(array);
}

struct Next {
  struct ArrowDeviceArrayStream* stream;
  struct ArrowDeviceArray* out;
  int result;
};

static void* next(void* argument) {
  struct Next* call = argument;
  call->result = call->stream->get_next(call->stream, call->out);
  return NULL;
}

int fletching_go_peer_next_on_thread(struct ArrowDeviceArrayStream* stream,
                                     struct ArrowDeviceArray* out) {
  struct Next call = {stream, out, -1};
  pthread_t thread;
  if (pthread_create(&thread, NULL, next, &call) != 0) return -1;
  pthread_join(thread, NULL);
  return call.result;
}

void fletching_go_peer_nothing(void) {}

/* Loads the host library named by the first argument, passes structs through it, unloads it, and
 * releases the resulting structs. The second argument is the Go library, which stays loaded. Exits
 * with 0 on success. */
#include <dlfcn.h>
#include <stdio.h>

#include "fletching/abi.h"

typedef int Pass(struct ArrowSchema*, struct ArrowDeviceArray*, struct ArrowSchema*,
                 struct ArrowDeviceArray*);

static int g_released;

static void release_schema(struct ArrowSchema* self) {
  self->release = NULL;
  ++g_released;
}

static void release_array(struct ArrowArray* self) {
  self->release = NULL;
  ++g_released;
}

static int fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  return 1;
}

static int pass_and_unload(const char* host, const char* library) {
  void* handle = dlopen(host, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return fail(dlerror());
  Pass* pass = NULL;
  *(void**)&pass = dlsym(handle, "HostPass");
  struct ArrowSchema schema = {.format = "n", .release = release_schema};
  struct ArrowSchema out_schema = {0};
  struct ArrowDeviceArray array = {.device_id = -1, .device_type = ARROW_DEVICE_CPU};
  struct ArrowDeviceArray out_array = {0};
  array.array.release = release_array;
  g_released = 0;
  if (pass(&schema, &array, &out_schema, &out_array) != 0) return fail("not passed on");
  if (dlclose(handle) != 0) return fail(dlerror());
  if (dlopen(host, RTLD_NOW | RTLD_NOLOAD) != NULL) return fail("the host is still loaded");
  if (dlopen(library, RTLD_NOW | RTLD_NOLOAD) == NULL) return fail("Go is not loaded any more");
  if (g_released != 0) return fail("released too early");
  out_array.array.release(&out_array.array);
  out_schema.release(&out_schema);
  return g_released == 2 ? 0 : fail("not released once");
}

int main(int count, char** arguments) {
  if (count != 3) return fail("expected two arguments");
  for (int i = 0; i < 3; ++i) {
    if (pass_and_unload(arguments[1], arguments[2]) != 0) return 1;
  }
  puts("unloaded");
  return 0;
}

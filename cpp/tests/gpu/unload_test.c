// SPDX-License-Identifier: Apache-2.0
//
// Closes a plug-in while its core waits for a stream of the CUDA stand-in to release an array. The
// core must keep the plug-in loaded: its thread and the release callback are code of the plug-in.
#include <cuda.h>
#include <dlfcn.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

// Ends the program on failure.
#define REQUIRE(condition)                 \
  do {                                     \
    CHECK(condition);                      \
    if (failures != 0) exit(EXIT_FAILURE); \
  } while (0)

static void* load(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) fprintf(stderr, "%s\n", dlerror());
  REQUIRE(plugin != NULL);
  return plugin;
}

static int is_loaded(const char* path) { return dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL; }

// Returns a stream behind a gate, which opens when `*gate` is 1.
static CUstream create_blocked_stream(uint32_t** gate) {
  CUdevice device;
  CUcontext context;
  CUstream stream;
  void* word;
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  REQUIRE(cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
  REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  REQUIRE(cuMemHostAlloc(&word, sizeof **gate, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
  *gate = word;
  **gate = 0;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  REQUIRE(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)word, 1, CU_STREAM_WAIT_VALUE_EQ) ==
          CUDA_SUCCESS);
  return stream;
}

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  uint32_t* gate;
  CUstream stream = create_blocked_stream(&gate);
  dlclose(load(argv[1]));
  REQUIRE(!is_loaded(argv[1]));  // an unused plug-in is unloaded

  sem_t released;
  REQUIRE(sem_init(&released, 0, 0) == 0);
  void* plugin = load(argv[1]);
  void* symbol = dlsym(plugin, "plugin_release_after");
  int (*release_after)(void* stream, sem_t* released);
  REQUIRE(symbol != NULL);
  memcpy(&release_after, &symbol, sizeof symbol);
  REQUIRE(release_after(stream, &released) == 0);
  dlclose(plugin);
  REQUIRE(sem_trywait(&released) != 0);  // the gate is shut
  __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
  while (sem_wait(&released) != 0) {
  }
  return failures != 0;
}

// SPDX-License-Identifier: Apache-2.0
//
// The event operations of fletching/c_api.h on CUDA or its stand-in, behind a gate that the test
// opens. No result depends on time. Prints one line in the format of tests/gpu/gpu.py.
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "check.h"
#include "fletching/c_api.h"

// The CUDA driver API, declared here because a GPU machine may lack the header.
typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx* CUcontext;
typedef struct CUstr* CUstream;
typedef unsigned long long CUdeviceptr;
enum { CUDA_SUCCESS = 0, CUDA_ERROR_NOT_READY = 600 };
enum { CU_STREAM_NON_BLOCKING = 1, CU_MEMHOSTALLOC_DEVICEMAP = 2, CU_STREAM_WAIT_VALUE_GEQ = 0 };

// Each function with the symbol of its newest version.
#define FOR_EACH_FUNCTION(X)                                                                    \
  X(cuInit, "cuInit", (unsigned))                                                               \
  X(cuDeviceGet, "cuDeviceGet", (CUdevice*, int))                                               \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext*, CUdevice))               \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                      \
  X(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext))                                            \
  X(cuStreamCreate, "cuStreamCreate", (CUstream*, unsigned))                                    \
  X(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream))                                          \
  X(cuStreamQuery, "cuStreamQuery", (CUstream))                                                 \
  X(cuStreamSynchronize, "cuStreamSynchronize", (CUstream))                                     \
  X(cuStreamWaitValue32, "cuStreamWaitValue32_v2", (CUstream, CUdeviceptr, uint32_t, unsigned)) \
  X(cuMemHostAlloc, "cuMemHostAlloc", (void**, size_t, unsigned))                               \
  X(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2", (CUdeviceptr*, void*, unsigned)) \
  X(cuMemFreeHost, "cuMemFreeHost", (void*))

#define DECLARE(name, symbol, arguments) static CUresult(*name) arguments;
FOR_EACH_FUNCTION(DECLARE)

// C has no cast from an object pointer to a function pointer.
static void find(void* library, const char* symbol, void* function) {
  void* found = dlsym(library, symbol);
  if (found == NULL) fprintf(stderr, "the driver has no %s\n", symbol);
  CHECK(found != NULL);
  memcpy(function, &found, sizeof found);
}

// Function of a stand-in that waits until only work behind the gate is left. NULL with a real
// driver, where a missing wait may be detected too late.
static void (*settle_standin)(void);

static void settle(void) {
  if (settle_standin != NULL) settle_standin();
}

static void load_driver(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  void* settle_function;
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(library != NULL);
  if (library == NULL) return;
  settle_function = dlsym(library, "FletchingStandinSettle");
  memcpy(&settle_standin, &settle_function, sizeof settle_function);
#define FIND(name, symbol, arguments) find(library, symbol, &name);
  FOR_EACH_FUNCTION(FIND)
}

static void release(struct ArrowArray* array) {
  __atomic_add_fetch((int*)array->private_data, 1, __ATOMIC_SEQ_CST);
  array->release = NULL;
}

static int count(const int* releases) { return __atomic_load_n(releases, __ATOMIC_SEQ_CST); }

static struct ArrowDeviceArray device_array(int* releases) {
  struct ArrowDeviceArray array;
  FletchingDeviceArrayInit(&array);
  array.device_type = ARROW_DEVICE_CUDA;
  array.array.release = release;
  array.array.private_data = releases;
  return array;
}

static int ready(const struct ArrowDeviceArray* array) {
  struct FletchingMessage message;
  int answer = -1;
  const int code = FletchingDeviceArrayReady(array, &answer, &message);
  if (code != 0) fprintf(stderr, "ready: %d, %s\n", code, message.text);
  return code == 0 ? answer : -1;
}

// A word that streams wait on; 0 while shut.
struct Gate {
  uint32_t* word;
  CUdeviceptr address;
};

static void set(const struct Gate* gate, uint32_t value) {
  __atomic_store_n(gate->word, value, __ATOMIC_SEQ_CST);
}

static void shut(const struct Gate* gate, CUstream stream) {
  CHECK(cuStreamWaitValue32(stream, gate->address, 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
}

static void test_export(const struct Gate* gate, CUstream producer, CUstream consumer) {
  struct FletchingMessage message;
  int releases = 0;
  struct ArrowDeviceArray array = device_array(&releases);
  struct ArrowDeviceArray moved;
  set(gate, 0);
  shut(gate, producer);
  CHECK(FletchingDeviceArrayExportWithEvent(&array, FletchingStreamOfArray(producer),
                                            FLETCHING_CAPTURE_REFUSE, &message) == 0);
  CHECK(array.sync_event != NULL);
  CHECK(FletchingDeviceArrayExportWithEvent(&array, FletchingStreamOfArray(producer),
                                            FLETCHING_CAPTURE_REFUSE, &message) == EINVAL);
  CHECK(strstr(message.text, "sync_event is set") != NULL);
  FletchingDeviceArrayMove(&array, &moved);

  settle();
  CHECK(ready(&moved) == 0);
  CHECK(FletchingDeviceArrayWaitOn(&moved, FletchingStreamOfArray(consumer),
                                   FLETCHING_CAPTURE_REFUSE, &message) == 0);
  settle();
  CHECK(cuStreamQuery(consumer) == CUDA_ERROR_NOT_READY);
  set(gate, 1);
  CHECK(FletchingDeviceArraySynchronize(&moved, &message) == 0);
  CHECK(ready(&moved) == 1);
  CHECK(cuStreamSynchronize(consumer) == CUDA_SUCCESS);
  FletchingDeviceArrayRelease(&moved);
  CHECK(count(&releases) == 1);
}

// The array is released after the gate opens, not earlier. A release that need not wait overtakes
// it; then both were queried. If the release is never called, ctest times out.
static void test_release_after(const struct Gate* gate, CUstream stream, CUstream idle) {
  struct FletchingMessage message;
  int releases = 0;
  int idle_releases = 0;
  struct ArrowDeviceArray array = device_array(&releases);
  struct ArrowDeviceArray second = device_array(&idle_releases);
  set(gate, 0);
  shut(gate, stream);
  CHECK(FletchingDeviceArrayReleaseAfter(&array, FletchingStreamOfArray(stream),
                                         FLETCHING_CAPTURE_REFUSE, &message) == 0);
  CHECK(FletchingDeviceArrayIsReleased(&array) == 1);
  settle();
  CHECK(FletchingDeviceArrayReleaseAfter(&second, FletchingStreamOfArray(idle),
                                         FLETCHING_CAPTURE_REFUSE, &message) == 0);
  while (count(&idle_releases) == 0) cuStreamSynchronize(idle);
  CHECK(count(&releases) == 0);
  set(gate, 1);
  while (count(&releases) == 0) cuStreamSynchronize(stream);
  CHECK(count(&releases) == 1);
  /* The thread of a callback leaves its context afterwards. */
  struct FletchingReleaseCounts counts;
  do {
    FletchingPendingReleases(&counts, NULL);
  } while (counts.pending + counts.running > 0);
}

static void test_all(void) {
  CUdevice device;
  CUcontext context;
  CUstream producer;
  CUstream consumer;
  struct Gate gate;
  void* word;
  load_driver();
  if (failures != 0) return;
  CHECK(cuInit(0) == CUDA_SUCCESS);
  CHECK(cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(cuStreamCreate(&producer, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(cuStreamCreate(&consumer, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  CHECK(cuMemHostAlloc(&word, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
  gate.word = word;
  CHECK(cuMemHostGetDevicePointer(&gate.address, word, 0) == CUDA_SUCCESS);
  if (failures != 0) return;

  test_export(&gate, producer, consumer);
  test_release_after(&gate, producer, consumer);

  CHECK(cuMemFreeHost(word) == CUDA_SUCCESS);
  CHECK(cuStreamDestroy(consumer) == CUDA_SUCCESS);
  CHECK(cuStreamDestroy(producer) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(NULL) == CUDA_SUCCESS);
  CHECK(cuDevicePrimaryCtxRelease(device) == CUDA_SUCCESS);
}

int main(void) {
  test_all();
  printf("check\tC API: events\t%s\t%d\t%s\n", failures == 0 ? "ok" : "FAILED", checks,
         first_failure);
  return failures == 0 ? 0 : 1;
}

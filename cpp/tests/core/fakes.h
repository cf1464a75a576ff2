/* SPDX-License-Identifier: Apache-2.0
 *
 * The core with fake drivers. */
#ifndef FLETCHING_TESTS_CORE_FAKES_H
#define FLETCHING_TESTS_CORE_FAKES_H

#include "memory.h"

/* --- The drivers --- */

struct FakeEvent {
  bool is_alive;
  bool is_done;
  atomic_bool is_lost;
  atomic_bool never;    /* never happens */
  _Atomic int refuses;  /* every query fails with this result; 0 for none */
  _Atomic int refusals; /* number of queries that fail before it happens */
  _Atomic int asked;
  /* OpenCL */
  void* queue;
  int state;
};

enum { MOST_EVENTS = 8 };

static struct {
  bool init_fails; /* once */
  _Atomic int initialized;
  /* CUDA: the context stack of the test's thread. Other threads have separate stacks. */
  int primary[2];
  int created;              /* a context of device 1 that is not the primary one */
  atomic_bool is_destroyed; /* the created context; ends the capture once it is reported */
  bool is_active[2];
  uint32_t memory_kind; /* of every address */
  int references[2];
  int depth;
  void* stack[8];
  int stream_device;   /* device of a stream that is not a default stream */
  int failing_current; /* the nth query of the current context from now fails; 0 for none */
  bool pop_fails;
  bool pops_nonetheless;
  void* waited_in;
  void* recorded_in;
  void* recorded_on;
  /* The capture mode: 0 is global. */
  int mode;
  int failing_exchange; /* the nth exchange from now fails; 0 for none */
  bool exchanges_nonetheless;
  atomic_bool is_captured;
  _Atomic int32_t capture_answer; /* result of the capture query */
  bool create_fails;
  bool record_fails;
  bool finish_fails;
  int failing_finishes;
  _Atomic int finished;
  struct FakeEvent events[MOST_EVENTS];
  int n_events;
  _Atomic int asked;
  _Atomic int round;
  int rounds[8];
  /* OpenCL */
  bool drivers_fail; /* the second one too, with another error than the first */
  void* flushed;
  atomic_bool state_fails;
  _Atomic int marker_state;
} fake;

static _Thread_local bool is_test_thread;
static _Thread_local int own_depth;
static _Thread_local void* own_stack[8];

static int* depth_of_thread(void) { return is_test_thread ? &fake.depth : &own_depth; }
static void** stack_of_thread(void) { return is_test_thread ? fake.stack : own_stack; }

static void fake_push(void* context) { stack_of_thread()[(*depth_of_thread())++] = context; }
static void* fake_current(void) {
  const int depth = *depth_of_thread();
  return depth == 0 ? NULL : stack_of_thread()[depth - 1];
}

static int32_t init(uint32_t flags) {
  (void)flags;
  return ++fake.initialized < 2 && fake.init_fails ? CUDA_ERROR_LAUNCH_FAILED : 0;
}
static int32_t get_current(CUcontext* context) {
  *context = fake_current();
  if (!is_test_thread || fake.failing_current == 0) return 0;
  return --fake.failing_current == 0 ? CUDA_ERROR_LAUNCH_FAILED : 0;
}
static int32_t push_current(CUcontext context) {
  fake_push(context);
  return 0;
}
static int32_t pop_current(CUcontext* context) {
  const bool fails = is_test_thread && fake.pop_fails;
  if (fails) fake.pop_fails = false;
  *context = fake_current();
  if (!fails || fake.pops_nonetheless) --*depth_of_thread();
  return fails ? CUDA_ERROR_LAUNCH_FAILED : 0;
}
static int32_t device_of(const void* context) { return context == &fake.primary[0] ? 0 : 1; }
static int32_t get_device_of_context(CUdevice* device) {
  *device = device_of(fake_current());
  return 0;
}
static int32_t get_context_id(CUcontext context, uint64_t* id) {
  const void* asked = context != NULL ? context : fake_current();
  if (asked == NULL) return CUDA_ERROR_INVALID_CONTEXT;
  if (asked == &fake.created && fake.is_destroyed) {
    fake.is_captured = false;
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  *id = (uint64_t)(uintptr_t)asked;
  return 0;
}
static int32_t get_device(CUdevice* device, int32_t ordinal) {
  *device = ordinal;
  return ordinal < 2 ? 0 : 101;
}
static int32_t get_version(int32_t* version) {
  *version = 13000;
  return 0;
}
static int32_t get_count(int32_t* count) {
  *count = 2;
  return 0;
}
static int32_t get_name(char* name, int32_t size, CUdevice device) {
  if (device == 1) return CUDA_ERROR_LAUNCH_FAILED;
  (void)snprintf(name, (size_t)size, "fake");
  return 0;
}
static int32_t get_attribute(int32_t* value, CUdevice_attribute attribute, CUdevice device) {
  CHECK(attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  *value = device;
  return 0;
}
static int32_t get_primary_state(CUdevice device, uint32_t* flags, int32_t* active) {
  *flags = 0;
  *active = fake.is_active[device];
  return 0;
}
static int32_t retain_primary(CUcontext* context, CUdevice device) {
  if (is_test_thread) ++fake.references[device];
  *context = &fake.primary[device];
  return 0;
}
static int32_t release_primary(CUdevice device) {
  if (is_test_thread) --fake.references[device];
  return 0;
}
static int32_t get_stream_context(CUstream stream, CUcontext* context) {
  (void)stream;
  *context = &fake.primary[fake.stream_device];
  return 0;
}

/* All memory belongs to device 1, which uses other addresses than the host. 4096 is in the created
 * context, other memory in none. */
static uintptr_t fake_device_address(uintptr_t address) { return address + 0x100000; }
static int32_t get_pointer_attribute(void* value, CUpointer_attribute attribute,
                                     CUdeviceptr address) {
  const CUdeviceptr on_device = fake_device_address(address);
  const int32_t device = 1;
  void* const context = &fake.created;
  if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT) {
    if (address != 4096) return 1;
    memcpy(value, &context, sizeof context);
  } else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
    memcpy(value, &device, sizeof device);
  } else if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
    memcpy(value, &fake.memory_kind, sizeof fake.memory_kind);
  } else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) {
    if (device_of(fake_current()) != device) return 1;
    memcpy(value, &on_device, sizeof on_device);
  } else {
    memset(value, 0, sizeof(int32_t));
  }
  return 0;
}

static int32_t exchange_mode(CUstreamCaptureMode* mode) {
  if (!is_test_thread) return 0;
  const int before = fake.mode;
  const bool fails = fake.failing_exchange == 1;
  if (fake.failing_exchange > 0) --fake.failing_exchange;
  if (!fails || fake.exchanges_nonetheless) {
    fake.mode = *mode;
    *mode = before;
  }
  return fails ? CUDA_ERROR_LAUNCH_FAILED : 0;
}
static int32_t is_capturing(CUstream stream, CUstreamCaptureStatus* status) {
  (void)stream;
  *status = atomic_load(&fake.is_captured);
  if (!is_test_thread) ++fake.asked;
  return atomic_load(&fake.capture_answer);
}
static int32_t stream_wait_event(CUstream stream, CUevent event, uint32_t flags) {
  (void)stream, (void)event, (void)flags;
  fake.waited_in = fake_current();
  return 0;
}
static int32_t event_create(CUevent* event, uint32_t flags) {
  struct FakeEvent* made = &fake.events[fake.n_events++];
  CHECK(flags == (CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
  CHECK(fake_current() != NULL);
  *event = made;
  if (fake.create_fails) return CUDA_ERROR_INVALID_CONTEXT; /* a driver may have written already */
  made->is_alive = true;
  return 0;
}
static int32_t event_record(CUevent event, CUstream stream) {
  (void)event;
  fake.recorded_in = fake_current();
  fake.recorded_on = stream;
  return fake.record_fails ? CUDA_ERROR_INVALID_CONTEXT : 0;
}
static int32_t event_destroy(CUevent event) {
  if (is_test_thread) CHECK(((struct FakeEvent*)event)->is_alive);
  ((struct FakeEvent*)event)->is_alive = false;
  return 0;
}
static int32_t event_query(CUevent event) {
  struct FakeEvent* asked = event;
  const int32_t refusal = asked->refuses;
  if (is_test_thread && refusal == 0) return asked->is_done ? 0 : CUDA_ERROR_NOT_READY;
  if (is_test_thread) return refusal;
  ++fake.asked;
  ++asked->asked;
  if (refusal != 0) return refusal;
  if (asked->never) {
    ++fake.round;
    return CUDA_ERROR_NOT_READY;
  }
  if (asked->is_lost) return CUDA_ERROR_LAUNCH_FAILED;
  if (asked->refusals == 0) return 0;
  fake.rounds[5 - asked->refusals--] = atomic_load(&fake.round);
  return 1;
}
static int32_t stream_synchronize(CUstream stream) {
  (void)stream;
  if (fake.finish_fails || fake.failing_finishes-- > 0) return CUDA_ERROR_LAUNCH_FAILED;
  ++fake.finished;
  return 0;
}
static int32_t event_synchronize(CUevent event) {
  (void)event;
  return 0;
}

/* --- OpenCL, with its types: NOLINTBEGIN(readability-non-const-parameter) --- */

static int32_t get_event_info(cl_event event, cl_event_info what, size_t size, void* value,
                              size_t* written) {
  struct FakeEvent* asked = event;
  const bool is_marker = asked >= fake.events && asked < fake.events + MOST_EVENTS;
  int32_t state = is_marker ? atomic_load(&fake.marker_state) : asked->state;
  (void)written;
  memset(value, 0, size);
  if (what == CL_EVENT_COMMAND_EXECUTION_STATUS) {
    if (!is_test_thread) ++fake.asked;
    if (atomic_load(&fake.state_fails)) return CL_OUT_OF_RESOURCES;
    memcpy(value, &state, sizeof state);
  } else if (what == CL_EVENT_COMMAND_QUEUE) {
    memcpy(value, &asked->queue, sizeof asked->queue);
  }
  return CL_SUCCESS;
}
static int32_t get_queue_info(cl_command_queue queue, cl_uint what, size_t size, void* value,
                              size_t* written) {
  (void)queue, (void)what, (void)written;
  memset(value, 0, size);
  return CL_SUCCESS;
}
static int32_t enqueue_barrier(cl_command_queue queue, cl_uint count, const cl_event* events,
                               cl_event* event) {
  (void)queue, (void)count, (void)events, (void)event;
  return CL_SUCCESS;
}
static int32_t enqueue_marker(cl_command_queue queue, cl_uint count, const cl_event* events,
                              cl_event* event) {
  struct FakeEvent* made = &fake.events[fake.n_events++];
  (void)count, (void)events;
  made->is_alive = true;
  made->queue = queue;
  *event = made;
  return CL_SUCCESS;
}
static int32_t flush(cl_command_queue queue) {
  fake.flushed = queue;
  return CL_SUCCESS;
}
static int32_t finish(cl_command_queue queue) {
  (void)queue;
  ++fake.finished;
  return CL_SUCCESS;
}
static int32_t wait_for_events(cl_uint count, const cl_event* events) {
  (void)count, (void)events;
  return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
}

/* Three platforms: the first fails, and the others have two devices. The second loses one of them
 * between the calls. */
static int32_t get_platforms(cl_uint size, cl_platform_id* platforms, cl_uint* count) {
  for (cl_uint i = 0; i < size; ++i) platforms[i] = &fake.events[i];
  if (count != NULL) *count = 3;
  return CL_SUCCESS;
}
static int32_t get_devices(cl_platform_id platform, cl_bitfield type, cl_uint size,
                           cl_device_id* devices, cl_uint* count) {
  (void)type;
  if (platform == &fake.events[0]) return CL_OUT_OF_RESOURCES;
  if (fake.drivers_fail) return CL_INVALID_CONTEXT;
  if (size > 0) devices[0] = platform;
  if (size > 1 && platform == &fake.events[2]) devices[1] = platform;
  if (count != NULL) *count = 2;
  return CL_SUCCESS;
}
static int32_t get_device_info(cl_device_id device, cl_uint what, size_t size, void* value,
                               size_t* written) {
  (void)device, (void)what, (void)written;
  (void)snprintf(value, size, "fake");
  return CL_SUCCESS;
}

/* NOLINTEND(readability-non-const-parameter) */

/* Restores the initial state: two devices with active contexts, none current. */
static void fake_reset(void) {
  is_test_thread = true;
  memset(&fake, 0, sizeof fake);
  fake.is_active[0] = fake.is_active[1] = true;
  fake.mode = 2;
  atomic_store(&fake.marker_state, CL_SUBMITTED);
  memset(&cuda, 0, sizeof cuda);
  cuda.cuInit = init;
  atomic_store(&cuda_library.is_initialized, false);
  cuda.cuCtxGetCurrent = get_current;
  cuda.cuCtxPushCurrent = push_current;
  cuda.cuCtxPopCurrent = pop_current;
  cuda.cuCtxGetDevice = get_device_of_context;
  cuda.cuCtxGetId = get_context_id;
  cuda.cuDeviceGet = get_device;
  cuda.cuDriverGetVersion = get_version;
  cuda.cuDeviceGetCount = get_count;
  cuda.cuDeviceGetName = get_name;
  cuda.cuDeviceGetAttribute = get_attribute;
  cuda.cuDevicePrimaryCtxGetState = get_primary_state;
  cuda.cuDevicePrimaryCtxRetain = retain_primary;
  cuda.cuDevicePrimaryCtxRelease = release_primary;
  cuda.cuStreamGetCtx = get_stream_context;
  cuda.cuPointerGetAttribute = get_pointer_attribute;
  cuda.cuThreadExchangeStreamCaptureMode = exchange_mode;
  cuda.cuStreamIsCapturing = is_capturing;
  cuda.cuStreamWaitEvent = stream_wait_event;
  cuda.cuStreamSynchronize = stream_synchronize;
  cuda.cuEventCreate = event_create;
  cuda.cuEventRecord = event_record;
  cuda.cuEventDestroy = event_destroy;
  cuda.cuEventQuery = event_query;
  cuda.cuEventSynchronize = event_synchronize;
  bind_cuda();
  cuda_library.found = "libfake.so";
  atomic_store(&cuda_library.is_loaded, true);
  memset(&cl, 0, sizeof cl);
  cl.clGetPlatformIDs = get_platforms;
  cl.clGetDeviceIDs = get_devices;
  cl.clGetDeviceInfo = get_device_info;
  cl.clGetEventInfo = get_event_info;
  cl.clGetCommandQueueInfo = get_queue_info;
  cl.clEnqueueBarrierWithWaitList = enqueue_barrier;
  cl.clEnqueueMarkerWithWaitList = enqueue_marker;
  cl.clFlush = flush;
  cl.clFinish = finish;
  cl.clWaitForEvents = wait_for_events;
  cl.clReleaseEvent = event_destroy;
  atomic_store(&opencl_library.is_loaded, true);
}

static int fake_living_events(void) {
  int living = 0;
  for (int i = 0; i < MOST_EVENTS; ++i) living += fake.events[i].is_alive;
  return living;
}

/* The test's timeout ends an infinite wait. */
static void fake_wait_for_asked(int more) {
  const int before = atomic_load(&fake.asked);
  while (atomic_load(&fake.asked) < before + more) sleep_ns(100000);
}

/* Waits for running releases; pending ones may remain. */
static void fake_wait_for_release(const int* releases, int wanted) {
  struct FletchingReleaseCounts counts;
  do {
    sleep_ns(100000);
    FletchingPendingReleases(&counts, NULL);
  } while (counts.running > 0 || __atomic_load_n(releases, __ATOMIC_SEQ_CST) < wanted);
  CHECK(__atomic_load_n(releases, __ATOMIC_SEQ_CST) == wanted);
}

static int fake_waiter_synchronize(void* context, void* sync_event, int64_t device_id,
                                   struct FletchingMessage* message) {
  (void)context, (void)sync_event, (void)device_id, (void)message;
  return 0;
}

#endif /* FLETCHING_TESTS_CORE_FAKES_H */

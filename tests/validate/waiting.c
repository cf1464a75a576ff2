/* Consumers of device arrays and streams, right and wrong, that read a byte of each array. They use
 * the core (cpp/bundle) for waits, OpenCL, and the drivers of CUDA and HIP. */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "fletching/events.h"
#include "fletching/roles.h"

/* --- Queues: streams of the vendor, made once --- */

typedef int (*Create)(void** stream, unsigned flags);
typedef int (*Copy)(void* to, const void* from, size_t bytes, void* stream);
typedef int (*CopyOfKind)(void* to, const void* from, size_t bytes, int kind, void* stream);
typedef int (*Finish)(void* stream);

enum { kNonBlocking = 1, kDefaultKind = 4 };

static void* g_driver; /* libcuda or libamdhip64 */
static void* g_queue;

static void* Find(const char* name) { return dlsym(g_driver, name); }

/* CUDA needs a current context on this thread. */
static int OpenCuda(void) {
  g_driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (g_driver == NULL) return ENODEV;
  void* context = NULL;
  ((int (*)(unsigned))Find("cuInit"))(0);
  ((int (*)(void**, int))Find("cuDevicePrimaryCtxRetain"))(&context, 0);
  ((int (*)(void*))Find("cuCtxPushCurrent_v2"))(context);
  return ((Create)Find("cuStreamCreate"))(&g_queue, kNonBlocking) == 0 ? 0 : EIO;
}

static int OpenHip(void) {
  g_driver = dlopen("libamdhip64.so.7", RTLD_NOW);
  if (g_driver == NULL) return ENODEV;
  return ((Create)Find("hipStreamCreateWithFlags"))(&g_queue, kNonBlocking) == 0 ? 0 : EIO;
}

static int OpenOpenCl(const void* buffer) {
  cl_context context = NULL;
  cl_device_id device = NULL;
  clGetMemObjectInfo((cl_mem)buffer, CL_MEM_CONTEXT, sizeof(cl_context), &context, NULL);
  clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(cl_device_id), &device, NULL);
  g_queue = clCreateCommandQueue(context, device, 0, NULL);
  return g_queue == NULL ? EIO : 0;
}

static int IsCuda(ArrowDeviceType type) {
  return type == ARROW_DEVICE_CUDA || type == ARROW_DEVICE_CUDA_HOST ||
         type == ARROW_DEVICE_CUDA_MANAGED;
}
static int IsHip(ArrowDeviceType type) {
  return type == ARROW_DEVICE_ROCM || type == ARROW_DEVICE_ROCM_HOST;
}

static const void* FirstBuffer(const struct ArrowDeviceArray* array) {
  const struct ArrowArray* leaf = &array->array;
  if (leaf->n_children > 0) leaf = leaf->children[0];
  return leaf->n_buffers > 1 && leaf->length > 0 ? leaf->buffers[1] : NULL;
}

/* Returns 0 if there is a queue for the array, else ENOTSUP. */
static int Open(const struct ArrowDeviceArray* array) {
  const ArrowDeviceType type = array->device_type;
  if (array->array.release == NULL || FirstBuffer(array) == NULL) return ENOTSUP;
  if (!IsCuda(type) && !IsHip(type) && type != ARROW_DEVICE_OPENCL) return ENOTSUP;
  g_queue = NULL;
  if (IsCuda(type)) return OpenCuda();
  return IsHip(type) ? OpenHip() : OpenOpenCl(FirstBuffer(array));
}

static void EnqueueRead(const struct ArrowDeviceArray* array) {
  static char byte;
  const void* buffer = FirstBuffer(array);
  if (IsCuda(array->device_type)) {
    ((Copy)Find("cuMemcpyAsync"))(&byte, buffer, 1, g_queue);
  } else if (IsHip(array->device_type)) {
    ((CopyOfKind)Find("hipMemcpyAsync"))(&byte, buffer, 1, kDefaultKind, g_queue);
  } else {
    clEnqueueReadBuffer(g_queue, (cl_mem)buffer, CL_FALSE, 0, 1, &byte, 0, NULL, NULL);
    clFlush(g_queue);
  }
}

/* Also waits for the queue. */
static void Read(const struct ArrowDeviceArray* array) {
  EnqueueRead(array);
  if (IsCuda(array->device_type)) {
    ((Finish)Find("cuStreamSynchronize"))(g_queue);
  } else if (IsHip(array->device_type)) {
    ((Finish)Find("hipStreamSynchronize"))(g_queue);
  } else {
    clFinish(g_queue);
  }
}

/* Reads on the host if the memory is there. */
static void ReadOnHost(const struct ArrowDeviceArray* array) {
  const ArrowDeviceType type = array->device_type;
  const int is_host = type == ARROW_DEVICE_CUDA_HOST || type == ARROW_DEVICE_CUDA_MANAGED ||
                      type == ARROW_DEVICE_ROCM_HOST;
  if (!is_host) return Read(array);
  (void)*(const volatile char*)FirstBuffer(array);
}

static void Release(struct ArrowDeviceArray* array) { array->array.release(&array->array); }

static void Sleep(long milliseconds) {
  const struct timespec time = {0, milliseconds * 1000000};
  nanosleep(&time, NULL);
}

/* --- Ways to take an array: the consumer owns it if the result is 0 --- */

typedef int Take(struct ArrowDeviceArray* array);

static int WaitOnHost(struct ArrowDeviceArray* array) {
  int code = Open(array);
  if (code == 0) code = FletchingDeviceArraySynchronize(array, NULL);
  if (code != 0) return code;
  ReadOnHost(array);
  Release(array);
  return 0;
}

static int WaitUnread(struct ArrowDeviceArray* array) {
  int code = Open(array);
  if (code == 0) code = FletchingDeviceArraySynchronize(array, NULL);
  if (code == 0) Release(array);
  return code;
}

static void* WaitOnThread(void* context) {
  struct ArrowDeviceArray* const array = context;
  FletchingDeviceArraySynchronize(array, NULL);
  Sleep(50);
  ReadOnHost(array);
  Release(array);
  return NULL;
}

/* Only for memory of the host. Returns while the event is pending. */
static int HandToThread(struct ArrowDeviceArray* array) {
  static struct ArrowDeviceArray moved;
  pthread_t thread;
  if (Open(array) != 0) return ENOTSUP;
  moved = *array;
  array->array.release = NULL;
  pthread_create(&thread, NULL, WaitOnThread, &moved);
  return pthread_detach(thread);
}

/* Only for memory of the host. The thread outlives the call. */
static void* WaitOnOneThread(void* arrays) {
  struct ArrowDeviceArray array;
  while (read(*(int*)arrays, &array, sizeof array) == sizeof array) {
    FletchingDeviceArraySynchronize(&array, NULL);
    ReadOnHost(&array);
    Sleep(50);
    Release(&array);
  }
  return NULL;
}

static int HandToOneThread(struct ArrowDeviceArray* array) {
  static int ends[2];
  pthread_t thread;
  if (Open(array) != 0) return ENOTSUP;
  if (ends[1] == 0) {
    if (pipe(ends) != 0) return EIO;
    pthread_create(&thread, NULL, WaitOnOneThread, &ends[0]);
    pthread_detach(thread);
  }
  if (write(ends[1], array, sizeof *array) != sizeof *array) return EIO;
  array->array.release = NULL;
  return 0;
}

/* Returns while the event is pending. */
static int WaitOnStream(struct ArrowDeviceArray* array) {
  int code = Open(array);
  const struct FletchingStream stream = FletchingStreamOfArray(g_queue);
  if (code == 0) code = FletchingDeviceArrayWaitOn(array, stream, FLETCHING_CAPTURE_REFUSE, NULL);
  if (code != 0) return code;
  EnqueueRead(array);
  return FletchingDeviceArrayReleaseAfter(array, stream, FLETCHING_CAPTURE_REFUSE, NULL);
}

static int Query(struct ArrowDeviceArray* array, void (*pause)(void)) {
  int code = Open(array);
  for (int ready = 0; code == 0 && ready == 0; pause()) {
    code = FletchingDeviceArrayReady(array, &ready, NULL);
  }
  if (code != 0) return code;
  ReadOnHost(array);
  Release(array);
  return 0;
}

static void Yield(void) { sched_yield(); }
static int QueryInLoop(struct ArrowDeviceArray* array) { return Query(array, Yield); }

static void SleepBriefly(void) { Sleep(1); }
static int QueryAndSleep(struct ArrowDeviceArray* array) { return Query(array, SleepBriefly); }

/* A signal handler would not run on this thread. */
static int WaitWithSignalsBlocked(struct ArrowDeviceArray* array) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int code = WaitOnHost(array);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return code;
}

static int ReadEarly(struct ArrowDeviceArray* array) {
  const int code = Open(array);
  if (code != 0) return code;
  ReadOnHost(array);
  Release(array);
  return 0;
}

static int SleepAndReadEarly(struct ArrowDeviceArray* array) {
  Sleep(50);
  return ReadEarly(array);
}

static int TimedWaitAndReadEarly(struct ArrowDeviceArray* array) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += 50000000;
  end.tv_sec += end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  pthread_mutex_lock(&mutex);
  while (pthread_cond_timedwait(&never, &mutex, &end) == 0) continue;
  pthread_mutex_unlock(&mutex);
  return ReadEarly(array);
}

static int ComputeAndReadEarly(struct ArrowDeviceArray* array) {
  const clock_t begin = clock();
  while (clock() - begin < CLOCKS_PER_SEC / 2) continue;
  return ReadEarly(array);
}

static int ReadEarlyAndRefuse(struct ArrowDeviceArray* array) {
  const int code = Open(array);
  if (code == 0) ReadOnHost(array);
  return ENOTSUP;
}

static int ReadColumnEarly(struct ArrowDeviceArray* array) {
  return array->array.n_children == 0 ? ReadEarly(array) : ENOTSUP;
}

/* Only for memory of the host. */
static int ReadEarlyByCall(struct ArrowDeviceArray* array) {
  int ends[2];
  if (Open(array) != 0 || pipe(ends) != 0) return ENOTSUP;
  const ssize_t written = write(ends[1], FirstBuffer(array), 1);
  close(ends[0]);
  close(ends[1]);
  if (written != 1) return EIO;
  Release(array);
  return 0;
}

/* The read is on a queue, and the function has returned before it. */
static int ReadEarlyOnStream(struct ArrowDeviceArray* array) {
  const int code = Open(array);
  if (code != 0) return code;
  EnqueueRead(array);
  return FletchingDeviceArrayReleaseAfter(array, FletchingStreamOfArray(g_queue),
                                          FLETCHING_CAPTURE_REFUSE, NULL);
}

static int Ignore(struct ArrowDeviceArray* array) {
  if (Open(array) != 0) return ENOTSUP;
  Release(array);
  return 0;
}

static int ReleaseOnAnyDevice(struct ArrowDeviceArray* array) {
  Release(array);
  return 0;
}

static int Keep(struct ArrowDeviceArray* array) {
  if (Open(array) != 0) return ENOTSUP;
  array->array.release = NULL;
  return 0;
}

static int KeepAndRefuse(struct ArrowDeviceArray* array) {
  array->array.release = NULL;
  return ENOTSUP;
}

static int Refuse(struct ArrowDeviceArray* array) {
  (void)array;
  return ENOTSUP;
}

/* --- The roles --- */

static int TakeArray(struct ArrowSchema* schema, struct ArrowDeviceArray* array, Take* take) {
  if (schema->release == NULL) return EINVAL;
  const int code = take(array);
  if (code == 0) schema->release(schema);
  return code;
}

static int TakeStream(struct ArrowDeviceArrayStream* stream, Take* take, Take* take_next) {
  struct ArrowDeviceArray array;
  int code = stream->get_next == NULL ? EINVAL : 0;
  while (code == 0) {
    memset(&array, 0, sizeof array);
    code = stream->get_next(stream, &array);
    if (code != 0 || array.array.release == NULL) break;
    code = take(&array);
    if (code != 0) Release(&array);
    take = take_next;
  }
  stream->release(stream);
  return code;
}

#define CONSUMER(name, take)                                                     \
  int name##_array(struct ArrowSchema* schema, struct ArrowDeviceArray* array) { \
    return TakeArray(schema, array, take);                                       \
  }                                                                              \
  int name##_stream(struct ArrowDeviceArrayStream* stream) {                     \
    return TakeStream(stream, take, take);                                       \
  }

CONSUMER(wait_on_host, WaitOnHost)
CONSUMER(wait_unread, WaitUnread)
CONSUMER(hand_to_thread, HandToThread)
CONSUMER(hand_to_one_thread, HandToOneThread)
CONSUMER(wait_on_stream, WaitOnStream)
CONSUMER(query_in_loop, QueryInLoop)
CONSUMER(query_and_sleep, QueryAndSleep)
CONSUMER(wait_with_signals_blocked, WaitWithSignalsBlocked)
CONSUMER(read_early, ReadEarly)
CONSUMER(sleep_and_read_early, SleepAndReadEarly)
CONSUMER(timed_wait_and_read_early, TimedWaitAndReadEarly)
CONSUMER(compute_and_read_early, ComputeAndReadEarly)
CONSUMER(read_early_and_refuse, ReadEarlyAndRefuse)
CONSUMER(read_column_early, ReadColumnEarly)
CONSUMER(read_early_by_call, ReadEarlyByCall)
CONSUMER(read_early_on_stream, ReadEarlyOnStream)
CONSUMER(ignore, Ignore)
CONSUMER(release_on_any_device, ReleaseOnAnyDevice)
CONSUMER(keep, Keep)
CONSUMER(keep_and_refuse, KeepAndRefuse)
CONSUMER(refuse, Refuse)

int wait_for_first_stream(struct ArrowDeviceArrayStream* stream) {
  return TakeStream(stream, WaitOnHost, ReadEarly);
}

/* A validator gives two streams for each device. */
int keep_of_second_stream(struct ArrowDeviceArrayStream* stream) {
  static int streams;
  return TakeStream(stream, ++streams == 2 ? Keep : WaitOnHost, WaitOnHost);
}

#include "library.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#define FUNCTIONS FLETCHING_GO_PEER_FUNCTIONS
#define THEIRS(name) FletchingHostile##name
#define OURS(name) fletching_go_peer_##name
#include "forward.h"

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

struct Half {
  struct ArrowArray* arrays;
  size_t count;
  atomic_int* ready;
};

static void* release_half(void* argument) {
  const struct Half* half = argument;
  atomic_fetch_add(half->ready, 1);
  while (atomic_load(half->ready) < 2) sched_yield();
  for (size_t i = 0; i < half->count; ++i) half->arrays[i].release(&half->arrays[i]);
  return NULL;
}

int fletching_go_peer_release_on_threads(struct ArrowArray* arrays, size_t count) {
  atomic_int ready = 0;
  struct Half halves[] = {{arrays, count / 2, &ready},
                          {arrays + count / 2, count - count / 2, &ready}};
  pthread_t thread;
  if (pthread_create(&thread, NULL, release_half, &halves[0]) != 0) return -1;
  release_half(&halves[1]);
  pthread_join(thread, NULL);
  return 0;
}

/* Sanitizers replace the allocator. */
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)

/* Replace glibc's malloc and calloc for the whole process. */
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);

static _Thread_local int g_until_failure = -1;

static int fails(void) { return g_until_failure >= 0 && g_until_failure-- == 0; }

void* malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }

void* calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }

int fletching_go_peer_fail_allocation(int nth) {
  const int left = g_until_failure;
  g_until_failure = nth;
  return left;
}

#else

int fletching_go_peer_fail_allocation(int nth) {
  (void)nth;
  return -2;
}

#endif

size_t fletching_go_peer_in_use(void) {
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
  return mallinfo2().uordblks;
#endif
#endif
  return 0;
}

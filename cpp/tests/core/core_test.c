/* SPDX-License-Identifier: Apache-2.0
 *
 * White-box tests of the core: it is compiled into this program, with fake drivers and
 * allocation failures. For drivers behind a gate see ../gpu. */
#include "fakes.h"

#include <pthread.h>

#ifdef __linux__
#include <sys/wait.h>
#endif

#ifndef __has_feature /* before gcc 14, which defines __SANITIZE_THREAD__ */
#define __has_feature(name) 0
#endif

static struct FletchingMessage message;

static int says(const char* part) {
  if (strstr(message.text, part) != NULL) return 1;
  fprintf(stderr, "the message is: %s\n", message.text);
  return 0;
}

static struct FletchingEvent event_of_fake(struct FakeEvent** handle) {
  return (struct FletchingEvent){.sync_event = handle, .device_type = ARROW_DEVICE_CUDA};
}

static struct FletchingStream stream_on(void* handle, int64_t device_id) {
  return (struct FletchingStream){handle, device_id, NULL, FLETCHING_RUNTIME_CUDA};
}

/* --- Texts --- */

static void test_text_truncation_and_escaping(void) {
  char text[16];
  struct failure failure;
  copy_printable(text, sizeof text, "a\x01\xC3\xA9");
  CHECK(strcmp(text, "a\\x01\xC3\xA9") == 0);
  copy_printable(text, sizeof text, "\xF0\x9F\x8F\xB9\xC3\xA9\xE1\x80\x80");
  CHECK(strcmp(text, "\xF0\x9F\x8F\xB9\xC3\xA9\xE1\x80\x80") == 0);
  copy_printable(text, sizeof text, "\xED\x9F\xBF\xF4\x8F\xBF\xBF");
  CHECK(strcmp(text, "\xED\x9F\xBF\xF4\x8F\xBF\xBF") == 0);
  copy_printable(text, sizeof text, "\xE2\x82");
  CHECK(strcmp(text, "\\xe2\\x82") == 0);
  copy_printable(text, sizeof text, "0123456789abcd\xC3\xA9");
  CHECK(strcmp(text, "0123456789abcd") == 0); /* the character does not fit and is not split */

  /* An overlong character, a surrogate, and a character above U+10FFFF. */
  char whole[17];
  copy_printable(whole, sizeof whole, "\xF0\x8F\xBF\xBF");
  CHECK(strcmp(whole, "\\xf0\\x8f\\xbf\\xbf") == 0);
  copy_printable(whole, sizeof whole, "\xED\xA0\x80");
  CHECK(strcmp(whole, "\\xed\\xa0\\x80") == 0);
  copy_printable(whole, sizeof whole, "\xF4\x90\x80\x80");
  CHECK(strcmp(whole, "\\xf4\\x90\\x80\\x80") == 0);

  /* A message that is too long is truncated at a character boundary. */
  char longest[1100];
  memset(longest, 'x', 1022);
  memcpy(longest + 1022, "\xE2\x82\xAC!", 5);
  no_failure(&failure);
  CHECK(!fail(&failure, EIO, "%s", longest));
  CHECK(strlen(failure.message.text) == 1022);
  /* The first failure is kept. */
  CHECK(!fail(&failure, EINVAL, "second"));
  CHECK(failure.code == EIO);

  /* In the place of a name it is truncated at a character boundary too. */
  char name[MOST_NAME];
  memset(failure.message.text, 'x', 252);
  memcpy(failure.message.text + 252, "\xC3\xA9!", 4);
  set_text(name, "", &failure);
  CHECK(strlen(name) == 254 && strcmp(name + 251, "xx)") == 0);
}

/* --- Contexts --- */

static void test_check_layout_rejects_other_version(void) {
  CHECK(FletchingCheckLayout(FLETCHING_LAYOUT, &message) == 0);
  CHECK(FletchingCheckLayout(FLETCHING_LAYOUT + 1, &message) == EINVAL);
  CHECK(says("layout: expected the structs of version " FLETCHING_VERSION));
}

static void test_leave_restores_context_after_failed_pop(void) {
  for (int pops_nonetheless = 0; pops_nonetheless < 2; ++pops_nonetheless) {
    struct failure failure;
    struct scope scope = {0};
    no_failure(&failure);
    fake_reset();
    fake_push(&fake.primary[0]);
    CHECK(cuda_enter(&scope, &fake.primary[1], &failure));
    fake.pop_fails = true;
    fake.pops_nonetheless = pops_nonetheless != 0;
    CHECK(!cuda_leave(&scope, &failure));
    CHECK(fake.depth == 1 && fake_current() == &fake.primary[0]);
  }
}

/* The code in between has destroyed the context, which removes it from the stack. */
static void test_leave_skips_destroyed_context(void) {
  struct failure failure;
  struct scope scope = {0};
  no_failure(&failure);
  fake_reset();
  fake_push(&fake.primary[0]);
  CHECK(cuda_enter(&scope, &fake.primary[1], &failure));
  --fake.depth;
  CHECK(cuda_leave(&scope, &failure));
  CHECK(fake.depth == 1 && fake_current() == &fake.primary[0]);
}

static int call_with_context(int call, const struct FletchingEvent* event) {
  int own = 0;
  struct FletchingStream default_stream = stream_on(NULL, 1);
  if (call == 0) return FletchingEventWaitOn(event, stream_on(&own, 0), 0, &message);
  if (call == 1) return FletchingEventWaitOn(event, default_stream, 0, &message);
  if (call == 2) return FletchingEventSynchronize(event, &message);
  return FletchingStreamResolve(&default_stream, &message);
}

/* The driver reports an earlier error although it has returned the context. */
static void test_failed_query_of_current_context_is_error(void) {
  static const int queries[] = {2, 3, 3, 3};
  struct FakeEvent event = {0};
  struct FakeEvent* handle = &event;
  const struct FletchingEvent awaited = event_of_fake(&handle);
  for (int call = 0; call < 4; ++call) {
    for (int nth = 1; nth <= queries[call]; ++nth) {
      fake_reset();
      fake.failing_current = nth;
      CHECK(call_with_context(call, &awaited) == EIO);
      CHECK(says("cuCtxGetCurrent failed with CUDA_ERROR_LAUNCH_FAILED"));
      CHECK(fake.failing_current == 0 && fake.depth == 0);
      CHECK(fake.references[0] == 0 && fake.references[1] == 0);
    }
    fake_reset();
    fake.failing_current = queries[call] + 1;
    CHECK(call_with_context(call, &awaited) == 0);
  }
  struct failure failure;
  void* context = NULL;
  no_failure(&failure);
  fake_reset();
  fake.failing_current = 1;
  CHECK(!cuda_get_current(&context, &failure) && failure.code == EIO);
}

static void test_default_stream_uses_given_device(void) {
  struct FakeEvent event = {0};
  struct FakeEvent* handle = &event;
  const struct FletchingEvent awaited = event_of_fake(&handle);
  fake_reset();
  fake_push(&fake.primary[0]);
  for (uintptr_t stream = 0; stream <= 2; ++stream) {
    for (int device = 0; device < 2; ++device) {
      CHECK(FletchingEventWaitOn(&awaited, stream_on((void*)stream, device), 0, &message) == 0);
      CHECK(fake.waited_in == &fake.primary[device]);
      CHECK(fake.depth == 1 && fake.references[device] == 0);
    }
  }
  /* A context named by the caller counts as current, even if the thread has another one. */
  struct FletchingStream named = stream_on(NULL, 1);
  named.context = &fake.created;
  CHECK(FletchingEventWaitOn(&awaited, named, 0, &message) == 0);
  CHECK(fake.waited_in == &fake.created);
  named.device_id = 0;
  CHECK(FletchingEventWaitOn(&awaited, named, 0, &message) == 0);
  CHECK(fake.waited_in == &fake.primary[0] && fake.depth == 1);

  fake.is_active[1] = false;
  CHECK(FletchingEventWaitOn(&awaited, stream_on(NULL, 1), 0, &message) == EINVAL);
  CHECK(says("its primary context is not active"));
  CHECK(FletchingEventWaitOn(&awaited, stream_on(NULL, 1000), 0, &message) == EIO);
  fake.depth = 0;
  CHECK(FletchingEventWaitOn(&awaited, stream_on(NULL, INT64_MAX), 0, &message) == EINVAL);
  CHECK(says("expected 0 to 2147483647"));
  /* An event can be queried in any context. */
  int ready = 0;
  event.is_done = true;
  CHECK(FletchingEventReady(&awaited, &ready, &message) == 0 && ready == 1);
  const struct FletchingEvent none = {.device_type = 9999};
  ready = 0;
  CHECK(FletchingEventReady(&none, &ready, &message) == 0 && ready == 1);
}

/* It keeps naming the same stream, later and on other threads. */
static void test_resolve_default_stream(void) {
  fake_reset();
  fake_push(&fake.created);
  struct FletchingStream stream = stream_on((void*)2, 1);
  CHECK(FletchingStreamResolve(&stream, &message) == 0);
  CHECK(stream.handle == (void*)1 && stream.context == &fake.created && stream.device_id == 1);
  fake.depth = 0;
  struct FakeEvent event = {0};
  struct FakeEvent* handle = &event;
  const struct FletchingEvent awaited = event_of_fake(&handle);
  CHECK(FletchingEventWaitOn(&awaited, stream, 0, &message) == 0);
  CHECK(fake.waited_in == &fake.created);
  int own = 0;
  stream = stream_on(&own, 0);
  CHECK(FletchingStreamResolve(&stream, &message) == 0 && stream.handle == &own);
}

/* Registered host memory may have another address on the device. */
static void test_find_memory_returns_address_of_its_device_type(void) {
  const uintptr_t address = 0x1000;
  struct FletchingCudaMemory memory;
  fake_reset();
  fake.memory_kind = CU_MEMORYTYPE_HOST;
  CHECK(FletchingCudaMemoryFind(address, &memory, &message) == 0);
  CHECK(memory.device_type == ARROW_DEVICE_CUDA_HOST && memory.device_id == 1);
  CHECK(memory.address == address);
  fake.memory_kind = CU_MEMORYTYPE_DEVICE;
  CHECK(FletchingCudaMemoryFind(address, &memory, &message) == 0);
  CHECK(memory.device_type == ARROW_DEVICE_CUDA && memory.device_id == 1);
  CHECK(memory.address == fake_device_address(address));
}

/* One handle denotes the default stream of each device. */
static void test_default_streams_of_two_devices_wait(void) {
  fake_reset();
  CHECK(FletchingStreamWaitFor(stream_on(NULL, 0), stream_on(NULL, 1), &message) == 0);
  CHECK(fake.recorded_in == &fake.primary[1] && fake.waited_in == &fake.primary[0]);
  CHECK(fake.n_events == 1 && fake_living_events() == 0);
  CHECK(FletchingStreamWaitFor(stream_on(NULL, 1), stream_on(NULL, 1), &message) == 0);
  CHECK(fake.n_events == 1);
}

static int32_t get_hip_device(int32_t* device) {
  *device = 1;
  return 0;
}

static void test_resolve_hip_default_stream(void) {
  struct FletchingStream stream = {(void*)2, -1, NULL, FLETCHING_RUNTIME_HIP};
  hip.hipGetDevice = get_hip_device;
  atomic_store(&hip_library.is_loaded, true);
  atomic_store(&hip_library.is_initialized, true);
  CHECK(FletchingStreamResolve(&stream, &message) == 0);
  CHECK(stream.handle == NULL && stream.device_id == 1);
  stream = (struct FletchingStream){(void*)2, 0, NULL, FLETCHING_RUNTIME_HIP};
  CHECK(FletchingStreamResolve(&stream, &message) == 0 && stream.device_id == 0);
  stream = (struct FletchingStream){(void*)2, INT64_MAX, NULL, FLETCHING_RUNTIME_HIP};
  struct failure failure;
  struct scope scope = {0};
  no_failure(&failure);
  CHECK(!hip_enter_stream(&scope, &stream, &failure) && report(&failure, &message) == EINVAL);
  CHECK(says("not a HIP device: expected 0 to 2147483647, got 9223372036854775807"));
  memset(&hip, 0, sizeof hip);
  atomic_store(&hip_library.is_loaded, false);
  atomic_store(&hip_library.is_initialized, false);
}

static void test_missing_result_returns_einval(void) {
  static const char text[] = "result: NULL: expected an address for it";
  fake_reset();
  CHECK(FletchingStreamRecord(stream_on(NULL, 0), 0, NULL, &message) == EINVAL && says(text));
  CHECK(FletchingStreamResolve(NULL, &message) == EINVAL && says(text));
  CHECK(FletchingCudaStreamCreate(0, NULL, &message) == EINVAL && says(text));
  CHECK(FletchingCudaMemoryFind(4096, NULL, &message) == EINVAL && says(text));
}

static void test_memory_of_created_context_is_found(void) {
  struct FletchingCudaMemory memory;
  fake_reset();
  fake_push(&fake.primary[0]);
  fake.is_active[1] = false;
  fake.memory_kind = CU_MEMORYTYPE_DEVICE;
  CHECK(FletchingCudaMemoryFind(4096, &memory, &message) == 0);
  CHECK(memory.device_type == ARROW_DEVICE_CUDA && memory.device_id == 1);
  CHECK(memory.address == fake_device_address(4096) && fake.depth == 1);
  CHECK(FletchingCudaMemoryFind(8192, &memory, &message) == EINVAL);
  fake.is_active[1] = true;
  CHECK(FletchingCudaMemoryFind(8192, &memory, &message) == 0);
  CHECK(memory.address == fake_device_address(8192));
  CHECK(fake.depth == 1 && fake.references[1] == 0);
}

/* --- Capture modes --- */

static void test_failed_exchange_restores_capture_mode(void) {
  struct FakeEvent event = {.is_done = true};
  struct FakeEvent* handle = &event;
  const struct FletchingEvent awaited = event_of_fake(&handle);
  int ready = 0;
  /* Each exchange may report an earlier error, whether or not it took effect. */
  for (int failing = 1; failing <= 2; ++failing) {
    for (int exchanges = 0; exchanges < 2; ++exchanges) {
      fake_reset();
      fake.mode = 0;
      fake.failing_exchange = failing;
      fake.exchanges_nonetheless = exchanges != 0;
      ready = 1;
      CHECK(FletchingEventReady(&awaited, &ready, &message) == EIO && ready == 0);
      CHECK(says("cuThreadExchangeStreamCaptureMode"));
      CHECK(fake.mode == 0);
    }
  }
}

/* --- A library that lacks a function --- */

static void test_find_library_prefers_loaded_library(void) {
#ifdef __GLIBC__
  static const char* const names[] = {"libBrokenLocale.so.1", "libc.so.6", NULL};
  static const char* const missing[] = {"libfletching-none.so", NULL};
  static const char* const none[] = {NULL};
  const struct vendor_library loaded = {.title = "Test", .names = names};
  static const char* const first[] = {"libBrokenLocale.so.1", NULL};
  const struct vendor_library unloaded = {.title = "Test", .names = first};
  const struct vendor_library absent = {.title = "Test", .names = missing};
  const struct vendor_library nowhere = {.title = "Test", .names = none};
  const char* found = NULL;
  struct failure failure;
  no_failure(&failure);
  CHECK(find_library(&loaded, &found) != NULL && strcmp(found, "libc.so.6") == 0);
  CHECK(find_library(&unloaded, &found) != NULL && strcmp(found, names[0]) == 0);
  CHECK(find_library(&absent, &found) == NULL && !no_library(&absent, &failure));
  CHECK(report(&failure, &message) == ENOENT);
  CHECK(says("Test: cannot load libfletching-none.so; hint: "));
  no_failure(&failure);
  CHECK(!no_library(&nowhere, &failure) && report(&failure, &message) == ENOENT);
  CHECK(says("Test: no library for this system"));
#endif
}

static void test_long_path_keeps_both_ends(void) {
#ifdef __GLIBC__
  static char path[2000] = "/before/";
  const char* const names[] = {path, NULL};
  const struct vendor_library absent = {.title = "Test", .names = names};
  struct failure failure;
  const size_t start = strlen(path);
  memset(path + start, 'a', 300);
  strcpy(path + start + 300, "/last.so");
  no_failure(&failure);
  CHECK(!no_library(&absent, &failure) && report(&failure, &message) == ENOENT);
  CHECK(says(path) && says("/last.so: ") && says("No such file or directory)"));
  /* Characters of two bytes are not split. */
  for (size_t at = start; at < 1500; ++at) path[at] = (at - start) % 2 == 0 ? '\xC3' : '\xA9';
  strcpy(path + 1500, "/last.so");
  no_failure(&failure);
  CHECK(!no_library(&absent, &failure) && report(&failure, &message) == ENOENT);
  CHECK(says("load /before/\xC3\xA9") && says("\xC3\xA9...\xC3\xA9") &&
        says("\xC3\xA9/last.so; hint"));
  for (const char* text = message.text; *text != '\0'; text += utf8_length(text)) {
    CHECK(utf8_length(text) > 0);
    if (utf8_length(text) == 0) break;
  }
#endif
}

/* A path may contain any bytes; the system's reason repeats it. */
static void test_load_error_escapes_reason(void) {
#ifdef __GLIBC__
  static const char* const names[] = {"/none\xFF\n/libfake.so", NULL};
  const struct vendor_library absent = {.title = "absent", .names = names};
  struct failure failure;
  no_failure(&failure);
  CHECK(!no_library(&absent, &failure) && report(&failure, &message) == ENOENT);
  CHECK(says("(/none\\xff /libfake.so: "));

  /* The reason is longer than the room for it, which ends inside of a character. */
  static char path[2000];
  const char* const long_names[] = {path, NULL};
  const struct vendor_library far = {.title = "far", .names = long_names};
  for (size_t at = 0; at < 1200; ++at) path[at] = at % 2 == 0 ? '\xC3' : '\xA9';
  no_failure(&failure);
  CHECK(!no_library(&far, &failure) && report(&failure, &message) == ENOENT);
  CHECK(says("\xC3\xA9)") && strstr(message.text, "\\x") == NULL);
#endif
}

/* The initialization runs once per process, but again after a failure. */
static void test_driver_is_initialized_once(void) {
  struct FakeEvent event = {0};
  struct FakeEvent* handle = &event;
  const struct FletchingEvent awaited = event_of_fake(&handle);
  int ready = 0;
  fake_reset();
  fake.init_fails = true;
  CHECK(FletchingEventReady(&awaited, &ready, &message) == EIO && says("cuInit failed with"));
  CHECK(FletchingEventReady(&awaited, &ready, &message) == 0 && fake.initialized == 2);
  CHECK(FletchingEventReady(&awaited, &ready, &message) == 0 && fake.initialized == 2);
}

static void test_missing_function_fails_only_its_operation(void) {
  struct FakeEvent event = {.is_done = true};
  struct FakeEvent* handle = &event;
  const struct FletchingEvent awaited = event_of_fake(&handle);
  struct FletchingRecordedEvent* recorded = NULL;
  int own = 0;
  fake_reset();
  cuda.cuEventRecord = NULL;
  bind_cuda();
  CHECK(FletchingStreamRecord(stream_on(&own, 0), 0, &recorded, &message) == ENOSYS);
  CHECK(says("libfake.so has no cuEventRecord; hint") && recorded == NULL);
  fake_push(&fake.primary[0]);
  CHECK(FletchingEventSynchronize(&awaited, &message) == 0);
  CHECK(FletchingEventWaitOn(&awaited, stream_on(&own, 0), 0, &message) == 0);
  fake_reset();
  cuda.cuStreamWaitEvent = NULL;
  bind_cuda();
  fake_push(&fake.primary[0]);
  CHECK(FletchingEventWaitOn(&awaited, stream_on(&own, 0), 0, &message) == ENOSYS);
  CHECK(FletchingStreamRecord(stream_on(&own, 0), 0, &recorded, &message) == 0);
  FletchingRecordedEventDestroy(recorded);
  CHECK(fake_living_events() == 0);
  fake_reset();
  cuda.cuStreamGetCtx = NULL;
  fake_push(&fake.primary[0]);
  CHECK(FletchingEventWaitOn(&awaited, stream_on(&own, 0), 0, &message) == ENOSYS);
  CHECK(FletchingEventWaitOn(&awaited, stream_on(NULL, 0), 0, &message) == 0);
}

static void test_streams_of_two_runtimes_do_not_wait(void) {
  int own = 0;
  struct FletchingStream hip = stream_on(&own, 0);
  hip.runtime = FLETCHING_RUNTIME_HIP;
  fake_reset();
  CHECK(FletchingStreamWaitFor(hip, stream_on(&own, 0), &message) == EINVAL);
  CHECK(says("expected two streams of one runtime, got HIP and CUDA"));
  hip.runtime = 99;
  CHECK(FletchingStreamWaitFor(hip, stream_on(&own, 0), &message) == EINVAL);
  CHECK(says("got none and CUDA") && fake_living_events() == 0);
}

static void test_current_context_of_runtime(void) {
  fake_reset();
  CHECK(FletchingCurrentContext(FLETCHING_RUNTIME_CUDA) == NULL);
  fake_push(&fake.created);
  CHECK(FletchingCurrentContext(FLETCHING_RUNTIME_CUDA) == &fake.created);
  CHECK(FletchingCurrentContext(FLETCHING_RUNTIME_NONE) == NULL);
  CHECK(FletchingCurrentContext(99) == NULL);
}

/* --- Exports --- */

static int releases;
static void* _Atomic released_in; /* the context of the last release */

static void release(struct ArrowArray* array) {
  if (array->dictionary != NULL && array->dictionary->release != NULL) {
    array->dictionary->release(array->dictionary);
  }
  atomic_store(&released_in, fake_current());
  __atomic_add_fetch(&releases, 1, __ATOMIC_SEQ_CST);
  array->release = NULL;
}

static void release_with_children(struct ArrowArray* array) {
  for (int64_t i = 0; i < array->n_children; ++i) {
    if (array->children[i]->release != NULL) array->children[i]->release(array->children[i]);
  }
  release(array);
}

struct Tree {
  struct ArrowDeviceArray root;
  struct ArrowArray child;
  struct ArrowArray dictionary;
  struct ArrowArray* children[1];
};

static void make_tree(struct Tree* tree) {
  memset(tree, 0, sizeof *tree);
  tree->root.device_type = ARROW_DEVICE_CUDA;
  tree->root.array.release = release_with_children;
  tree->root.array.n_children = 1;
  tree->root.array.children = tree->children;
  tree->children[0] = &tree->child;
  tree->child.release = release;
  tree->child.dictionary = &tree->dictionary;
  tree->dictionary.release = release;
}

/* A consumer may move out the only child and its dictionary. */
static void test_last_release_destroys_event(void) {
  struct Tree tree;
  int own = 0;
  for (int last = 0; last < 3; ++last) {
    struct ArrowArray* structs[3];
    fake_reset();
    make_tree(&tree);
    releases = 0;
    CHECK(FletchingDeviceArrayExportWithEvent(&tree.root, stream_on(&own, 0), 0, &message) == 0);
    CHECK(*(struct FakeEvent**)tree.root.sync_event == &fake.events[0]);
    struct ArrowArray dictionary = tree.dictionary;
    tree.dictionary.release = NULL;
    struct ArrowArray child = tree.child;
    tree.child.release = NULL;
    structs[0] = &tree.root.array;
    structs[1] = &child;
    structs[2] = &dictionary;
    for (int i = 1; i <= 3; ++i) {
      struct ArrowArray* next = structs[(last + i) % 3];
      CHECK(fake_living_events() == 1);
      next->release(next);
      CHECK(next->release == NULL);
    }
    CHECK(fake_living_events() == 0 && releases == 3);
  }
}

enum { CHILDREN_PER_THREAD = 64, RELEASING_THREADS = 4 };
static atomic_bool may_release;

static void* release_moved_children(void* data) {
  struct ArrowArray* children = data;
  while (!atomic_load(&may_release)) {
  }
  for (int i = 0; i < CHILDREN_PER_THREAD; ++i) children[i].release(&children[i]);
  return NULL;
}

/* A lost update of the user count keeps the event alive. It is rare, but the thread sanitizer
 * reports a count that is not atomic. */
static void test_threads_release_moved_children(void) {
  enum { CHILDREN = CHILDREN_PER_THREAD * RELEASING_THREADS };
  static struct ArrowArray children[CHILDREN];
  static struct ArrowArray moved[RELEASING_THREADS][CHILDREN_PER_THREAD];
  struct ArrowArray* list[CHILDREN];
  pthread_t threads[RELEASING_THREADS];
  struct Tree tree;
  int own = 0;
  fake_reset();
  make_tree(&tree);
  tree.root.array.n_children = CHILDREN;
  tree.root.array.children = list;
  for (int i = 0; i < CHILDREN; ++i) {
    children[i].release = release;
    list[i] = &children[i];
  }
  releases = 0;
  CHECK(FletchingDeviceArrayExportWithEvent(&tree.root, stream_on(&own, 0), 0, &message) == 0);
  memcpy(moved, children, sizeof moved);
  for (int i = 0; i < CHILDREN; ++i) children[i].release = NULL;
  tree.root.array.release(&tree.root.array);
  CHECK(fake_living_events() == 1);
  for (int i = 0; i < RELEASING_THREADS; ++i) {
    CHECK(pthread_create(&threads[i], NULL, release_moved_children, moved[i]) == 0);
  }
  atomic_store(&may_release, true);
  for (int i = 0; i < RELEASING_THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(releases == CHILDREN + 1 && fake_living_events() == 0);
}

static bool push_fails;

static int32_t push_after_failure(CUcontext context) {
  const bool fails = push_fails;
  push_fails = false;
  return fails ? CUDA_ERROR_LAUNCH_FAILED : push_current(context);
}

/* The first failure may be left over from earlier work. */
static void test_destroy_retries_context(void) {
  struct FletchingRecordedEvent* recorded = NULL;
  int own = 0;
  fake_reset();
  CHECK(FletchingStreamRecord(stream_on(&own, 0), 0, &recorded, &message) == 0);
  cuda.cuCtxPushCurrent = push_after_failure;
  push_fails = true;
  FletchingRecordedEventDestroy(recorded);
  CHECK(!push_fails && fake_living_events() == 0 && fake.depth == 0);
}

/* A released child was moved out or freed, so its descendants belong to others. */
static void test_export_skips_released_child(void) {
  struct Tree tree;
  int own = 0;
  fake_reset();
  make_tree(&tree);
  tree.child.release = NULL;
  tree.child.n_children = 3;
  tree.child.children = NULL;
  CHECK(FletchingDeviceArrayExportWithEvent(&tree.root, stream_on(&own, 0), 0, &message) == 0);
  CHECK(tree.dictionary.release == release);
  tree.root.array.release(&tree.root.array);
  CHECK(fake_living_events() == 0);
}

static void test_export_rejects_malformed_array(void) {
  struct Tree tree;
  struct FletchingStream stream = stream_on(NULL, 0);
  fake_reset();
  make_tree(&tree);
  tree.root.array.n_children = -1;
  CHECK(FletchingDeviceArrayExportWithEvent(&tree.root, stream, 0, &message) == EINVAL);
  tree.root.array.n_children = ((int64_t)1 << 22) + 1;
  CHECK(FletchingDeviceArrayExportWithEvent(&tree.root, stream, 0, &message) == EINVAL);
  tree.root.array.n_children = 1;
  tree.children[0] = NULL;
  CHECK(FletchingDeviceArrayExportWithEvent(&tree.root, stream, 0, &message) == EINVAL);
  tree.root.array.children = NULL;
  CHECK(FletchingDeviceArrayExportWithEvent(&tree.root, stream, 0, &message) == EINVAL);
  tree.root.array.children = tree.children;
  tree.children[0] = &tree.child;
  tree.child.n_children = 1;
  tree.child.children = tree.children; /* it is its own child */
  CHECK(FletchingDeviceArrayExportWithEvent(&tree.root, stream, 0, &message) == EINVAL);
  CHECK(says("deeper than 256 levels"));
  CHECK(tree.root.array.release == release_with_children && tree.root.sync_event == NULL);
  CHECK(tree.child.release == release && fake_living_events() == 0);
}

/* Each level lists the next one twice: few structs, but very many paths. */
static void test_export_rejects_shared_children(void) {
  enum { LEVELS = 30 };
  struct ArrowArray levels[LEVELS] = {{0}};
  struct ArrowArray* children[LEVELS][2];
  struct Tree tree;
  int own = 0;
  for (int i = 0; i < LEVELS; ++i) {
    levels[i].release = release;
    if (i + 1 == LEVELS) break;
    levels[i].n_children = 2;
    levels[i].children = children[i];
    children[i][0] = children[i][1] = &levels[i + 1];
  }
  fake_reset();
  make_tree(&tree);
  tree.children[0] = &levels[0];
  CHECK(FletchingDeviceArrayExportWithEvent(&tree.root, stream_on(&own, 0), 0, &message) == EINVAL);
  CHECK(says("4194304 structs in all"));
}

static void test_export_counts_dictionary(void) {
  const int64_t most = (int64_t)1 << 22;
  struct ArrowArray gone = {0};
  struct ArrowArray** children = malloc((size_t)most * sizeof *children);
  struct Tree tree;
  int own = 0;
  CHECK(children != NULL);
  if (children == NULL) return;
  for (int64_t i = 0; i < most; ++i) children[i] = &gone;
  fake_reset();
  make_tree(&tree);
  tree.root.array.children = children;
  tree.root.array.dictionary = &tree.dictionary;
  tree.root.array.n_children = most;
  CHECK(FletchingDeviceArrayExportWithEvent(&tree.root, stream_on(&own, 0), 0, &message) == EINVAL);
  CHECK(says("4194304 structs in all"));
  tree.root.array.n_children = most - 1;
  CHECK(FletchingDeviceArrayExportWithEvent(&tree.root, stream_on(&own, 0), 0, &message) == 0);
  tree.root.array.release(&tree.root.array);
  free(children);
}

/* --- Threads --- */

#ifndef _WIN32
static atomic_int mask_seen; /* 1: correct, 2: wrong */

static void look_at_mask(void* unused) {
  sigset_t mask;
  (void)unused;
  (void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
  atomic_store(&mask_seen, sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGSEGV) ? 1 : 2);
}

static void test_threads_block_process_signals(void) {
  sigset_t mask;
  CHECK(start_thread(look_at_mask, NULL));
  while (atomic_load(&mask_seen) == 0) sleep_ns(1000);
  CHECK(atomic_load(&mask_seen) == 1);
  (void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
  CHECK(!sigismember(&mask, SIGUSR1));
}
#endif

#ifdef __linux__
/* --- Processes --- */

/* A handler registered before the core's runs first in the child. */
static int64_t number_in_handler;
static void enter_in_handler(void) { number_in_handler = process_number(); }

static atomic_bool has_locks;
static atomic_bool may_go_on;

static lock_type* const all_locks[] = {
    &waiter_lock,         &opencl_library.lock, &starting,         &reaper.lock,   &releaser.lock,
    &vulkan_library.lock, &cuda_library.lock,   &hip_library.lock, &handover_lock,
};
enum { LOCKS = sizeof all_locks / sizeof all_locks[0] };

static void hold_locks(void* unused) {
  (void)unused;
  for (int i = 0; i < LOCKS; ++i) lock(all_locks[i]);
  atomic_store(&has_locks, true);
  while (!atomic_load(&may_go_on)) sleep_ns(1000);
  for (int i = 0; i < LOCKS; ++i) unlock(all_locks[i]);
  atomic_store(&has_locks, false);
}

/* Runs in the child and must not hang. */
static int call_in_child(int64_t number_of_parent, bool has_handlers) {
  const struct FletchingWaiter waiter = {fake_waiter_synchronize, NULL, NULL, NULL};
  struct failure failure;
  (void)alarm(60); /* kills a child that hangs */
  no_failure(&failure);
  const int64_t number = process_number();
  if (number == number_of_parent || number != process_number()) return 1;
  if (has_handlers && process_number() != number_in_handler) return 4;
  if (FletchingRegisterWaiter(9998, &waiter, NULL) != 0 || !FletchingHasWaiter(9998)) return 2;
  atomic_store(&opencl_library.is_loaded, false);
  if (!load(&opencl_library, &failure) && failure.code != ENOENT) return 3;
  for (int i = 0; i < LOCKS; ++i) lock(all_locks[i]);
  return 0;
}

static int status_of(pid_t child) {
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  return status;
}

/* Whether a child sees zeros. qemu accepts the advice and ignores it. */
static bool system_wipes_memory(void) {
  bool is_wiped = false;
#ifdef MADV_WIPEONFORK
  char* page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  if (page == MAP_FAILED) return false;
  *page = 1;
  (void)madvise(page, 1, MADV_WIPEONFORK);
  const pid_t child = fork();
  if (child == 0) _exit(*page);
  is_wiped = status_of(child) == 0;
  CHECK(munmap(page, 1) == 0);
#endif
  return is_wiped;
}

/* A child inherits the parent's locks but not the threads that hold them. */
static void test_forked_child_resets_locks(void) {
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
  printf("skipped: a child of fork: the thread sanitizer takes its locks for the parent's\n");
  return;
#endif
  fake_reset();
  CHECK(FletchingUnregisterWaiter(9998) == 0);
  CHECK(start_thread(hold_locks, NULL));
  while (!atomic_load(&has_locks)) sleep_ns(1000);
  const int64_t own = process_number();
  const bool is_wiped = process_mark != &ordinary_mark;
  CHECK(is_wiped == system_wipes_memory());
  pid_t child = fork();
  if (child == 0) _exit(call_in_child(own, is_wiped));
  CHECK(status_of(child) == 0);
  if (is_wiped) {
    child = _Fork(); /* calls no atfork handlers */
    if (child == 0) _exit(call_in_child(own, false));
    CHECK(status_of(child) == 0);
  } else {
    printf("skipped: a child without fork handlers: this system wipes no memory for it\n");
  }
  CHECK(process_number() == own);
  atomic_store(&may_go_on, true);
  while (atomic_load(&has_locks)) sleep_ns(1000);
}

static void test_inherited_event_is_reported_once(void) {
  int ends[2];
  char text[1024] = "";
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    (void)dup2(ends[1], STDERR_FILENO);
    for (int i = 0; i < 3; ++i) count_inherited();
    _exit(atomic_load(&inherited_events) == 3 ? 0 : 1);
  }
  CHECK(status_of(child) == 0);
  CHECK(read(ends[0], text, sizeof text - 1) > 0);
  const char* const first = strstr(text, "release in a child of fork");
  CHECK(first != NULL && strstr(first + 1, "release in a child") == NULL);
  CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}
#endif

static int fake_waiter_ready(void* context, void* event, int64_t device_id, int* ready,
                             struct FletchingMessage* unused) {
  (void)context;
  (void)event;
  (void)device_id;
  (void)unused;
  *ready = 1;
  return 0;
}

static void leave_schema(struct ArrowSchema* schema) { schema->release = NULL; }

static void test_array_whose_waiter_cannot_wait_is_not_exported(void) {
  const struct FletchingWaiter waiter = {NULL, NULL, fake_waiter_ready, NULL};
  const struct FletchingTensorStream order = {.ordering = FLETCHING_ORDER_HOST};
  const void* buffers[] = {NULL, &waiter};
  int event = 0;
  struct ArrowSchema schema = {.format = "C", .release = leave_schema};
  struct ArrowDeviceArray array = {
      .array = {.length = 1, .n_buffers = 2, .buffers = buffers, .release = release},
      .device_type = ARROW_DEVICE_EXT_DEV,
      .sync_event = &event};
  DLManagedTensorVersioned* tensor = NULL;
  CHECK(FletchingRegisterWaiter(ARROW_DEVICE_EXT_DEV, &waiter, NULL) == 0);
  CHECK(FletchingTensorExport(&schema, &array, &order, 0, &tensor, &message) == ENOTSUP);
  CHECK(says("not supported by the registered waiter"));
  CHECK(tensor == NULL && array.array.release == release);
  CHECK(FletchingUnregisterWaiter(ARROW_DEVICE_EXT_DEV) == 1);
}

static void test_replaced_waiter_keeps_others(void) {
  const struct FletchingWaiter waiter = {fake_waiter_synchronize, NULL, NULL, NULL};
  CHECK(FletchingRegisterWaiter(9996, &waiter, NULL) == 0);
  CHECK(FletchingRegisterWaiter(9997, &waiter, NULL) == 0);
  CHECK(FletchingRegisterWaiter(9996, &waiter, NULL) == 0);
  CHECK(FletchingUnregisterWaiter(9997) == 1 && FletchingUnregisterWaiter(9996) == 1);
}

static void test_allocation_failure_returns_enomem(void) {
  int own = 0;
  struct Tree tree;
  int failed = 0;
  for (int nth = 0;; ++nth) {
    fake_reset();
    fake_push(&fake.primary[0]);
    make_tree(&tree);
    releases = 0;
    fail_allocation(nth);
    const int code =
        FletchingDeviceArrayExportWithEvent(&tree.root, stream_on(&own, 0), 0, &message);
    if (!has_failed_allocation()) {
      CHECK(code == 0);
      tree.root.array.release(&tree.root.array);
      break;
    }
    ++failed;
    CHECK(code == ENOMEM && says("no memory"));
    CHECK(tree.root.array.release == release_with_children && tree.root.sync_event == NULL);
    CHECK(fake_living_events() == 0 && releases == 0);
  }
  CHECK(failed == 4); /* the share, and one hook per struct */

  /* Without memory a release waits for the stream and is not early. */
  fake_reset();
  fake_push(&fake.primary[0]);
  make_tree(&tree);
  releases = 0;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(&own, 0), 0, &message) == 0);
  CHECK(tree.root.array.release == NULL);
  fake_wait_for_release(&releases, 3);
  make_tree(&tree);
  releases = 0;
  fake.finished = 0;
  fail_allocation(0);
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(&own, 0), 0, &message) == 0);
  CHECK(has_failed_allocation());
  CHECK(fake.finished == 1 && releases == 3);

  const struct FletchingWaiter waiter = {fake_waiter_synchronize, NULL, NULL, NULL};
  fail_allocation(0);
  CHECK(FletchingRegisterWaiter(9999, &waiter, &message) == ENOMEM);
  CHECK(has_failed_allocation() && !FletchingHasWaiter(9999));
  struct FletchingRecordedEvent* recorded = NULL;
  fail_allocation(0);
  CHECK(FletchingStreamRecord(stream_on(&own, 0), 0, &recorded, &message) == ENOMEM);
  CHECK(has_failed_allocation() && fake_living_events() == 0);
}

static void test_report_allocation_failure_returns_enomem(void) {
  struct FletchingDeviceReport* report = NULL;
  int failed = 0;
#ifndef _WIN32
  CHECK(setenv("VK_DRIVER_FILES", "/none", 1) == 0);
#endif
  for (int nth = 0;; ++nth) {
    fake_reset();
    fail_allocation(nth);
    const int code = FletchingDeviceReportCreate(&report, &message);
    if (!has_failed_allocation()) {
      CHECK(code == 0);
      break;
    }
    ++failed;
    CHECK(code == ENOMEM && report == NULL && says("device report: no memory"));
  }
  CHECK(failed >= 3); /* the report, the CUDA devices and their list */
  for (int64_t i = 0; i < FletchingDeviceReportCount(report); ++i) {
    const struct FletchingDeviceReportEntry* entry = FletchingDeviceReportGet(report, i);
    if (entry->device_type == ARROW_DEVICE_CUDA) {
      CHECK(entry->n_devices == 2 && entry->devices[1].id == 1);
      CHECK(strcmp(entry->devices[0].name, "fake") == 0);
      CHECK(strstr(entry->devices[1].name, "(CUDA driver API: cuDeviceGetName failed") != NULL);
      CHECK(strcmp(entry->version, "CUDA 13.0") == 0);
    }
    if (entry->device_type == ARROW_DEVICE_OPENCL) {
      CHECK(entry->n_devices == 3 && entry->devices[1].id == 1 && entry->devices[2].id == 2);
      CHECK(strcmp(entry->devices[2].name, "fake") == 0);
    }
    if (entry->device_type == ARROW_DEVICE_CUDA_MANAGED) {
      CHECK(entry->n_devices == 1 && entry->devices[0].id == 1);
    }
  }
  FletchingDeviceReportDestroy(report);
}

static const struct FletchingDeviceReportEntry* entry_of(const struct FletchingDeviceReport* report,
                                                         ArrowDeviceType type) {
  for (int64_t i = 0; i < FletchingDeviceReportCount(report); ++i) {
    const struct FletchingDeviceReportEntry* entry = FletchingDeviceReportGet(report, i);
    if (entry->device_type == type) return entry;
  }
  return NULL;
}

/* Makes a report and checks that the entry has no devices, for a reason with these parts. */
static void check_no_device(ArrowDeviceType type, const char* call, const char* error) {
  struct FletchingDeviceReport* report = NULL;
  CHECK(FletchingDeviceReportCreate(&report, &message) == 0);
  const struct FletchingDeviceReportEntry* entry = entry_of(report, type);
  CHECK(entry != NULL && entry->n_devices == 0 && entry->presence != FLETCHING_PRESENCE_REAL);
  CHECK(entry != NULL && strstr(entry->reason, call) != NULL);
  CHECK(entry != NULL && strstr(entry->reason, error) != NULL);
  FletchingDeviceReportDestroy(report);
}

static int32_t count_three(int32_t* count) {
  *count = 3;
  return 0;
}

/* The third device fails. */
static void test_report_lists_no_device_after_failure(void) {
  fake_reset();
  cuda.cuDeviceGetCount = count_three;
  check_no_device(ARROW_DEVICE_CUDA, "cuDeviceGet failed", "with 101");
}

static void test_report_names_first_failing_opencl_driver(void) {
  fake_reset();
  fake.drivers_fail = true;
  check_no_device(ARROW_DEVICE_OPENCL, "clGetDeviceIDs failed", "CL_OUT_OF_RESOURCES");
}

static VkResult vulkan_list; /* answer of vkEnumeratePhysicalDevices */

static VkResult two_devices(VkInstance instance, uint32_t* count, VkPhysicalDevice* devices) {
  (void)instance;
  *count = vulkan_list == 0 ? 2 : 0;
  for (int i = 0; devices != NULL && i < 2; ++i) devices[i] = (VkPhysicalDevice)&fake.primary[i];
  return vulkan_list;
}

static void get_properties(VkPhysicalDevice device, struct vulkan_device_properties* properties) {
  properties->name[0] = (const void*)device == &fake.primary[0] ? 'a' : 'b';
}

static int vulkan_instances;
static VkResult vulkan_answer; /* of vkCreateInstance */

static VkResult create_instance(const struct vulkan_instance_info* info, const void* allocator,
                                VkInstance* instance) {
  (void)info;
  (void)allocator;
  if (vulkan_answer == 0) ++vulkan_instances;
  *instance = (VkInstance)&fake.created;
  return vulkan_answer;
}
static void destroy_instance(VkInstance instance, const void* allocator) {
  (void)allocator;
  vulkan_instances -= (const void*)instance == &fake.created ? 1 : 0;
}

static any_function get_instance_function(VkInstance instance, const char* name) {
  (void)instance;
  if (strcmp(name, "vkCreateInstance") == 0) return (any_function)create_instance;
  if (strcmp(name, "vkDestroyInstance") == 0) return (any_function)destroy_instance;
  if (strcmp(name, ENUMERATE_DEVICES) == 0) return (any_function)two_devices;
  return strcmp(name, "vkGetPhysicalDeviceProperties") == 0 ? (any_function)get_properties : NULL;
}

static void test_report_lists_every_vulkan_device(void) {
  const bool was_loaded = atomic_exchange(&vulkan_library.is_loaded, true);
  const struct vulkan_functions before = vulkan;
  struct found_devices found = {0};
  vulkan.vkGetInstanceProcAddr = get_instance_function;
  vulkan_answer = 0;
  find_vulkan_devices(&found);
  CHECK(found.n_devices == 2 && found.failure.code == 0 && vulkan_instances == 0);
  CHECK(strcmp(found.version, "Vulkan 1.0.0") == 0); /* it cannot be asked for its version */
  if (found.n_devices == 2) {
    CHECK(found.devices[0].id == 0 && strcmp(found.devices[0].name, "a") == 0);
    CHECK(found.devices[1].id == 1 && strcmp(found.devices[1].name, "b") == 0);
  }
  free(found.devices);

  struct found_devices unlisted = {0};
  vulkan_list = -3; /* VK_ERROR_INITIALIZATION_FAILED */
  find_vulkan_devices(&unlisted);
  vulkan_list = 0;
  CHECK(unlisted.n_devices == 0 && unlisted.failure.code == EIO && vulkan_instances == 0);

  struct found_devices none = {0};
  vulkan_answer = -9; /* VK_ERROR_INCOMPATIBLE_DRIVER */
  find_vulkan_devices(&none);
  CHECK(none.n_devices == 0 && none.failure.code == EIO && vulkan_instances == 0);
  CHECK(strstr(none.failure.message.text, "; hint: install a driver") != NULL);
  vulkan = before;
  atomic_store(&vulkan_library.is_loaded, was_loaded);
}

/* --- Tensors --- */

static int deletions;

static void count_deletion(DLManagedTensorVersioned* tensor) {
  (void)tensor;
  ++deletions;
}

static void test_tensor_without_event_is_deleted(void) {
  int own = 0;
  int64_t shape[] = {3};
  struct ArrowSchema schema;
  struct ArrowDeviceArray array;
  DLManagedTensorVersioned tensor = {.version = {DLPACK_MAJOR_VERSION, 0},
                                     .deleter = count_deletion,
                                     .dl_tensor = {.data = (void*)(uintptr_t)0x1000,
                                                   .device = {kDLCUDA, 0},
                                                   .ndim = 1,
                                                   .dtype = {kDLInt, 32, 1}}};
  tensor.dl_tensor.shape = shape;
  const struct FletchingTensorStream order = {stream_on(&own, 0), FLETCHING_ORDER_STREAM};
  fake_reset();
  fake_push(&fake.primary[0]);
  deletions = 0;
  fake.create_fails = true;
  CHECK(FletchingTensorImport(&tensor, &order, 0, &schema, &array, NULL, &message) != 0);
  CHECK(deletions == 1 && schema.release == NULL && array.array.release == NULL);
  fake.create_fails = false;
  CHECK(FletchingTensorImport(&tensor, &order, 0, &schema, &array, NULL, &message) == 0);
  CHECK(deletions == 1 && array.sync_event != NULL && fake_living_events() == 1);
  array.array.release(&array.array);
  schema.release(&schema);
  CHECK(deletions == 2 && fake_living_events() == 0);
}

/* DLPack's device id of pinned memory is always 0, whichever GPU uses it. */
static void test_pinned_memory_uses_current_gpu_default_stream(void) {
  int64_t shape[] = {1};
  const struct FletchingTensorStream order = {stream_on((void*)(uintptr_t)1, -1),
                                              FLETCHING_ORDER_STREAM};
  const DLDeviceType types[] = {kDLCUDA, kDLCUDAHost, kDLCUDAManaged};
  for (int i = 0; i < 3; ++i) {
    struct ArrowSchema schema;
    struct ArrowDeviceArray array;
    DLManagedTensorVersioned tensor = {.version = {DLPACK_MAJOR_VERSION, 0},
                                       .dl_tensor = {.data = (void*)(uintptr_t)0x1000,
                                                     .device = {types[i], 0},
                                                     .ndim = 1,
                                                     .dtype = {kDLInt, 32, 1}}};
    tensor.dl_tensor.shape = shape;
    fake_reset();
    fake_push(&fake.primary[1]);
    CHECK(FletchingTensorImport(&tensor, &order, 0, &schema, &array, NULL, &message) == 0);
    CHECK(fake.recorded_in == &fake.primary[types[i] == kDLCUDA ? 0 : 1]);
    CHECK(array.device_id == 0 && array.sync_event != NULL);
    array.array.release(&array.array);
    schema.release(&schema);
  }
}

static int default_stream(DLDeviceType type, int32_t id, void** out) {
  (void)type;
  (void)id;
  *out = NULL;
  return 0;
}

static void test_work_stream_of_pinned_memory_is_of_current_gpu(void) {
  const DLPackExchangeAPI table = {.current_work_stream = default_stream};
  const DLDevice pinned = {kDLCUDAHost, 0};
  struct FletchingTensorStream stream;
  fake_reset();
  CHECK(FletchingExchangeWorkStream(&table, pinned, &stream, &message) == 0);
  CHECK(stream.stream.device_id == 0 && stream.ordering == FLETCHING_ORDER_STREAM);
  fake_push(&fake.primary[1]);
  CHECK(FletchingExchangeWorkStream(&table, pinned, &stream, &message) == 0);
  CHECK(stream.stream.device_id == -1);
  fake.failing_current = 1;
  CHECK(FletchingExchangeWorkStream(&table, pinned, &stream, &message) == EIO);
}

/* --- Releases --- */

/* If the core can neither defer nor wait, it leaks the array rather than releasing it early. */
static void test_release_after_leaks_without_wait(void) {
  struct Tree tree;
  struct FletchingReleaseCounts before;
  struct FletchingReleaseCounts after;
  int own = 0;
  FletchingPendingReleases(&before, NULL);
  fake_reset();
  fake_push(&fake.primary[0]);
  make_tree(&tree);
  releases = 0;
  fake.is_captured = true;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(&own, 0), 0, &message) == EBUSY);
  CHECK(says("hint: keep the array until the graph is destroyed"));
  CHECK(tree.root.array.release == NULL && releases == 0 && fake.finished == 0);
  fake.is_captured = false;

  make_tree(&tree);
  fake.record_fails = true;
  fake.finish_fails = true;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(&own, 0), 0, &message) == EIO);
  CHECK(says("cuEventRecord"));
  CHECK(tree.root.array.release == NULL && releases == 0 && fake_living_events() == 0);
  make_tree(&tree);
  fake.create_fails = true;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(&own, 0), 0, &message) == EIO);
  CHECK(says("cuEventCreate") && releases == 0);
  fake.create_fails = false;
  /* The first failure of the wait may come from earlier work. */
  make_tree(&tree);
  fake.finish_fails = false;
  fake.failing_finishes = 1;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(&own, 0), 0, &message) == 0);
  CHECK(releases == 3 && fake.finished == 1);
  FletchingPendingReleases(&after, NULL);
  CHECK(after.leaked == before.leaked + 3 && after.pending == 0);
}

/* GPU work may read host memory, whose device id does not identify the GPU. */
static void test_release_after_accepts_host_memory(void) {
  struct Tree tree;
  struct FletchingReleaseCounts before;
  struct FletchingReleaseCounts after;
  const struct FletchingStream default_stream = {NULL, -1, NULL, FLETCHING_RUNTIME_CUDA};
  fake_reset();
  fake_push(&fake.primary[1]);
  make_tree(&tree);
  tree.root.device_type = ARROW_DEVICE_CPU;
  tree.root.device_id = -1;
  releases = 0;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, default_stream, 0, &message) == 0);
  fake_wait_for_release(&releases, 3);
  CHECK(fake.recorded_in == &fake.primary[1]);
  make_tree(&tree);
  tree.root.device_type = ARROW_DEVICE_EXT_DEV;
  tree.root.device_id = 0;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, default_stream, 0, &message) == 0);
  fake_wait_for_release(&releases, 6);
  CHECK(fake.recorded_in == &fake.primary[1]);

  fake_reset(); /* no current context, so no default stream */
  FletchingPendingReleases(&before, NULL);
  make_tree(&tree);
  tree.root.device_type = ARROW_DEVICE_CPU;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, default_stream, 0, &message) == EINVAL);
  CHECK(says("hint: name the device of a default stream, or make its context current"));
  FletchingPendingReleases(&after, NULL);
  CHECK(after.leaked == before.leaked + 1 && releases == 6);
}

static void test_release_after_rejects_other_runtime(void) {
  struct Tree tree;
  struct FletchingReleaseCounts before;
  struct FletchingReleaseCounts after;
  FletchingPendingReleases(&before, NULL);
  fake_reset();
  make_tree(&tree);
  releases = 0;
  const struct FletchingStream of_hip = {NULL, 0, NULL, FLETCHING_RUNTIME_HIP};
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, of_hip, 0, &message) == EINVAL);
  CHECK(says("expected one of cuda, got one of HIP"));
  CHECK(tree.root.array.release == NULL && releases == 0);
  FletchingPendingReleases(&after, NULL);
  CHECK(after.leaked == before.leaked + 1 && after.pending == before.pending);
}

/* The thread that queries the events then calls the callback. Runs before any other release. */
static void test_callback_runs_without_worker_thread(void) {
  struct Tree tree;
  struct FletchingRelease* entry = calloc(1, sizeof *entry);
  fake_reset();
  make_tree(&tree);
  releases = 0;
  entry->array = tree.root;
  entry->recorded.runtime = &cuda_runtime;
  append_entry(&releaser.ready, entry);
  atomic_fetch_add(&releaser.running_count, 1);
  fail_allocation(0);
  CHECK(keep_up());
  CHECK(has_failed_allocation() && releases == 3);
  CHECK(!keep_up() && atomic_load(&releaser.running_count) == 0);
}

/* A captured per-thread stream: the reaper has a different one. */
static void test_release_after_keeps_captured_stream(void) {
  struct Tree tree;
  fake_reset();
  fake_push(&fake.primary[1]);
  make_tree(&tree);
  releases = 0;
  fake.is_captured = true;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on((void*)2, 1), FLETCHING_CAPTURE_KEEP,
                                         &message) == 0);
  fake_wait_for_asked(4);
  CHECK(releases == 0);
  fake.is_captured = false;
  fake_wait_for_release(&releases, 3);
  CHECK(fake.recorded_on == (void*)1 && fake.recorded_in == &fake.primary[1]);
}

/* After these errors no work can be running. Other errors do not imply that. */
static void test_is_lost_only_for_device_loss(void) {
  static const int32_t cuda_lost[] = {4, 700, 709, 719}, hip_lost[] = {4, 700, 710, 719};
  static const int32_t cuda_other[] = {0, 1, 2, 3, 46, 201, 214, 220, 400, 600, 900, 906, 907, 999};
  static const int32_t hip_other[] = {0, 1, 400, 600, 709, 900};
  for (size_t i = 0; i < sizeof cuda_lost / sizeof *cuda_lost; ++i)
    CHECK(cuda_is_lost(cuda_lost[i]));
  for (size_t i = 0; i < sizeof cuda_other / sizeof *cuda_other; ++i) {
    CHECK(!cuda_is_lost(cuda_other[i]));
  }
  for (size_t i = 0; i < sizeof hip_lost / sizeof *hip_lost; ++i) CHECK(hip_is_lost(hip_lost[i]));
  for (size_t i = 0; i < sizeof hip_other / sizeof *hip_other; ++i)
    CHECK(!hip_is_lost(hip_other[i]));
  CHECK(opencl_is_lost(-5));
  CHECK(!opencl_is_lost(CL_COMPLETE) && !opencl_is_lost(CL_QUEUED) && !opencl_is_lost(17));
}

/* An unavailable device (46) and an uncorrectable error of ECC (214) or NVLink (220) do not imply
 * that the work has ended. */
static void test_unclear_device_error_releases_nothing(void) {
  static const int codes[] = {46, 214, 220};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i) {
    struct Tree tree;
    char text[32];
    struct FakeEvent* handle = &fake.events[0];
    const struct FletchingEvent awaited = event_of_fake(&handle);
    int own = 0;
    int ready = 0;
    fake_reset();
    make_tree(&tree);
    releases = 0;
    fake.events[0].refuses = codes[i];
    CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(&own, 0), 0, &message) == 0);
    while (fake.events[0].asked < 4 && __atomic_load_n(&releases, __ATOMIC_SEQ_CST) == 0) {
      sleep_ns(100000);
    }
    CHECK(releases == 0);
    (void)snprintf(text, sizeof text, "cuEventQuery failed with %d", codes[i]);
    CHECK(FletchingEventReady(&awaited, &ready, &message) == EIO && says(text) && ready == 0);
    fake.events[0].refuses = 0;
    fake_wait_for_release(&releases, 3);
  }
}

/* An array whose stream was captured is kept, unless its device is lost. */
static void test_lost_device_releases_kept_array(void) {
  struct Tree tree;
  int own = 0;
  fake_reset();
  fake_push(&fake.primary[0]);
  make_tree(&tree);
  releases = 0;
  fake.is_captured = true;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(&own, 0), FLETCHING_CAPTURE_KEEP,
                                         &message) == 0);
  fake_wait_for_asked(4);
  CHECK(releases == 0);
  fake.capture_answer = 1; /* an error that does not imply a lost device */
  fake_wait_for_asked(4);
  CHECK(releases == 0);
  fake.capture_answer = CUDA_ERROR_LAUNCH_FAILED;
  fake_wait_for_release(&releases, 3);
}

/* No event can be recorded in a context that the caller destroyed in violation of the contract. */
static void test_destroyed_context_releases_kept_array(void) {
  struct Tree tree;
  fake_reset();
  fake_push(&fake.created);
  make_tree(&tree);
  releases = 0;
  fake.is_captured = true;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(NULL, 1), FLETCHING_CAPTURE_KEEP,
                                         &message) == 0);
  fake_wait_for_asked(4);
  CHECK(releases == 0);
  fake.is_destroyed = true;
  fake_wait_for_release(&releases, 3);
  CHECK(fake.recorded_in == NULL);
}

/* The array of a destroyed context is recognized by its origin. */
static void test_failed_record_keeps_origin(void) {
  struct FletchingRelease entry = {.stream = stream_on(NULL, 1)};
  struct failure failure;
  entry.recorded.runtime = &cuda_runtime;
  entry.recorded.origin.context = &fake.created;
  entry.recorded.origin.id = (uint64_t)(uintptr_t)&fake.created;
  fake_reset();
  no_failure(&failure);
  fake.failing_exchange = 1;
  CHECK(!ask_entry(&entry, &failure) && failure.code == EIO);
  CHECK(entry.recorded.origin.context == &fake.created && fake.depth == 0);
}

/* Only the first array of a stream is queried, in order; arrays on another stream do not wait
 * for it. */
static void test_reaper_queries_first_array_per_stream(void) {
  enum { ARRAYS = 6 };
  struct Tree trees[ARRAYS];
  struct Tree other;
  int own = 0;
  int another = 0;
  fake_reset();
  fake_push(&fake.primary[0]);
  releases = 0;
  for (int i = 0; i < ARRAYS; ++i) {
    make_tree(&trees[i]);
    fake.events[i].never = i < ARRAYS - 1;
    CHECK(FletchingDeviceArrayReleaseAfter(&trees[i].root, stream_on(&own, 0), 0, &message) == 0);
  }
  make_tree(&other);
  CHECK(FletchingDeviceArrayReleaseAfter(&other.root, stream_on(&another, 0), 0, &message) == 0);
  fake_wait_for_release(&releases, 3);
  for (int i = 0; i < ARRAYS - 1; ++i) {
    fake_wait_for_asked(4);
    CHECK(fake.events[i].asked > 0 && fake.events[i + 1].asked == 0);
    CHECK(releases == 3 * (i + 1));
    fake.events[i].never = false;
    if (i < ARRAYS - 2) fake_wait_for_release(&releases, 3 * (i + 2));
  }
  fake_wait_for_release(&releases, 3 * (ARRAYS + 1));
  CHECK(fake_living_events() == 0);
}

/* An error for one array delays neither earlier nor later ones. */
static void test_rejected_array_does_not_delay_others(void) {
  struct Tree trees[3];
  struct FletchingReleaseCounts counts;
  int own = 0;
  fake_reset();
  fake_push(&fake.primary[0]);
  releases = 0;
  fake.events[0].never = true;
  for (int i = 0; i < 3; ++i) {
    make_tree(&trees[i]);
    if (i == 2) {
      fake.events[0].refuses = 1;
      fake_wait_for_release(&releases, 3);
    }
    CHECK(FletchingDeviceArrayReleaseAfter(&trees[i].root, stream_on(&own, 0), 0, &message) == 0);
    if (i == 1) fake_wait_for_asked(4);
  }
  fake_wait_for_release(&releases, 6);
  FletchingPendingReleases(&counts, NULL);
  CHECK(counts.pending == 1 && counts.refused == 1);
  fake.events[0].never = false;
  fake.events[0].refuses = 0;
  fake_wait_for_release(&releases, 9);
}

/* If two threads record on one stream concurrently, either record may come first; records on two
 * streams are unordered. */
static void test_release_order(void) {
  int event = 0;
  struct FletchingRelease entry = {.recorded = {.event = &event, .runtime = &cuda_runtime},
                                   .record_began = 1,
                                   .record_ended = 4};
  struct FletchingRelease later = entry;
  later.record_began = 3;
  CHECK(!comes_after(&later, &entry));
  later.record_began = 5;
  CHECK(comes_after(&later, &entry));
  later.recorded.origin.device =
      1; /* HIP's default streams have no context that tells them apart */
  CHECK(!comes_after(&later, &entry));
}

/* A kept array is recorded when the capture has ended: earlier arrays do not delay others. */
static void test_kept_array_does_not_delay_others(void) {
  struct Tree kept;
  struct Tree tree;
  int own = 0;
  fake_reset();
  fake_push(&fake.primary[0]);
  make_tree(&kept);
  make_tree(&tree);
  releases = 0;
  fake.is_captured = true;
  fake.events[0].never = true;
  CHECK(FletchingDeviceArrayReleaseAfter(&kept.root, stream_on(&own, 0), FLETCHING_CAPTURE_KEEP,
                                         &message) == 0);
  struct FletchingRelease* entry = calloc(1, sizeof *entry);
  entry->array = tree.root;
  entry->stream = stream_on(&own, 0);
  entry->recorded = (struct FletchingRecordedEvent){
      .event = &fake.events[1], .runtime = &cuda_runtime, .process = process_number()};
  entry->recorded.origin.context = &fake.primary[0];
  entry->recorded.origin.id = (uint64_t)(uintptr_t)&fake.primary[0];
  entry->record_began = atomic_fetch_add(&records, 1);
  fake.events[1].is_alive = true;
  fake.is_captured = false;
  while (fake.events[0].asked == 0) sleep_ns(1000);
  add_to_reaper(entry);
  fake_wait_for_release(&releases, 3);
  fake.events[0].never = false;
  fake_wait_for_release(&releases, 6);
}

/* Each context has a default stream and each thread a per-thread one, all with the same handle. */
static void* release_on_own_stream(void* data) {
  struct Tree* tree = data;
  struct FletchingMessage ignored;
  own_stack[own_depth++] = &fake.primary[0];
  (void)FletchingDeviceArrayReleaseAfter(&tree->root, stream_on((void*)2, 0), 0, &ignored);
  return NULL;
}

static void test_default_streams_are_independent(void) {
  struct Tree trees[2];
  fake_reset();
  releases = 0;
  fake.events[0].never = true;
  void* const contexts[] = {&fake.created, &fake.primary[1]};
  for (int i = 0; i < 2; ++i) {
    make_tree(&trees[i]);
    fake_push(contexts[i]);
    CHECK(FletchingDeviceArrayReleaseAfter(&trees[i].root, stream_on(NULL, 1), 0, &message) == 0);
  }
  fake_wait_for_release(&releases, 3);
  fake.events[0].never = false;
  fake_wait_for_release(&releases, 6);

  fake_reset();
  releases = 0;
  fake.events[0].never = true;
  for (int i = 0; i < 2; ++i) { /* the second thread may reuse the memory of the first */
    pthread_t thread;
    make_tree(&trees[i]);
    const int started = pthread_create(&thread, NULL, release_on_own_stream, &trees[i]);
    const int ended = pthread_join(thread, NULL); /* until then the thread counts checks */
    CHECK(started == 0 && ended == 0);
  }
  fake_wait_for_release(&releases, 3);
  fake.events[0].never = false;
  fake_wait_for_release(&releases, 6);
}

/* Queries that fail are retried at growing intervals; the other entry counts the rounds. */
static void test_failed_query_is_retried(void) {
  struct Tree refusing;
  struct Tree counting;
  struct FletchingReleaseCounts counts;
  int own = 0;
  int another = 0;
  fake_reset();
  fake_push(&fake.primary[0]);
  make_tree(&refusing);
  make_tree(&counting);
  releases = 0;
  fake.events[0].never = true;
  CHECK(FletchingDeviceArrayReleaseAfter(&counting.root, stream_on(&own, 0), 0, &message) == 0);
  fake.events[1].refusals = 5;
  CHECK(FletchingDeviceArrayReleaseAfter(&refusing.root, stream_on(&another, 0), 0, &message) == 0);
  fake_wait_for_release(&releases, 3);
  CHECK(fake.rounds[1] - fake.rounds[0] == 2 && fake.rounds[2] - fake.rounds[1] == 4);
  CHECK(fake.rounds[3] - fake.rounds[2] == 8 && fake.rounds[4] - fake.rounds[3] == 16);
  FletchingPendingReleases(&counts, &message);
  CHECK(counts.pending == 1 && counts.refused == 0);
  CHECK(says("cuEventQuery failed with CUDA_ERROR_INVALID_VALUE (1)"));
  fake.events[0].never = false;
  fake_wait_for_release(&releases, 6);
  /* An array on a lost device is released. */
  make_tree(&refusing);
  fake.events[2].is_lost = true;
  CHECK(FletchingDeviceArrayReleaseAfter(&refusing.root, stream_on(&own, 0), 0, &message) == 0);
  fake_wait_for_release(&releases, 9);
}

/* A callback may call the driver, which needs the stream's context. */
static void test_release_runs_in_stream_context(void) {
  void* const contexts[] = {&fake.primary[1], &fake.created};
  for (int i = 0; i < 2; ++i) {
    struct Tree tree;
    fake_reset();
    fake_push(contexts[i]);
    make_tree(&tree);
    releases = 0;
    CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(NULL, 1), 0, &message) == 0);
    fake_wait_for_release(&releases, 3);
    CHECK(atomic_load(&released_in) == contexts[i]);
  }
}

/* The callback runs in the stream's context and where the starter chooses. */
static struct FletchingRelease* _Atomic started;

static int start_later(struct FletchingRelease* job) {
  atomic_store(&started, job);
  return 0;
}

static int start_never(struct FletchingRelease* job) {
  (void)job;
  return 1;
}

static void test_starter_selects_release_thread(void) {
  struct Tree tree;
  struct FletchingReleaseCounts counts;
  int own = 0;
  fake_reset();
  make_tree(&tree);
  releases = 0;
  FletchingSetReleaseStarter(start_later);
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(&own, 1), 0, &message) == 0);
  while (atomic_load(&started) == NULL) sleep_ns(100000);
  FletchingPendingReleases(&counts, NULL);
  CHECK(counts.pending == 0 && counts.running == 1 && releases == 0);
  fake.stream_device = 1;
  FletchingReleaseRun(atomic_load(&started));
  CHECK(releases == 3 && fake.depth == 0);
  CHECK(atomic_load(&released_in) == &fake.primary[0]);
  FletchingPendingReleases(&counts, NULL);
  CHECK(counts.running == 0);
  FletchingSetReleaseStarter(start_never);
  make_tree(&tree);
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(&own, 0), 0, &message) == 0);
  fake_wait_for_release(&releases, 6);
  FletchingSetReleaseStarter(NULL);
}

/* --- The exit of the process --- */

/* Registered before the core's handler, and so called after it. */
static void exit_test_runs_no_callback(void) {
  const int before = __atomic_load_n(&releases, __ATOMIC_SEQ_CST);
  FletchingReleaseRun(atomic_load(&started));
  if (__atomic_load_n(&releases, __ATOMIC_SEQ_CST) == before) return;
  fprintf(stderr, "core_test.c: a release callback has run after the exit began\n");
  _Exit(1);
}

static void test_exit_runs_no_callback(void) {
  static struct Tree tree;
  int own = 0;
  fake_reset();
  make_tree(&tree);
  atomic_store(&started, NULL);
  FletchingSetReleaseStarter(start_later);
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, stream_on(&own, 0), 0, &message) == 0);
  while (atomic_load(&started) == NULL) sleep_ns(100000);
}

/* --- OpenCL --- */

static int32_t refuse_marker(cl_command_queue queue, cl_uint count, const cl_event* events,
                             cl_event* event) {
  (void)queue;
  (void)count;
  (void)events;
  (void)event;
  return CL_OUT_OF_RESOURCES;
}

static void test_opencl(void) {
  struct FakeEvent event = {0};
  struct FakeEvent* handle = &event;
  struct FletchingEvent awaited = event_of_fake(&handle);
  struct Tree tree;
  int producer = 0;
  int own = 0;
  int ready = 0;
  const struct FletchingStream queue = {&own, -1, NULL, FLETCHING_RUNTIME_OPENCL};
  awaited.device_type = ARROW_DEVICE_OPENCL;
  fake_reset();
  event.queue = &producer;
  event.state = CL_SUBMITTED;
  CHECK(FletchingEventWaitOn(&awaited, queue, 0, &message) == 0);
  CHECK(fake.flushed == &producer); /* a queue need not start before it is flushed */
  event.queue = &own;
  CHECK(FletchingEventReady(&awaited, &ready, &message) == 0 && ready == 0);
  CHECK(fake.flushed == &producer);
  event.state = CL_QUEUED;
  CHECK(FletchingEventReady(&awaited, &ready, &message) == 0 && ready == 0);
  CHECK(fake.flushed == &own); /* nor for a query */
  event.queue = &producer;
  event.state = CL_SUBMITTED;
  struct FletchingRecordedEvent* recorded = NULL;
  CHECK(FletchingStreamRecord(queue, 0, &recorded, &message) == 0);
  CHECK(fake.flushed == &own);
  FletchingRecordedEventDestroy(recorded);
  CHECK(fake_living_events() == 0);
  cl.clEnqueueMarkerWithWaitList = refuse_marker;
  CHECK(FletchingStreamRecord(queue, 0, &recorded, &message) == EIO && recorded == NULL);
  CHECK(says("clEnqueueMarkerWithWaitList failed with CL_OUT_OF_RESOURCES"));
  cl.clEnqueueMarkerWithWaitList = enqueue_marker;

  /* A state that cannot be read is neither "pending" nor "done". */
  fake.state_fails = true;
  CHECK(FletchingEventReady(&awaited, &ready, &message) == EIO && says("clGetEventInfo"));
  make_tree(&tree);
  tree.root.device_type = ARROW_DEVICE_OPENCL;
  releases = 0;
  CHECK(FletchingDeviceArrayReleaseAfter(&tree.root, queue, 0, &message) == 0);
  fake_wait_for_asked(4);
  CHECK(releases == 0);
  fake.state_fails = false;
  fake.finished = 0;
  /* After a failed command others may still run: the queue is finished first. */
  atomic_store(&fake.marker_state, -5);
  fake_wait_for_release(&releases, 3);
  CHECK(fake.finished == 1);
  event.state = -5;
  CHECK(FletchingEventReady(&awaited, &ready, &message) == EIO && ready == 0);
  CHECK(says("the command of the event failed with"));
  CHECK(FletchingEventWaitOn(&awaited, queue, 0, &message) == EIO);
  CHECK(says("the command of the event failed with"));
  CHECK(FletchingEventSynchronize(&awaited, &message) == EIO && says("the command of the event"));
}

int main(void) {
  CHECK(atexit(exit_test_runs_no_callback) == 0);
#ifdef __linux__
  CHECK(pthread_atfork(NULL, NULL, enter_in_handler) == 0);
#endif
  test_text_truncation_and_escaping();
  test_check_layout_rejects_other_version();
  test_leave_restores_context_after_failed_pop();
  test_leave_skips_destroyed_context();
  test_failed_query_of_current_context_is_error();
  test_default_stream_uses_given_device();
  test_resolve_default_stream();
  test_find_memory_returns_address_of_its_device_type();
  test_default_streams_of_two_devices_wait();
  test_resolve_hip_default_stream();
  test_missing_result_returns_einval();
  test_memory_of_created_context_is_found();
  test_failed_exchange_restores_capture_mode();
  test_find_library_prefers_loaded_library();
  test_long_path_keeps_both_ends();
  test_load_error_escapes_reason();
  test_driver_is_initialized_once();
  test_missing_function_fails_only_its_operation();
  test_streams_of_two_runtimes_do_not_wait();
  test_current_context_of_runtime();
  test_last_release_destroys_event();
  test_threads_release_moved_children();
  test_destroy_retries_context();
  test_export_skips_released_child();
  test_export_counts_dictionary();
  test_export_rejects_malformed_array();
  test_export_rejects_shared_children();
#ifndef _WIN32
  test_threads_block_process_signals();
#endif
#ifdef __linux__
  test_forked_child_resets_locks();
  test_inherited_event_is_reported_once();
#endif
  test_array_whose_waiter_cannot_wait_is_not_exported();
  test_replaced_waiter_keeps_others();
  test_callback_runs_without_worker_thread();
  test_allocation_failure_returns_enomem();
  test_report_allocation_failure_returns_enomem();
  test_report_lists_no_device_after_failure();
  test_report_names_first_failing_opencl_driver();
  test_report_lists_every_vulkan_device();
  test_tensor_without_event_is_deleted();
  test_pinned_memory_uses_current_gpu_default_stream();
  test_work_stream_of_pinned_memory_is_of_current_gpu();
  test_release_after_leaks_without_wait();
  test_release_after_accepts_host_memory();
  test_release_after_rejects_other_runtime();
  test_release_after_keeps_captured_stream();
  test_is_lost_only_for_device_loss();
  test_unclear_device_error_releases_nothing();
  test_lost_device_releases_kept_array();
  test_destroyed_context_releases_kept_array();
  test_failed_record_keeps_origin();
  test_reaper_queries_first_array_per_stream();
  test_rejected_array_does_not_delay_others();
  test_release_order();
  test_kept_array_does_not_delay_others();
  test_default_streams_are_independent();
  test_failed_query_is_retried();
  test_release_runs_in_stream_context();
  test_starter_selects_release_thread();
  test_opencl();
  test_exit_runs_no_callback();
  printf("core: %d checks, %d failed\n", checks, failures);
  return failures == 0 ? 0 : 1;
}

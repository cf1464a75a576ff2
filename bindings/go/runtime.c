// SPDX-License-Identifier: Apache-2.0
#include "runtime.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef _WIN32
#include <windows.h>
static int64_t process_id(void) { return (int64_t)GetCurrentProcessId(); }
#else
#include <dlfcn.h>
#include <unistd.h>
static int64_t process_id(void) { return (int64_t)getpid(); }
#endif

bool fletching_fail(struct failure* failure, int code, const char* format, ...) {
  if (failure->code != 0) return false;
  failure->code = code;
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(failure->text, sizeof failure->text, format, arguments);
  va_end(arguments);
  return false;
}

bool fletching_fail_with(struct failure* failure, struct answer answer) {
  const bool has_name = answer.name != NULL && answer.name[0] != '\0';
  const bool has_text = answer.text != NULL && answer.text[0] != '\0';
  const char* hint =
      "; hint: check that stream and event are alive, and that sync_event is the address of the "
      "event's handle, not the handle";
  char number[16];
  (void)snprintf(number, sizeof number, has_name ? " (%d)" : "%d", (int)answer.result);
  if (failure->code == 0) failure->result = answer.result;
  return fletching_fail(failure, answer.is_invalid_handle ? EINVAL : EIO,
                        "%s: %s failed with %.80s%s%s%.300s%s", answer.title, answer.function,
                        has_name ? answer.name : "", number, has_text ? ": " : "",
                        has_text ? answer.text : "", answer.is_invalid_handle ? hint : "");
}

void* fletching_open(const char* name, bool is_loaded, struct failure* failure) {
#ifdef _WIN32
  void* library = (void*)(is_loaded ? GetModuleHandleA(name) : LoadLibraryA(name));
  if (library == NULL) fletching_fail(failure, ENOENT, "%s: error %lu", name, GetLastError());
#else
  // One that is loaded keeps the visibility that it has.
  void* library = dlopen(name, RTLD_LAZY | (is_loaded ? RTLD_NOLOAD : RTLD_LOCAL));
  const char* reason = library == NULL ? dlerror() : NULL;
  if (library == NULL) fletching_fail(failure, ENOENT, "%s", reason != NULL ? reason : name);
#endif
  return library;
}

void* fletching_symbol(void* library, const char* name) {
#ifdef _WIN32
  return (void*)GetProcAddress((HMODULE)library, name);
#else
  return dlsym(library, name);
#endif
}

bool fletching_run(bool (*operation)(struct request*, struct failure*), struct request* request,
                   struct failure* failure) {
  return operation(request, failure);
}

uintptr_t fletching_current(const struct runtime* runtime) {
  return runtime->current != NULL ? runtime->current() : 0;
}

static bool is_exiting;
static void note_exit(void) { __atomic_store_n(&is_exiting, true, __ATOMIC_RELAXED); }
void fletching_watch_exit(void) { (void)atexit(note_exit); }

bool fletching_has_passed(const struct recorded* recorded, struct failure* failure) {
  return !__atomic_load_n(&is_exiting, __ATOMIC_RELAXED) &&
         recorded->runtime->has_passed(recorded, failure);
}

static int64_t inherited_events;
int64_t fletching_inherited_events(void) {
  return __atomic_load_n(&inherited_events, __ATOMIC_RELAXED);
}

// In a child of fork the event is the parent's, and nothing of the runtime is called. No caller can
// receive an error.
static void destroy(struct FletchingLink* link, struct FletchingChain* chain) {
  static const char warning[] =
      "fletching: warning: release in a child of fork: the event is not destroyed, because the "
      "vendor's runtime does not survive a fork (printed once, and counted)\n";
  const struct recorded* recorded = (const struct recorded*)link;
  (void)chain;
  if (recorded->event == NULL) return;
  if (recorded->process == process_id()) {
    recorded->runtime->destroy(recorded);
  } else if (__atomic_fetch_add(&inherited_events, 1, __ATOMIC_RELAXED) == 0) {
    // Standard I/O may have a lock of a thread that the child does not have.
#ifndef _WIN32
    if (write(2, warning, sizeof warning - 1) < 0) return;
#endif
  }
}

struct recorded* fletching_record(const struct runtime* runtime, struct request* request,
                                  struct failure* failure) {
  struct recorded* recorded = calloc(1, sizeof *recorded);
  if (recorded == NULL) {
    fletching_fail(failure, ENOMEM, "no memory for an event");
    return NULL;
  }
  recorded->share.link.run = destroy;
  recorded->runtime = runtime;
  recorded->process = process_id();
  if (runtime->record(recorded, request, failure)) return recorded;
  fletching_end_event(recorded, NULL);
  return NULL;
}

static void release(struct ArrowArray* array) { array->release(array); }

// The callback may well free memory, which another thread's capture would refuse.
void fletching_end_event(struct recorded* recorded, struct ArrowArray* array) {
  const struct runtime* runtime = recorded->runtime;
  if (__atomic_load_n(&is_exiting, __ATOMIC_RELAXED)) return;
  destroy(&recorded->share.link, NULL);
  free(recorded);
  if (array != NULL) runtime->run_relaxed(release, array);
}

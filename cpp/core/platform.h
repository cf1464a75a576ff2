// SPDX-License-Identifier: Apache-2.0
//
// Locks, threads, time and shared libraries of the operating system: POSIX and Win32.
#ifndef FLETCHING_CORE_PLATFORM_H
#define FLETCHING_CORE_PLATFORM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <process.h>
#include <stdio.h>
#include <windows.h>
#else
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#ifndef __wasi__
#include <signal.h>
#include <sys/mman.h>
#endif
#endif

typedef void (*any_function)(void);

#ifdef _WIN32

typedef SRWLOCK lock_type;
typedef CONDITION_VARIABLE condition_type;
#define LOCK_INIT SRWLOCK_INIT

static void lock(lock_type* self) { AcquireSRWLockExclusive(self); }
static void unlock(lock_type* self) { ReleaseSRWLockExclusive(self); }
static bool init_condition(condition_type* self) {
  InitializeConditionVariable(self);
  return true;
}
static void notify(condition_type* self) { WakeConditionVariable(self); }

static int64_t now_ns(void) {
  LARGE_INTEGER count;
  LARGE_INTEGER frequency;
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&frequency);
  const int64_t seconds = count.QuadPart / frequency.QuadPart;
  const int64_t rest = count.QuadPart % frequency.QuadPart;
  return seconds * 1000000000 + rest * 1000000000 / frequency.QuadPart;
}

static DWORD milliseconds(int64_t ns) {
  if (ns <= 0) return 0;
  const int64_t rounded = (ns + 999999) / 1000000;
  return rounded < 0x7FFFFFFF ? (DWORD)rounded : 0x7FFFFFFF;
}

// Waits for a notification or until now_ns() reaches `until`; INT64_MAX means forever. May return
// early.
static void wait_until(condition_type* self, lock_type* held, int64_t until) {
  const DWORD time = until == INT64_MAX ? INFINITE : milliseconds(until - now_ns());
  (void)SleepConditionVariableSRW(self, held, time, 0);
}

static void sleep_ns(int64_t ns) { Sleep(milliseconds(ns)); }

struct thread_start {
  void (*body)(void*);
  void* data;
};

static unsigned __stdcall run_thread(void* data) {
  const struct thread_start start = *(struct thread_start*)data;
  free(data);
  start.body(start.data);
  return 0;
}

// Starts a thread that is never joined.
static bool start_thread(void (*body)(void*), void* data) {
  struct thread_start* start = malloc(sizeof *start);
  if (start == NULL) return false;
  *start = (struct thread_start){body, data};
  const uintptr_t thread = _beginthreadex(NULL, 0, run_thread, start, 0, NULL);
  if (thread == 0) {
    free(start);
    return false;
  }
  CloseHandle((HANDLE)thread);
  return true;
}

static int64_t process_number(void) { return 1; }  // Windows has no fork

static void write_to_stderr(const char* text) { (void)fputs(text, stderr); }

// Searches only the system folder, which contains the driver libraries. The program's folder and
// the current one could contain a planted library.
static void* open_library(const char* name, bool is_loaded) {
  HMODULE module = NULL;
  if (is_loaded) return GetModuleHandleExA(0, name, &module) ? (void*)module : NULL;
  return (void*)LoadLibraryExA(name, NULL, LOAD_LIBRARY_SEARCH_SYSTEM32);
}

static void library_error(const char* name, char* text, size_t size) {
  (void)snprintf(text, size, "%s: error %lu of Windows", name, GetLastError());
}

static any_function find_symbol(void* library, const char* name) {
  const FARPROC found = GetProcAddress((HMODULE)library, name);
  any_function function = NULL;
  memcpy(&function, &found, sizeof function);
  return function;
}

// Prevents this library from being unloaded while its threads run.
static void pin_this_library(void) {
  HMODULE module = NULL;
  (void)GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                           (const char*)(uintptr_t)&now_ns, &module);
}

#else

typedef pthread_mutex_t lock_type;
typedef pthread_cond_t condition_type;
#define LOCK_INIT PTHREAD_MUTEX_INITIALIZER

// --- The process ---
//
// A child of fork inherits locks but not the threads that hold them. The first call in the child
// resets the locks.

#ifdef __wasi__
static int64_t process_number(void) { return 1; }
#else

static void reset_locks(void);

static void reset_lock(lock_type* self) { (void)pthread_mutex_init(self, NULL); }

enum { NEW_PROCESS = 0, ENTERING = -1 };

static _Atomic int64_t ordinary_mark;
static _Atomic int64_t* process_mark = &ordinary_mark;

static _Atomic int64_t entered_pid;

// Does nothing if an earlier handler has already entered the child.
static void mark_as_new(void) {
  if (atomic_load(&entered_pid) != getpid()) atomic_store(process_mark, NEW_PROCESS);
}

static void watch_forks(void) {
#ifdef MADV_WIPEONFORK  // also covers clone and _Fork, which run no handlers
  const size_t size = sizeof *process_mark;
  void* page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // qemu ignores advice and returns 0, even for invalid advice.
  if (page != MAP_FAILED && madvise(page, size, -1) != 0 &&
      madvise(page, size, MADV_WIPEONFORK) == 0) {
    process_mark = page;
  } else if (page != MAP_FAILED) {
    (void)munmap(page, size);
  }
#endif
  (void)pthread_atfork(NULL, NULL, mark_as_new);
}

static int64_t enter_process(void) {
  static _Atomic int64_t entered;  // entries by this process and its ancestors
  int64_t mark = NEW_PROCESS;
  if (atomic_compare_exchange_strong(process_mark, &mark, ENTERING)) {
    reset_locks();
    atomic_store(&entered_pid, getpid());
    mark = atomic_fetch_add(&entered, 1) + 1;
    atomic_store(process_mark, mark);
  }
  while (mark == ENTERING) {
    (void)sched_yield();
    mark = atomic_load(process_mark);
  }
  return mark;
}

// Returns a positive number that is greater in a child of fork. Uses a mark in memory, because the
// system call getpid would take longer than the rest of the core's work on an event.
static int64_t process_number(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, watch_forks);
  const int64_t mark = atomic_load_explicit(process_mark, memory_order_acquire);
  return mark > 0 ? mark : enter_process();
}

#endif

static void lock(lock_type* self) {
  (void)process_number();
  (void)pthread_mutex_lock(self);
}

static void unlock(lock_type* self) { (void)pthread_mutex_unlock(self); }
static void notify(condition_type* self) { (void)pthread_cond_signal(self); }

#ifdef __APPLE__  // condition variables support no other clock
#define CONDITION_CLOCK CLOCK_REALTIME
#else
#define CONDITION_CLOCK CLOCK_MONOTONIC
#endif

static bool init_condition(condition_type* self) {
#ifdef __APPLE__
  return pthread_cond_init(self, NULL) == 0;
#else
  pthread_condattr_t attributes;
  if (pthread_condattr_init(&attributes) != 0) return false;
  const bool is_made = pthread_condattr_setclock(&attributes, CONDITION_CLOCK) == 0 &&
                       pthread_cond_init(self, &attributes) == 0;
  (void)pthread_condattr_destroy(&attributes);
  return is_made;
#endif
}

static int64_t now_ns(void) {
  struct timespec time;
  (void)clock_gettime(CONDITION_CLOCK, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static struct timespec timespec_of(int64_t ns) {
  struct timespec time;
  time.tv_sec = (time_t)(ns / 1000000000);
  time.tv_nsec = (long)(ns % 1000000000);
  return time;
}

// Waits for a notification or until now_ns() reaches `until`; INT64_MAX means forever. May return
// early.
static void wait_until(condition_type* self, lock_type* held, int64_t until) {
  if (until == INT64_MAX) {
    (void)pthread_cond_wait(self, held);
    return;
  }
  const struct timespec time = timespec_of(until > 0 ? until : 0);
  (void)pthread_cond_timedwait(self, held, &time);
}

static void sleep_ns(int64_t ns) {
  struct timespec left = timespec_of(ns);
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

#ifdef __wasi__  // has neither threads nor libraries to unload

static bool start_thread(void (*body)(void*), void* data) {
  (void)body;
  (void)data;
  return false;
}
static void pin_this_library(void) {}

#else

struct thread_start {
  void (*body)(void*);
  void* data;
};

static void* run_thread(void* data) {
  const struct thread_start start = *(struct thread_start*)data;
  free(data);
  start.body(start.data);
  return NULL;
}

// Leaves the process's signals to the program's threads. Fault signals stay unblocked, because the
// runtime behind a release callback may handle them.
static sigset_t block_signals(void) {
  static const int faults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
  sigset_t all;
  sigset_t before;
  (void)sigfillset(&all);
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; ++i) (void)sigdelset(&all, faults[i]);
  (void)pthread_sigmask(SIG_BLOCK, &all, &before);
  return before;
}

// Starts a thread that is never joined.
static bool start_thread(void (*body)(void*), void* data) {
  struct thread_start* start = malloc(sizeof *start);
  pthread_attr_t attributes;
  if (start == NULL || pthread_attr_init(&attributes) != 0) {
    free(start);
    return false;
  }
  *start = (struct thread_start){body, data};
  pthread_t thread;
  const sigset_t before = block_signals();  // inherited by the new thread
  const bool is_started = pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0 &&
                          pthread_create(&thread, &attributes, run_thread, start) == 0;
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  (void)pthread_attr_destroy(&attributes);
  if (!is_started) free(start);
  return is_started;
}

// Prevents this library from being unloaded while its threads run.
static void pin_this_library(void) {
  Dl_info info;
  static const char inside = 0;
  if (dladdr(&inside, &info) == 0 || info.dli_fname == NULL) return;
  // Fails in a program, which is never unloaded anyway.
  (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

#endif

// Avoids stdio, whose lock may be held forever in a child of fork.
static void write_to_stderr(const char* text) {
  const ssize_t written = write(STDERR_FILENO, text, strlen(text));
  (void)written;
}

// A library that is already loaded keeps its visibility.
static void* open_library(const char* name, bool is_loaded) {
  return dlopen(name, is_loaded ? RTLD_LAZY | RTLD_NOLOAD : RTLD_LAZY | RTLD_LOCAL);
}

static void library_error(const char* name, char* text, size_t size) {
  const char* reason = dlerror();  // starts with the name
  const char* shown = reason != NULL ? reason : name;
  const size_t length = strlen(shown) < size ? strlen(shown) : size - 1;
  memcpy(text, shown, length);
  text[length] = '\0';
}

static any_function find_symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  any_function function = NULL;
  memcpy(&function, &found, sizeof function);
  return function;
}

#endif

#endif  // FLETCHING_CORE_PLATFORM_H

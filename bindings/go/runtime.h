// SPDX-License-Identifier: Apache-2.0
//
// The operations on events in C: each is one call from Go, however many calls of the driver it
// takes, and so all of them happen on one thread. None is made before Go has loaded the library.
#ifndef FLETCHING_GO_RUNTIME_H
#define FLETCHING_GO_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "block.h"

#if defined(_WIN32) && defined(__i386__)
#define FLETCHING_CALL __stdcall
#else
#define FLETCHING_CALL
#endif

enum event_state { EVENT_DONE, EVENT_PENDING, EVENT_FAILED };

struct failure {
  int32_t code;    // an errno value, 0 for none
  int32_t result;  // of the vendor's function
  char text[760];
};

// Sets the failure, unless there is one: what fails while the first is handled adds nothing. False.
bool fletching_fail(struct failure* failure, int code, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

// A vendor's function that has failed. `name` and `text` are the vendor's, NULL or empty for none.
struct answer {
  const char* title;
  const char* function;
  int32_t result;
  const char* name;
  const char* text;
  bool is_invalid_handle;
};
bool fletching_fail_with(struct failure* failure, struct answer answer);

// What an operation works on. Handles are numbers: Go must not take them for pointers.
struct request {
  uintptr_t event;
  uintptr_t stream;
  uintptr_t context;  // for a thread that has none of its own: that of the caller, or 0
  int64_t device_id;
  bool external;  // on a stream that is captured: the event is that of each launch of the graph
  bool is_done;   // the answer of a query
};

// Where an event of CUDA is from: its context, and how to know that again.
struct origin {
  void* context;
  uint64_t id;  // 0 where the driver has no cuCtxGetId
  int32_t device;
  bool is_primary;
};

// An event that we have recorded, as a share of the arrays that have it.
struct recorded {
  struct FletchingShare share;
  void* event;  // what sync_event points to
  const struct runtime* runtime;
  struct origin origin;
  int64_t process;
};

// What a runtime can do. True for success, else the failure is set.
struct runtime {
  bool (*synchronize)(struct request* request, struct failure* failure);
  bool (*wait_on)(struct request* request, struct failure* failure);
  bool (*query)(struct request* request, struct failure* failure);
  bool (*record)(struct recorded* recorded, struct request* request, struct failure* failure);
  // Whether nothing that was on the stream can still run. A failure says nothing about it.
  bool (*has_passed)(const struct recorded* recorded, struct failure* failure);
  void (*destroy)(const struct recorded* recorded);
  // Runs the body in the mode in which no other thread's capture is in its way, nor it in theirs.
  void (*run_relaxed)(void (*body)(struct ArrowArray*), struct ArrowArray* array);
  uintptr_t (*current)(void);  // the context of the thread; NULL where contexts do not matter
};

extern const struct runtime fletching_cuda_runtime, fletching_hip_runtime, fletching_opencl_runtime;

// The library, NULL with a failure. `is_loaded`: only one that the process has already.
void* fletching_open(const char* name, bool is_loaded, struct failure* failure);
void* fletching_symbol(void* library, const char* name);

// Runs one of the first three.
bool fletching_run(bool (*operation)(struct request*, struct failure*), struct request* request,
                   struct failure* failure);
uintptr_t fletching_current(const struct runtime* runtime);
struct recorded* fletching_record(const struct runtime* runtime, struct request* request,
                                  struct failure* failure);
bool fletching_has_passed(const struct recorded* recorded, struct failure* failure);
// Destroys an event that has no share, and releases the array, if any.
void fletching_end_event(struct recorded* recorded, struct ArrowArray* array);
// How many events a child of fork has left alone.
int64_t fletching_inherited_events(void);
// From the exit of the process on nothing has passed, and nothing is released.
void fletching_watch_exit(void);

#endif  // FLETCHING_GO_RUNTIME_H

// SPDX-License-Identifier: Apache-2.0
// How a test steers a stand-in runtime. Each stand-in library exports these functions beside the
// vendor's; one that was opened with dlopen has its own through dlsym. From any thread. Nothing
// here counts as a call of the vendor's functions.
#ifndef FLETCHING_STANDIN_H
#define FLETCHING_STANDIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What is alive in this library, each a number of things.
struct FletchingStandinCounts {
  int64_t primary_references;  // of primary contexts, by cuDevicePrimaryCtxRetain
  int64_t contexts;            // made by cuCtxCreate
  int64_t streams;
  int64_t events;
  int64_t modules;
  int64_t device_memory;   // allocations
  int64_t host_memory;     // pinned allocations
  int64_t managed_memory;  // managed allocations
  int64_t graphs;          // and what they were instantiated to
  int64_t
      abandoned;  // streams, events, modules and allocations that were destroyed with their context
};

// Adds faults, in the form of the environment variable FLETCHING_FAULT: `function:n:error`, several
// with commas between. The n-th call from now on returns the error; `*` is every call. The function
// is named as in source code, the error by its name or number. 0, or EINVAL for a text that says
// nothing that this library can do, and then nothing is added.
int FletchingStandinSetFault(const char* text);

// No fault from now on, not even those of the environment.
void FletchingStandinResetFaults(void);

// How often a function was called, those that failed included. Its variants (_v2, _ptsz, _spt)
// count as one.
int64_t FletchingStandinCalls(const char* function);

// Returns when no stream can go on: each has done what it had to do, or waits at a gate that is
// shut or for a stream that does. So a test asks a stream that should be blocked whether it is done
// only after one that is not would be.
void FletchingStandinSettle(void);

// How many things are alive; fills `counts` where it is not NULL. A primary context with references
// left counts one for each.
int64_t FletchingStandinLeaks(struct FletchingStandinCounts* counts);

// How many threads are in the relaxed mode of stream captures.
int64_t FletchingStandinRelaxedThreads(void);

// How many calls received the handle of something that was destroyed. A real driver may read freed
// memory then.
int64_t FletchingStandinStaleHandles(void);

// Writes what is alive and how often each function was called as lines of text, cut to `size` with
// a NUL at the end. Returns the length of the whole text, as snprintf does. NULL with size 0 asks
// for the length.
size_t FletchingStandinReport(char* text, size_t size);

// The device is lost: what its streams have still to do is dropped, gates included, and every call
// that concerns one of its contexts fails with `error`, a number of the vendor's that is not 0.
// 0, or EINVAL.
int FletchingStandinLoseDevice(int device, int error);

// The device works again, for contexts made from now on. 0, or EINVAL.
int FletchingStandinRestoreDevice(int device);

#ifdef __cplusplus
}
#endif

#endif  // FLETCHING_STANDIN_H

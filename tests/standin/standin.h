// SPDX-License-Identifier: Apache-2.0
// Control functions for tests of a stand-in runtime. Each stand-in library exports them beside the
// vendor's functions; for a library opened with dlopen, get them with dlsym. Callable from any
// thread. They do not count as calls of vendor functions.
#ifndef FLETCHING_STANDIN_H
#define FLETCHING_STANDIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Numbers of live objects in this library.
struct FletchingStandinCounts {
  int64_t primary_references;  // to primary contexts, by cuDevicePrimaryCtxRetain
  int64_t contexts;            // made by cuCtxCreate
  int64_t streams;
  int64_t events;
  int64_t modules;
  int64_t device_memory;   // allocations
  int64_t host_memory;     // pinned allocations
  int64_t managed_memory;  // managed allocations
  int64_t graphs;          // including their instantiations
  int64_t
      abandoned;  // streams, events, modules and allocations that were destroyed with their context
};

// Adds faults in the format of the environment variable FLETCHING_FAULT: `function:n:error`,
// separated by commas. The n-th call from here returns the error; `*` means every call. Functions
// have their source name; errors are names or numbers. Returns 0, or EINVAL if the string is
// invalid or names a function or error that this library does not have; then no fault is added.
int FletchingStandinSetFault(const char* text);

// Removes all faults, including faults from the environment.
void FletchingStandinResetFaults(void);

// Returns the number of calls of a function, including failed ones. Its variants (_v2, _ptsz, _spt)
// count as one.
int64_t FletchingStandinCalls(const char* function);

// Returns when no stream can proceed: each is done, waits at a shut gate, or waits for a stream
// that cannot proceed. Call this before checking that a stream is blocked: a stream that wrongly
// does not wait is then done.
void FletchingStandinSettle(void);

// Returns the host address of the contents of device, pinned or managed memory. `address` itself is
// unreadable for device memory. Returns NULL if the address is in no allocation.
void* FletchingStandinContents(const void* address);

// Returns the number of live objects, and fills `counts` unless it is NULL. Each reference to a
// primary context counts as one.
int64_t FletchingStandinLeaks(struct FletchingStandinCounts* counts);

// Returns the number of threads in relaxed stream capture mode.
int64_t FletchingStandinRelaxedThreads(void);

// Returns the number of calls that received the handle of a destroyed object. A real driver may
// read freed memory in that case.
int64_t FletchingStandinStaleHandles(void);

// Writes the live objects and the calls of each function as text lines, truncated to `size` and
// NUL-terminated. Returns the length of the whole text, like snprintf. NULL with size 0 queries the
// length.
size_t FletchingStandinReport(char* text, size_t size);

// Simulates the loss of a device: drops the queued work of its streams, including gates, and makes
// every call on one of its contexts fail with `error`, a nonzero vendor error number. Returns 0, or
// EINVAL.
int FletchingStandinLoseDevice(int device, int error);

// Makes the device work again, for contexts created after this call. Returns 0, or EINVAL.
int FletchingStandinRestoreDevice(int device);

#ifdef __cplusplus
}
#endif

#endif  // FLETCHING_STANDIN_H

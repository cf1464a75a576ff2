/* The functions of libfletching_hostile that the tests use, from a library that is opened at run
 * time, each under the name fletching_go_peer_NAME. */
#ifndef FLETCHING_GO_PEER_LIBRARY_H
#define FLETCHING_GO_PEER_LIBRARY_H

#include "hostile.h"

/* X(result, name, parameters, arguments) */
#define FLETCHING_GO_PEER_FUNCTIONS(X)                                                             \
  X(int32_t, CaseCount, (void), ())                                                                \
  X(const char*, CaseName, (int32_t index), (index))                                               \
  X(int32_t, CaseParty, (int32_t index), (index))                                                  \
  X(int, StartProducer,                                                                            \
    (const char* name, struct ArrowAsyncDeviceStreamHandler* handler, struct FletchingMessage* m), \
    (name, handler, m))                                                                            \
  X(int, Finish, (struct FletchingMessage * m), (m))

#define FLETCHING_GO_PEER_DECLARE(result, name, parameters, arguments) \
  result fletching_go_peer_##name parameters;
FLETCHING_GO_PEER_FUNCTIONS(FLETCHING_GO_PEER_DECLARE)

/* Returns NULL, or the reason why the library cannot be used, which is valid until the next
 * call. */
const char* fletching_go_peer_open(const char* path);

/* Fills in an array of one value for benchmarks. Its release frees C memory without entering Go. */
void fletching_go_peer_leaf(struct ArrowDeviceArray* out);

/* Releases the array `count` times. All calls but the first have no effect. */
void fletching_go_peer_release(struct ArrowArray* array, int count);

/* Releases the arrays on two threads, which begin at the same time. Returns 0, or -1 if there is no
 * thread. */
int fletching_go_peer_release_on_threads(struct ArrowArray* arrays, size_t count);

/* Makes one malloc or calloc of this thread fail, after `nth` successful ones; -1 for none. Returns
 * the rest of the previous setting, -1 if that call has failed, or -2 if this C library does not
 * support it. */
int fletching_go_peer_fail_allocation(int nth);

/* Returns the number of bytes allocated in C, or 0 if this C library cannot report it. */
size_t fletching_go_peer_in_use(void);

#endif /* FLETCHING_GO_PEER_LIBRARY_H */

/* The functions of libfletching_hostile that the tests use, out of a library that is opened at run
 * time. Each is declared here as fletching_go_peer_NAME. */
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

/* Returns NULL, or why the library cannot be used; the text lives until the next call. */
const char* fletching_go_peer_open(const char* path);

/* An array of one value, whose release frees memory of C and enters no Go: for benchmarks. */
void fletching_go_peer_leaf(struct ArrowDeviceArray* out);

/* Releases the array `count` times, of which all but the first do nothing. */
void fletching_go_peer_release(struct ArrowArray* array, int count);

/* Releases the arrays on two threads, which begin at the same time. Returns 0, or -1 without a
 * thread. */
int fletching_go_peer_release_on_threads(struct ArrowArray* arrays, size_t count);

/* Lets one calloc of this thread fail, behind so many that work; none for -1. Returns what was left
 * of the last setting, -1 when it has failed; -2 where this C library cannot do it. */
int fletching_go_peer_fail_calloc(int nth);

/* The bytes that are allocated in C; 0 where this C library cannot say it. */
size_t fletching_go_peer_in_use(void);

#endif /* FLETCHING_GO_PEER_LIBRARY_H */

/* The conformance suite, out of a library that is opened at run time, and the subjects in Go. */
#ifndef FLETCHING_GO_CONFORMANCE_LIBRARY_H
#define FLETCHING_GO_CONFORMANCE_LIBRARY_H

#include "../../fletching_core.h"
#include "fletching/conformance.h"

/* X(result, name, parameters, arguments) */
#define FLETCHING_GO_CONFORMANCE_FUNCTIONS(X)                                                   \
  X(const char*, Group, (int32_t index), (index))                                               \
  X(int, Run,                                                                                   \
    (const struct FletchingSubject* subject, const struct FletchingConformanceOptions* options, \
     int64_t* wrong, struct FletchingMessage* message),                                         \
    (subject, options, wrong, message))

#define FLETCHING_GO_CONFORMANCE_DECLARE(result, name, parameters, arguments) \
  result fletching_go_conformance_##name parameters;
FLETCHING_GO_CONFORMANCE_FUNCTIONS(FLETCHING_GO_CONFORMANCE_DECLARE)

/* Returns NULL, or why the library cannot be used; the text lives until the next call. */
const char* fletching_go_conformance_open(const char* path);

/* The name of a subject, from 0; NULL past the last. */
const char* fletching_go_conformance_subject(int32_t number);

/* Plays a group on a subject, and reports each result to the Go function. */
int fletching_go_conformance_play(int32_t number, const char* group,
                                  struct FletchingMessage* message);

/* Calls `connect`. */
int fletching_go_conformance_connect(FletchingSubjectConnect connect, void* context,
                                     struct ArrowAsyncDeviceStreamHandler* handler);

/* Returns the callback that the Go function fletching_go_subject_release is. */
void (*fletching_go_conformance_release(void))(struct ArrowAsyncDeviceStreamHandler*);

/* The functions of a waiter. */
int fletching_go_conformance_synchronize(const struct FletchingWaiter* waiter, uintptr_t event,
                                         int64_t device_id);
int fletching_go_conformance_wait_on(const struct FletchingWaiter* waiter, uintptr_t event,
                                     int64_t device_id, uintptr_t stream);
int fletching_go_conformance_ready(const struct FletchingWaiter* waiter, uintptr_t event,
                                   int64_t device_id, int* ready);

#endif /* FLETCHING_GO_CONFORMANCE_LIBRARY_H */

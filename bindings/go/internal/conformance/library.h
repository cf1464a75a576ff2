/* The conformance suite, from a library that is opened at run time, and the subjects in Go. */
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

/* Returns NULL, or the reason why the library cannot be used, which is valid until the next
 * call. */
const char* fletching_go_conformance_open(const char* path);

/* Returns the name of a subject, numbered from 0; NULL after the last. */
const char* fletching_go_conformance_subject(int32_t number);

/* Runs a group on a subject and reports each result to the Go function. */
int fletching_go_conformance_play(int32_t number, const char* group,
                                  struct FletchingMessage* message);

/* Calls `connect`. */
int fletching_go_conformance_connect(FletchingSubjectConnect connect, void* context,
                                     struct ArrowAsyncDeviceStreamHandler* handler);

/* Returns the Go function fletching_go_subject_release as a callback. */
void (*fletching_go_conformance_release(void))(struct ArrowAsyncDeviceStreamHandler*);

/* Call the functions of a waiter. */
int fletching_go_conformance_synchronize(const struct FletchingWaiter* waiter, uintptr_t event,
                                         int64_t device_id);
int fletching_go_conformance_wait_on(const struct FletchingWaiter* waiter, uintptr_t event,
                                     int64_t device_id, uintptr_t stream);
int fletching_go_conformance_ready(const struct FletchingWaiter* waiter, uintptr_t event,
                                   int64_t device_id, int* ready);

#endif /* FLETCHING_GO_CONFORMANCE_LIBRARY_H */

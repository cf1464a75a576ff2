#include "library.h"

#include "_cgo_export.h"

#define FUNCTIONS FLETCHING_GO_CONFORMANCE_FUNCTIONS
#define THEIRS(name) FletchingConformance##name
#define OURS(name) fletching_go_conformance_##name
#include "forward.h"

/* The context of a subject is its number. */
static const int32_t kNumbers[] = {0, 1, 2};

/* cgo cannot export a const parameter. */
static int register_waiter(void* context, ArrowDeviceType device_type,
                           const struct FletchingWaiter* waiter, struct FletchingMessage* message) {
  return fletching_go_subject_register_waiter(context, device_type, (struct FletchingWaiter*)waiter,
                                              message);
}

#define SUBJECT(number, label, promised)                        \
  {.size = sizeof(struct FletchingSubject),                     \
   .name = label,                                               \
   .context = (void*)&kNumbers[number],                         \
   .promises = promised,                                        \
   .schema = fletching_go_subject_schema,                       \
   .array = fletching_go_subject_array,                         \
   .child = fletching_go_subject_child,                         \
   .stream = fletching_go_subject_stream,                       \
   .device_stream = fletching_go_subject_device_stream,         \
   .tensor = fletching_go_subject_tensor,                       \
   .legacy_tensor = fletching_go_subject_legacy_tensor,         \
   .receive = fletching_go_subject_receive,                     \
   .send = fletching_go_subject_send,                           \
   .synchronize = fletching_go_subject_synchronize,             \
   .is_ready = fletching_go_subject_is_ready,                   \
   .wait_on = fletching_go_subject_wait_on,                     \
   .export_with_event = fletching_go_subject_export_with_event, \
   .release_after = fletching_go_subject_release_after,         \
   .use_vulkan = fletching_go_subject_use_vulkan,               \
   .register_waiter = register_waiter}

static const struct FletchingSubject kSubjects[] = {
    SUBJECT(0, "go", FLETCHING_SUBJECT_CHECKS_SCHEMAS),
    SUBJECT(1, "go-moves", FLETCHING_SUBJECT_CHECKS_SCHEMAS),
    SUBJECT(2, "go-drops", 0),
};

enum { kSubjectCount = sizeof kSubjects / sizeof kSubjects[0] };

const char* fletching_go_conformance_subject(int32_t number) {
  return number >= 0 && number < kSubjectCount ? kSubjects[number].name : NULL;
}

/* Returns the subjects without a fault, for a library that exports them. */
__attribute__((visibility("default"))) const struct FletchingSubject* FletchingConformanceSubject(
    int32_t index) {
  return index == 0 || index == 1 ? &kSubjects[index] : NULL;
}

static void report(void* context, const struct FletchingConformanceResult* result) {
  (void)context;
  fletching_go_conformance_report((struct FletchingConformanceResult*)result);
}

int fletching_go_conformance_play(int32_t number, const char* group,
                                  struct FletchingMessage* message) {
  const struct FletchingConformanceOptions options = {
      .size = sizeof options, .group = group, .report = report};
  return fletching_go_conformance_Run(&kSubjects[number], &options, NULL, message);
}

int fletching_go_conformance_connect(FletchingSubjectConnect connect, void* context,
                                     struct ArrowAsyncDeviceStreamHandler* handler) {
  return connect(context, handler);
}

void (*fletching_go_conformance_release(void))(struct ArrowAsyncDeviceStreamHandler*) {
  return fletching_go_subject_release;
}

int fletching_go_conformance_synchronize(const struct FletchingWaiter* waiter, uintptr_t event,
                                         int64_t device_id) {
  struct FletchingMessage message;
  return waiter->synchronize(waiter->context, (void*)event, device_id, &message);
}

int fletching_go_conformance_wait_on(const struct FletchingWaiter* waiter, uintptr_t event,
                                     int64_t device_id, uintptr_t stream) {
  struct FletchingMessage message;
  return waiter->wait_on(waiter->context, (void*)event, device_id, (void*)stream, &message);
}

int fletching_go_conformance_ready(const struct FletchingWaiter* waiter, uintptr_t event,
                                   int64_t device_id, int* ready) {
  struct FletchingMessage message;
  return waiter->ready(waiter->context, (void*)event, device_id, ready, &message);
}

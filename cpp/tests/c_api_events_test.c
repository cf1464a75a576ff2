// SPDX-License-Identifier: Apache-2.0
//
// The event operations of fletching/c_api.h from C99, with a test waiter. For the CUDA stand-in see
// gpu/.
#include <errno.h>
#include <string.h>

#include "check.h"
#include "fletching/c_api.h"

// Calls received by the waiter, and its result.
struct Event {
  int synchronized;
  int waited;
  int asked;
  int happened;
  int code;
  void* stream;
  int64_t device_id;
};

static int answer(const struct Event* event, struct FletchingMessage* message) {
  CHECK(message->text[0] == '\0');
  if (event->code != 0) strcpy(message->text, "the \xFF waiter\nsays no");
  return event->code;
}

static int synchronize(void* context, void* sync_event, int64_t device_id,
                       struct FletchingMessage* message) {
  struct Event* event = sync_event;
  ++*(int*)context;
  ++event->synchronized;
  event->device_id = device_id;
  return answer(event, message);
}

static int wait_on(void* context, void* sync_event, int64_t device_id, void* stream,
                   struct FletchingMessage* message) {
  struct Event* event = sync_event;
  ++*(int*)context;
  ++event->waited;
  event->device_id = device_id;
  event->stream = stream;
  return answer(event, message);
}

static int ask(void* context, void* sync_event, int64_t device_id, int* ready,
               struct FletchingMessage* message) {
  struct Event* event = sync_event;
  ++*(int*)context;
  ++event->asked;
  event->device_id = device_id;
  *ready = event->happened;
  return answer(event, message);
}

static const struct FletchingStream none = {NULL, -1, NULL, FLETCHING_RUNTIME_NONE};

static int releases;

static void release(struct ArrowArray* array) {
  ++releases;
  array->release = NULL;
}

static struct ArrowDeviceArray array_with(ArrowDeviceType device_type, void* sync_event) {
  struct ArrowDeviceArray array;
  FletchingDeviceArrayInit(&array);
  array.device_type = device_type;
  array.device_id = 7;
  array.sync_event = sync_event;
  array.array.release = release;
  return array;
}

static int says(const struct FletchingMessage* message, const char* part) {
  if (strstr(message->text, part) != NULL) return 1;
  fprintf(stderr, "the message is: %s\n", message->text);
  return 0;
}

static void test_waiter(void) {
  int calls = 0;
  int stream = 0;
  int ready = 5;
  struct Event event = {0};
  struct FletchingMessage message;
  const struct FletchingWaiter waiter = {synchronize, wait_on, ask, &calls};
  const struct ArrowDeviceArray array = array_with(ARROW_DEVICE_EXT_DEV, &event);

  // Without a waiter: an error; the event is not skipped.
  CHECK(FletchingDeviceArraySynchronize(&array, &message) == ENOTSUP);
  CHECK(says(&message, "register a waiter"));
  CHECK(FletchingStreamSynchronize(FletchingStreamOfArray(NULL), &message) == ENOTSUP &&
        strcmp(message.text, "no runtime that records events") == 0);
  CHECK(FletchingDeviceArrayWaitOn(&array, FletchingStreamOfArray(&stream),
                                   FLETCHING_CAPTURE_REFUSE, &message) == ENOTSUP);
  CHECK(FletchingDeviceArrayReady(&array, &ready, &message) == ENOTSUP && ready == 0);
  CHECK(FletchingDeviceArraySynchronize(&array, NULL) == ENOTSUP);

  CHECK(FletchingRegisterWaiter(ARROW_DEVICE_EXT_DEV, &waiter, &message) == 0);
  CHECK(message.text[0] == '\0');
  CHECK(FletchingDeviceArraySynchronize(&array, &message) == 0 && message.text[0] == '\0');
  CHECK(FletchingDeviceArrayWaitOn(&array, FletchingStreamOfArray(&stream),
                                   FLETCHING_CAPTURE_REFUSE, NULL) == 0);
  CHECK(FletchingDeviceArrayReady(&array, &ready, NULL) == 0 && ready == 0);
  event.happened = 1;
  CHECK(FletchingDeviceArrayReady(&array, &ready, NULL) == 0 && ready == 1);
  CHECK(event.synchronized == 1 && event.waited == 1 && event.asked == 2 && calls == 4);
  CHECK(event.stream == &stream && event.device_id == 7);

  // The waiter's errno, and its message as one line of UTF-8.
  event.code = ECANCELED;
  CHECK(FletchingDeviceArraySynchronize(&array, &message) == ECANCELED);
  CHECK(says(&message, "waiter says no") && strchr(message.text, '\xFF') == NULL);
  CHECK(FletchingDeviceArrayReady(&array, &ready, NULL) == ECANCELED && ready == 0);

  CHECK(FletchingUnregisterWaiter(ARROW_DEVICE_EXT_DEV) == 1);
  CHECK(FletchingUnregisterWaiter(ARROW_DEVICE_EXT_DEV) == 0);
  CHECK(FletchingDeviceArraySynchronize(&array, NULL) == ENOTSUP);
  CHECK(calls == 6);
}

static void test_registration(void) {
  struct FletchingMessage message;
  const struct FletchingWaiter empty = {NULL, NULL, NULL, NULL};
  int calls = 0;
  const struct FletchingWaiter waiter = {synchronize, NULL, NULL, &calls};
  struct Event event = {0};
  const struct ArrowDeviceArray array = array_with(9999, &event);
  int ready = 0;

  CHECK(FletchingRegisterWaiter(ARROW_DEVICE_EXT_DEV, NULL, &message) == EINVAL);
  CHECK(says(&message, "waiter: NULL"));
  CHECK(FletchingRegisterWaiter(ARROW_DEVICE_EXT_DEV, &empty, &message) == EINVAL);
  CHECK(says(&message, "no function"));
  CHECK(FletchingRegisterWaiter(ARROW_DEVICE_CUDA, &waiter, &message) == EINVAL);
  CHECK(says(&message, "cuda"));

  // An unknown device type, and a waiter with only one function.
  CHECK(FletchingRegisterWaiter(9999, &waiter, NULL) == 0);
  CHECK(FletchingDeviceArraySynchronize(&array, NULL) == 0 && event.synchronized == 1);
  CHECK(FletchingDeviceArrayReady(&array, &ready, &message) == ENOTSUP);
  CHECK(says(&message, "not supported"));
  CHECK(FletchingUnregisterWaiter(9999) == 1);
}

static void test_arguments(void) {
  struct FletchingMessage message;
  int event = 0;
  int ready = 5;
  struct ArrowDeviceArray nothing = array_with(ARROW_DEVICE_CUDA, NULL);
  struct ArrowDeviceArray released = array_with(ARROW_DEVICE_CUDA, &event);
  FletchingDeviceArrayRelease(&released);

  // NULL means that there is no event, on any device and without its library.
  CHECK(FletchingDeviceArraySynchronize(&nothing, &message) == 0);
  CHECK(FletchingDeviceArrayWaitOn(&nothing, none, FLETCHING_CAPTURE_REFUSE, &message) == 0);
  CHECK(FletchingDeviceArrayReady(&nothing, &ready, &message) == 0 && ready == 1);
  CHECK(FletchingDeviceArrayReady(&nothing, NULL, &message) == EINVAL);
  CHECK(says(&message, "ready: NULL: expected an address for the result"));

  // A released array may have a dangling sync_event, which must not be read.
  CHECK(FletchingDeviceArraySynchronize(&released, &message) == EINVAL);
  CHECK(says(&message, "released"));
  CHECK(FletchingDeviceArrayWaitOn(&released, none, FLETCHING_CAPTURE_REFUSE, NULL) == EINVAL);
  CHECK(FletchingDeviceArrayReady(&released, &ready, NULL) == EINVAL && ready == 0);
  CHECK(FletchingDeviceArraySynchronize(NULL, &message) == EINVAL);
  CHECK(says(&message, "array: NULL: expected a device array"));
  CHECK(FletchingDeviceArrayWaitOn(NULL, none, FLETCHING_CAPTURE_REFUSE, NULL) == EINVAL);
  CHECK(FletchingDeviceArrayExportWithEvent(NULL, none, FLETCHING_CAPTURE_REFUSE, &message) ==
        EINVAL);
  CHECK(FletchingDeviceArrayReleaseAfter(NULL, none, FLETCHING_CAPTURE_REFUSE, &message) == EINVAL);
  CHECK(says(&message, "array: NULL: expected a device array"));
}

// A failed export leaves the array unchanged; a release always consumes it.
static void test_producer_operations(void) {
  struct FletchingMessage message;
  struct FletchingReleaseCounts counts;
  struct ArrowDeviceArray array = array_with(ARROW_DEVICE_CPU, NULL);
  const int before = releases;
  CHECK(FletchingDeviceArrayExportWithEvent(&array, none, FLETCHING_CAPTURE_REFUSE, &message) ==
        ENOTSUP);
  CHECK(says(&message, "cpu"));
  CHECK(array.array.release == release && array.sync_event == NULL && array.device_id == 7);
  CHECK(releases == before);

  // On the CPU no work can be pending on a NULL stream.
  CHECK(FletchingDeviceArrayReleaseAfter(&array, none, FLETCHING_CAPTURE_REFUSE, &message) == 0);
  CHECK(FletchingDeviceArrayIsReleased(&array) && releases == before + 1);
  CHECK(FletchingDeviceArrayReleaseAfter(&array, none, FLETCHING_CAPTURE_REFUSE, &message) ==
        EINVAL);
  CHECK(says(&message, "released"));

  // Metal streams cannot record events: the array is leaked rather than released early.
  array = array_with(ARROW_DEVICE_METAL, NULL);
  CHECK(FletchingDeviceArrayReleaseAfter(&array, none, FLETCHING_CAPTURE_REFUSE, &message) ==
        ENOTSUP);
  CHECK(says(&message, "metal"));
  CHECK(FletchingDeviceArrayIsReleased(&array) && releases == before + 1);
  FletchingPendingReleases(&counts, &message);
  CHECK(counts.leaked == 1 && counts.pending == 0 && message.text[0] == '\0');
}

int main(void) {
  test_waiter();
  test_registration();
  test_arguments();
  test_producer_operations();
  return failures == 0 ? 0 : 1;
}

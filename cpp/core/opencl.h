// SPDX-License-Identifier: Apache-2.0
//
// OpenCL. Waits are enqueued on a queue of the event's cl_context. OpenCL has no stream capture.
#ifndef FLETCHING_CORE_OPENCL_H
#define FLETCHING_CORE_OPENCL_H

#include "runtime.h"
#include "tables/opencl.h"

static struct opencl_functions cl;

static struct vendor_library opencl_library = {
    .title = OPENCL_TITLE,
    .names = opencl_library_names,
    .functions = opencl_function_table,
    .n_functions = sizeof opencl_function_table / sizeof opencl_function_table[0],
    .table = &cl,
    .lock = LOCK_INIT,
};

static bool opencl_check(const char* function, cl_int result, struct failure* failure) {
  if (result == CL_SUCCESS) return true;
  const struct answer answer = {.title = OPENCL_TITLE,
                                .function = function,
                                .result = result,
                                .name = opencl_status_name(result),
                                .is_invalid_handle = result == CL_INVALID_EVENT};
  return fail_with(failure, &answer);
}

#define OPENCL_HAS(function, failure) \
  has_function(&opencl_library, cl.function != NULL, #function, failure)
#define OPENCL_CALL(function, arguments, failure) \
  (OPENCL_HAS(function, failure) && opencl_check(#function, cl.function arguments, failure))

static bool opencl_get(cl_event event, cl_event_info what, void* value, size_t size,
                       struct failure* failure) {
  return OPENCL_CALL(clGetEventInfo, (event, what, size, value, NULL), failure);
}

static bool opencl_get_state(cl_event event, cl_int* state, struct failure* failure) {
  return opencl_get(event, CL_EVENT_COMMAND_EXECUTION_STATUS, state, sizeof *state, failure);
}

static bool opencl_check_state(cl_int state, bool* is_done, struct failure* failure) {
  *is_done = opencl_event_state(state) == EVENT_DONE;
  return opencl_event_state(state) != EVENT_FAILED ||
         opencl_check("the command of the event", state, failure);
}

static bool opencl_ask(cl_event event, bool* is_done, struct failure* failure) {
  cl_int state = CL_QUEUED;
  return opencl_get_state(event, &state, failure) && opencl_check_state(state, is_done, failure);
}

static bool opencl_ready(const struct runtime* self, const struct FletchingEvent* event,
                         void* handle, bool* is_done, struct failure* failure) {
  (void)self, (void)event;
  cl_int state = CL_QUEUED;
  cl_command_queue producer = NULL;
  if (!load(&opencl_library, failure) || !opencl_get_state(handle, &state, failure)) return false;
  // A command may stay queued until a flush, so a polling caller might never see its end.
  if (state == CL_QUEUED &&
      opencl_get(handle, CL_EVENT_COMMAND_QUEUE, &producer, sizeof producer, failure) &&
      producer != NULL) {
    (void)OPENCL_CALL(clFlush, (producer), failure);
  }
  return failure->code == 0 && opencl_check_state(state, is_done, failure);
}

static bool opencl_synchronize(const struct runtime* self, const struct FletchingEvent* event,
                               void* handle, struct failure* failure) {
  (void)self, (void)event;
  if (!load(&opencl_library, failure) || !OPENCL_HAS(clWaitForEvents, failure)) return false;
  const cl_event waited_for = handle;
  bool is_done = false;
  const cl_int result = cl.clWaitForEvents(1, &waited_for);
  // The event's command has failed: report its state.
  if (result == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
    (void)opencl_ask(handle, &is_done, failure);
  }
  return opencl_check("clWaitForEvents", result, failure);
}

static bool opencl_check_queue(const void* queue, struct failure* failure) {
  return queue != NULL ||
         fail(failure, EINVAL,
              "stream is NULL: expected a cl_command_queue, because OpenCL has no default queue");
}

static bool opencl_check_context(cl_event event, cl_command_queue queue, struct failure* failure) {
  cl_context own = NULL;
  cl_context other = NULL;
  if (!opencl_get(event, CL_EVENT_CONTEXT, &own, sizeof own, failure) ||
      !OPENCL_CALL(clGetCommandQueueInfo, (queue, CL_QUEUE_CONTEXT, sizeof other, &other, NULL),
                   failure)) {
    return false;
  }
  return own == other ||
         fail(failure, EINVAL,
              "cl_context of the queue differs from the event's; hint: pass a queue of the "
              "event's context, or wait on the host");
}

static bool opencl_wait_on(const struct runtime* self, const struct FletchingEvent* event,
                           void* handle, const struct FletchingStream* stream, int on_capture,
                           struct failure* failure) {
  (void)self, (void)event, (void)on_capture;
  const cl_command_queue queue = stream->handle;
  const cl_event waited_for = handle;
  cl_command_queue producer = NULL;
  bool is_done = false;
  // Not every implementation rejects a barrier behind a failed command.
  if (!opencl_check_queue(queue, failure) || !load(&opencl_library, failure) ||
      !opencl_check_context(waited_for, queue, failure) ||
      !opencl_ask(waited_for, &is_done, failure) ||
      !opencl_get(waited_for, CL_EVENT_COMMAND_QUEUE, &producer, sizeof producer, failure)) {
    return false;
  }
  // A queue may defer commands until it is flushed. A user event has no queue.
  if (producer != NULL && !OPENCL_CALL(clFlush, (producer), failure)) return false;
  return OPENCL_CALL(clEnqueueBarrierWithWaitList, (queue, 1, &waited_for, NULL), failure);
}

static bool opencl_record(const struct runtime* self, struct FletchingRecordedEvent* recorded,
                          const struct FletchingStream* stream, int on_capture,
                          struct failure* failure) {
  (void)self, (void)on_capture;
  cl_event event = NULL;
  if (!opencl_check_queue(stream->handle, failure) || !load(&opencl_library, failure) ||
      !OPENCL_HAS(clReleaseEvent, failure) || !OPENCL_HAS(clFlush, failure) ||
      !OPENCL_CALL(clEnqueueMarkerWithWaitList, (stream->handle, 0, NULL, &event), failure)) {
    return false;
  }
  recorded->event = event;
  // An event whose queue was never flushed may never complete.
  return OPENCL_CALL(clFlush, (stream->handle), failure);
}

// A failed marker is final, but other commands of the queue may still run: see opencl_settle.
static bool opencl_has_passed(const struct runtime* self,
                              const struct FletchingRecordedEvent* recorded,
                              struct failure* failure) {
  (void)self;
  cl_int state = CL_QUEUED;
  return opencl_get_state(recorded->event, &state, failure) &&
         (opencl_event_state(state) == EVENT_DONE || opencl_is_lost(state));
}

// After a failed command, other commands of the same queue may still run.
static void opencl_settle(const struct runtime* self,
                          const struct FletchingRecordedEvent* recorded) {
  (void)self;
  struct failure ignored;
  cl_int state = CL_COMPLETE;
  cl_command_queue queue = NULL;
  no_failure(&ignored);
  if (opencl_get_state(recorded->event, &state, &ignored) && opencl_is_lost(state) &&
      opencl_get(recorded->event, CL_EVENT_COMMAND_QUEUE, &queue, sizeof queue, &ignored)) {
    (void)OPENCL_CALL(clFinish, (queue), &ignored);
  }
}

static void opencl_destroy(const struct runtime* self,
                           const struct FletchingRecordedEvent* recorded) {
  (void)self;
  (void)cl.clReleaseEvent(recorded->event);
}

static void opencl_run_at_origin(const struct runtime* self,
                                 const struct FletchingRecordedEvent* recorded, void (*body)(void*),
                                 void* data) {
  (void)self, (void)recorded;
  body(data);
}

static bool opencl_finish(const struct runtime* self, const struct FletchingStream* stream,
                          struct failure* failure) {
  (void)self;
  return opencl_check_queue(stream->handle, failure) && load(&opencl_library, failure) &&
         OPENCL_CALL(clFinish, (stream->handle), failure);
}

static bool opencl_resolve(const struct runtime* self, struct FletchingStream* stream,
                           struct failure* failure) {
  (void)self, (void)stream, (void)failure;
  return true;
}

// --- The device report ---

static void get_opencl_text(cl_device_id device, cl_uint what, char text[MOST_NAME]) {
  char raw[MOST_NAME] = "";
  struct failure failure;
  no_failure(&failure);
  (void)OPENCL_CALL(clGetDeviceInfo, (device, what, sizeof raw - 1, raw, NULL), &failure);
  set_text(text, raw, &failure);
}

static void add_opencl_device(struct found_devices* found, cl_device_id device) {
  struct found_device* added = &found->devices[found->n_devices];
  if (found->version[0] == '\0') {
    get_opencl_text(device, CL_DEVICE_VERSION, found->version);
  }
  get_opencl_text(device, CL_DEVICE_NAME, added->name);
  added->id = found->n_devices++;
}

// Adds the devices of one driver. A driver without devices is not an error.
static bool add_opencl_platform(struct found_devices* found, cl_platform_id platform) {
  struct failure* failure = &found->failure;
  cl_uint count = 0;
  if (!OPENCL_HAS(clGetDeviceIDs, failure)) return false;
  const cl_int result = cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
  if (result == CL_DEVICE_NOT_FOUND || (result == CL_SUCCESS && count == 0)) return true;
  if (!opencl_check("clGetDeviceIDs", result, failure) || !make_room(found, count)) return false;
  cl_device_id* devices = calloc(count, sizeof *devices);
  bool is_listed = devices != NULL || no_memory(failure);
  is_listed =
      is_listed &&
      OPENCL_CALL(clGetDeviceIDs, (platform, CL_DEVICE_TYPE_ALL, count, devices, NULL), failure);
  for (cl_uint i = 0; is_listed && i < count; ++i) {
    if (devices[i] != NULL) add_opencl_device(found, devices[i]);  // a device may be gone
  }
  free(devices);
  return is_listed;
}

static bool list_opencl_platforms(struct found_devices* found, cl_uint count) {
  cl_platform_id* platforms = calloc(count, sizeof *platforms);
  if (platforms == NULL) return no_memory(&found->failure);
  struct failure* failure = &found->failure;
  struct failure first;
  no_failure(&first);
  bool goes_on = OPENCL_CALL(clGetPlatformIDs, (count, platforms, NULL), failure);
  for (cl_uint i = 0; goes_on && i < count; ++i) {
    if (platforms[i] == NULL || add_opencl_platform(found, platforms[i])) continue;
    goes_on = failure->code != ENOMEM;
    if (goes_on && first.code == 0) first = *failure;
    if (goes_on) no_failure(failure);
  }
  if (failure->code == 0) *failure = first;
  free(platforms);
  return failure->code == 0;
}

static void find_opencl_devices(struct found_devices* found) {
  const cl_int no_platform = -1001;  // CL_PLATFORM_NOT_FOUND_KHR
  struct failure* failure = &found->failure;
  cl_uint count = 0;
  if (!load(&opencl_library, failure)) return;
  found->library = opencl_library.found;
  if (!OPENCL_HAS(clGetPlatformIDs, failure) || !OPENCL_HAS(clGetDeviceIDs, failure) ||
      !OPENCL_HAS(clGetDeviceInfo, failure)) {
    return;
  }
  const cl_int result = cl.clGetPlatformIDs(0, NULL, &count);
  if (result == no_platform || (result == CL_SUCCESS && count == 0)) {
    (void)fail(failure, ENOENT,
               "OpenCL: %s is loaded, but no driver is registered; hint: install one, for example "
               "pocl-opencl-icd",
               found->library);
    return;
  }
  if (!opencl_check("clGetPlatformIDs", result, failure) || list_opencl_platforms(found, count)) {
    return;
  }
  // One failing driver does not hide the devices of another.
  if (found->n_devices > 0 && failure->code != ENOMEM) no_failure(failure);
}

static const struct runtime opencl_runtime = {
    .name = "OpenCL",
    .title = OPENCL_TITLE,
    .find_devices = find_opencl_devices,
    .synchronize = opencl_synchronize,
    .wait_on = opencl_wait_on,
    .ready = opencl_ready,
    .record = opencl_record,
    .has_passed = opencl_has_passed,
    .settle = opencl_settle,
    .destroy = opencl_destroy,
    .run_at_origin = opencl_run_at_origin,
    .finish = opencl_finish,
    .resolve = opencl_resolve,
    .no_record = "",
};

#endif  // FLETCHING_CORE_OPENCL_H

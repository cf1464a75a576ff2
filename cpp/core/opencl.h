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
         fail(
             failure, EINVAL,
             "wait_on: cl_context of the queue differs from the event's; hint: pass a queue of the "
             "event's context, or call synchronize");
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

static const struct runtime opencl_runtime = {
    .name = "OpenCL",
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

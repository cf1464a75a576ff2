// SPDX-License-Identifier: Apache-2.0
//
// OpenCL. A wait is enqueued on a queue of the event's own cl_context. OpenCL captures nothing.
#include "runtime_opencl.h"

#include <errno.h>

#define TITLE "OpenCL"

struct opencl_functions fletching_opencl;
#define cl fletching_opencl

static bool check(const char* function, cl_int code, struct failure* failure) {
  const char* name = opencl_status_name(code);
  const struct answer answer = {TITLE, function, code, name, NULL, code == CL_INVALID_EVENT};
  return code == CL_SUCCESS || fletching_fail_with(failure, answer);
}

static bool check_queue(const struct request* request, struct failure* failure) {
  return request->stream != 0 ||
         fletching_fail(
             failure, EINVAL,
             "stream is NULL: expected a cl_command_queue, because OpenCL has no default "
             "queue");
}

static bool get(cl_event event, cl_event_info what, void* value, size_t size,
                struct failure* failure) {
  return check("clGetEventInfo", cl.clGetEventInfo(event, what, size, value, NULL), failure);
}

static bool get_state(cl_event event, cl_int* state, struct failure* failure) {
  return get(event, CL_EVENT_COMMAND_EXECUTION_STATUS, state, sizeof *state, failure);
}

static bool query(struct request* request, struct failure* failure) {
  cl_int state = CL_QUEUED;
  if (!get_state((cl_event)request->event, &state, failure)) return false;
  request->is_done = opencl_event_state(state) == EVENT_DONE;
  return opencl_event_state(state) != EVENT_FAILED ||
         check("the command of the event", state, failure);
}

static bool synchronize(struct request* request, struct failure* failure) {
  const cl_event event = (cl_event)request->event;
  const cl_int code = cl.clWaitForEvents(1, &event);
  // The command itself has failed, and its state says how.
  if (code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) (void)query(request, failure);
  return check("clWaitForEvents", code, failure);
}

static bool check_context(cl_event event, cl_command_queue queue, struct failure* failure) {
  cl_context own = NULL;
  cl_context other = NULL;
  const cl_int code = cl.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof other, &other, NULL);
  if (!check("clGetCommandQueueInfo", code, failure) ||
      !get(event, CL_EVENT_CONTEXT, &own, sizeof own, failure)) {
    return false;
  }
  return own == other ||
         fletching_fail(failure, EINVAL,
                        "wait_on: cl_context of the queue differs from the event's; hint: pass a "
                        "queue of the event's context, or call Synchronize");
}

static bool wait_on(struct request* request, struct failure* failure) {
  const cl_event event = (cl_event)request->event;
  const cl_command_queue queue = (cl_command_queue)request->stream;
  cl_command_queue producer = NULL;
  if (!check_queue(request, failure) || !check_context(event, queue, failure) ||
      !get(event, CL_EVENT_COMMAND_QUEUE, &producer, sizeof producer, failure)) {
    return false;
  }
  // A queue need not begin with a command before it is flushed. A user event has no queue.
  if (producer != NULL && !check("clFlush", cl.clFlush(producer), failure)) return false;
  const cl_int code = cl.clEnqueueBarrierWithWaitList(queue, 1, &event, NULL);
  return check("clEnqueueBarrierWithWaitList", code, failure);
}

static bool record(struct recorded* recorded, struct request* request, struct failure* failure) {
  if (!check_queue(request, failure)) return false;
  if (cl.clEnqueueMarkerWithWaitList == NULL) {
    return fletching_fail(
        failure, ENOSYS, "%s: %s has no clEnqueueMarkerWithWaitList; hint: install a newer version",
        TITLE, cl.library);
  }
  const cl_command_queue queue = (cl_command_queue)request->stream;
  cl_event event = NULL;
  const cl_int code = cl.clEnqueueMarkerWithWaitList(queue, 0, NULL, &event);
  if (!check("clEnqueueMarkerWithWaitList", code, failure)) return false;
  recorded->event = event;
  // An event that no queue has submitted never happens.
  return check("clFlush", cl.clFlush(queue), failure);
}

static bool has_passed(const struct recorded* recorded, struct failure* failure) {
  cl_int state = CL_QUEUED;
  return get_state(recorded->event, &state, failure) &&
         (opencl_event_state(state) == EVENT_DONE || opencl_is_lost(state));
}

static void destroy(const struct recorded* recorded) { (void)cl.clReleaseEvent(recorded->event); }

static void run_relaxed(void (*body)(struct ArrowArray*), struct ArrowArray* array) { body(array); }

const struct runtime fletching_opencl_runtime = {synchronize, wait_on, query,       record,
                                                 has_passed,  destroy, run_relaxed, NULL};

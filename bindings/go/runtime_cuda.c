// SPDX-License-Identifier: Apache-2.0
//
// CUDA, and its contexts as the operations on events need them, by the driver API alone.
#include "runtime_cuda.h"

// A context that is current for the calling thread, for a while. No context is created: only one
// that another party has made is used. Afterwards the thread's contexts, and the references of the
// primary one, are as before.
struct scope {
  CUcontext current;
  bool is_pushed;
  bool is_retained;
  CUdevice device;  // whose primary context is retained
};

#define TITLE "CUDA driver API"
#define LIBRARY fletching_cuda.library
#define NAME_OF(function) "cu" #function
#define NAME(function) NAME_OF(function)
#define MEMBER(function) fletching_cuda.cu##function
#define FUNCTION(function) MEMBER(function)
#define EVENT_CREATE EventCreate
#define IMPLICIT CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
#define RELAXED_MODE CU_STREAM_CAPTURE_MODE_RELAXED
#define DISABLE_TIMING CU_EVENT_DISABLE_TIMING
#define WAIT_EXTERNAL CU_EVENT_WAIT_EXTERNAL
#define RECORD_EXTERNAL CU_EVENT_RECORD_EXTERNAL
#define STATE(code) cuda_event_state(code)
#define IS_LOST(code) cuda_is_lost(code)
#define STREAM(stream) (stream)
#include "runtime_capturing.h"

struct cuda_functions fletching_cuda;
#define cuda fletching_cuda

static bool check(const char* function, int32_t code, struct failure* failure) {
  if (code == CUDA_SUCCESS) return true;
  struct answer answer = {TITLE, function, code, NULL, NULL, code == CUDA_ERROR_INVALID_HANDLE};
  if (cuda.cuGetErrorName(code, &answer.name) != CUDA_SUCCESS) answer.name = NULL;
  if (cuda.cuGetErrorString(code, &answer.text) != CUDA_SUCCESS) answer.text = NULL;
  if (answer.name == NULL) answer.name = cuda_status_name(code);
  return fletching_fail_with(failure, answer);
}

static bool has_external_events(struct failure* failure) {
  if (cuda.cuEventRecordWithFlags != NULL) return true;
  return fletching_fail(failure, ENOTSUP,
                        "%s: %s has no cuEventRecordWithFlags; hint: install a newer version (CUDA "
                        "11.1) for an event of a captured stream",
                        TITLE, LIBRARY);
}

static bool enter(struct scope* scope, CUcontext context, struct failure* failure) {
  CUcontext before = NULL;
  if (!check("cuCtxGetCurrent", cuda.cuCtxGetCurrent(&before), failure)) return false;
  scope->current = context;
  if (before == context) return true;
  const CUresult code = cuda.cuCtxPushCurrent(context);
  scope->is_pushed = code == CUDA_SUCCESS;
  return check("cuCtxPushCurrent", code, failure);
}

static bool get_primary(CUdevice device, bool* is_active, struct failure* failure) {
  uint32_t flags = 0;
  int32_t active = 0;
  const CUresult code = cuda.cuDevicePrimaryCtxGetState(device, &flags, &active);
  *is_active = active != 0;
  return check("cuDevicePrimaryCtxGetState", code, failure);
}

// A primary context that is active. `release` gives it back.
static bool retain(struct scope* scope, CUdevice device, CUcontext* context,
                   struct failure* failure) {
  const CUresult code = cuda.cuDevicePrimaryCtxRetain(context, device);
  scope->is_retained = code == CUDA_SUCCESS;
  scope->device = device;
  return check("cuDevicePrimaryCtxRetain", code, failure);
}

static bool release(struct scope* scope, struct failure* failure) {
  if (!scope->is_retained) return true;
  scope->is_retained = false;
  const CUresult code = cuda.cuDevicePrimaryCtxRelease(scope->device);
  return check("cuDevicePrimaryCtxRelease", code, failure);
}

static bool pop(struct scope* scope, struct failure* failure) {
  if (!scope->is_pushed) return true;
  scope->is_pushed = false;
  CUcontext context = NULL;
  const CUresult code = cuda.cuCtxPopCurrent(&context);
  // It may report an earlier error, and have popped nonetheless: ours must not stay, and the
  // caller's must not go.
  if (code != CUDA_SUCCESS && cuda.cuCtxGetCurrent(&context) == CUDA_SUCCESS &&
      context == scope->current) {
    (void)cuda.cuCtxPopCurrent(&context);
  }
  return check("cuCtxPopCurrent", code, failure);
}

static bool leave(struct scope* scope, struct failure* failure) {
  const bool is_popped = pop(scope, failure);
  return release(scope, failure) && is_popped;
}

static bool enter_stream(struct scope* scope, const struct request* request,
                         struct failure* failure) {
  // The default streams are those of the current context.
  if (request->stream <= (uintptr_t)CU_STREAM_PER_THREAD) return enter_any(scope, request, failure);
  CUcontext context = NULL;
  const CUresult code = cuda.cuStreamGetCtx(HANDLE(request->stream), &context);
  if (code == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {
    return fletching_fail(failure, EBUSY,
                          "%s: expected a stream whose work runs, got one that is being captured "
                          "into a graph, and whose capture is invalid and not ended",
                          TITLE);
  }
  return check("cuStreamGetCtx", code, failure) && enter(scope, context, failure);
}

// The current context, or else that of the request; without one the primary context of the device,
// if it is active.
static bool enter_any(struct scope* scope, const struct request* request, struct failure* failure) {
  const CUresult code = cuda.cuCtxGetCurrent(&scope->current);
  if (!check("cuCtxGetCurrent", code, failure)) return false;
  if (scope->current != NULL) return true;
  CUcontext context = HANDLE(request->context);
  if (context != NULL) return enter(scope, context, failure);
  const int64_t device_id = request->device_id;
  if (device_id < 0 || device_id > INT32_MAX) {
    return fletching_fail(
        failure, EINVAL, "device_id: not a CUDA device ordinal: expected 0 to 2147483647, got %lld",
        (long long)device_id);
  }
  CUdevice device = 0;
  bool is_active = false;
  const CUresult got = cuda.cuDeviceGet(&device, (int32_t)device_id);
  if (!check("cuDeviceGet", got, failure) || !get_primary(device, &is_active, failure)) {
    return false;
  }
  if (!is_active) {
    return fletching_fail(
        failure, EINVAL,
        "CUDA context: none is current on this thread, and the primary context of "
        "device %d is not active; hint: make the array's context current",
        (int)device);
  }
  return retain(scope, device, &context, failure) && enter(scope, context, failure);
}

static bool get_origin(struct scope* scope, struct origin* origin, struct failure* failure) {
  origin->context = scope->current;
  if (cuda.cuCtxGetId != NULL &&
      !check("cuCtxGetId", cuda.cuCtxGetId(scope->current, &origin->id), failure)) {
    return false;
  }
  if (!check("cuCtxGetDevice", cuda.cuCtxGetDevice(&origin->device), failure)) {
    return false;
  }
  if (scope->is_retained && scope->device == origin->device) {
    origin->is_primary = true;
    return true;
  }
  bool is_active = false;
  if (!get_primary(origin->device, &is_active, failure)) return false;
  if (!is_active) return true;
  CUcontext primary = NULL;
  if (!retain(scope, origin->device, &primary, failure)) return false;
  origin->is_primary = primary == scope->current;
  return release(scope, failure);
}

// Whether the event's context is still there, and with it the event. A primary context stays as
// long as this scope, unless it is reset.
//
// Of a primary context the driver knows at any time whether it is active, and the number of the one
// that is. A context that was created can only be asked itself, which the driver answers with
// CUDA_ERROR_CONTEXT_IS_DESTROYED, but does not promise to. Without cuCtxGetId, before CUDA 12.0, a
// primary context that was reset and is active again counts as the same.
static enum event_state find(struct scope* scope, const struct origin* origin,
                             struct failure* failure) {
  CUcontext context = origin->context;
  if (origin->is_primary) {
    bool is_active = false;
    if (!get_primary(origin->device, &is_active, failure)) return EVENT_FAILED;
    if (!is_active) return EVENT_DONE;
    if (!retain(scope, origin->device, &context, failure)) return EVENT_FAILED;
    if (context != origin->context) return EVENT_DONE;
  }
  if (cuda.cuCtxGetId == NULL) return EVENT_PENDING;
  uint64_t id = 0;
  const CUresult code = cuda.cuCtxGetId(context, &id);
  if (code == CUDA_ERROR_CONTEXT_IS_DESTROYED || code == CUDA_ERROR_INVALID_CONTEXT) {
    return EVENT_DONE;
  }
  if (!check("cuCtxGetId", code, failure)) return EVENT_FAILED;
  return id == origin->id ? EVENT_PENDING : EVENT_DONE;
}

static enum event_state enter_origin(struct scope* scope, const struct origin* origin,
                                     struct failure* failure) {
  // The driver answers also when the current context was destroyed elsewhere.
  uint64_t id = 0;
  if (cuda.cuCtxGetId != NULL && cuda.cuCtxGetId(NULL, &id) == CUDA_SUCCESS && id == origin->id) {
    return EVENT_PENDING;
  }
  const enum event_state found = find(scope, origin, failure);
  if (found != EVENT_PENDING) return found;
  return enter(scope, origin->context, failure) ? EVENT_PENDING : EVENT_FAILED;
}

static uintptr_t current(void) {
  CUcontext context = NULL;
  return cuda.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? (uintptr_t)context : 0;
}

const struct runtime fletching_cuda_runtime = {synchronize, wait_on, query,       record,
                                               has_passed,  destroy, run_relaxed, current};

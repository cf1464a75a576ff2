// SPDX-License-Identifier: Apache-2.0
//
// HIP. An event is waited on, asked and destroyed from whatever device the thread has: HIP knows
// where it belongs.
#include "runtime_hip.h"

// The calling thread's device, set for a while.
struct scope {
  bool is_changed;
  hipDevice_t before;
};

#define TITLE "HIP runtime API"
#define LIBRARY fletching_hip.library
#define NAME_OF(function) "hip" #function
#define NAME(function) NAME_OF(function)
#define MEMBER(function) fletching_hip.hip##function
#define FUNCTION(function) MEMBER(function)
#define EVENT_CREATE EventCreateWithFlags
#define IMPLICIT hipErrorStreamCaptureImplicit
#define RELAXED_MODE hipStreamCaptureModeRelaxed
#define DISABLE_TIMING hipEventDisableTiming
// hipEventWaitExternal and hipEventRecordExternal, which are newer than the table.
#define WAIT_EXTERNAL 1
#define RECORD_EXTERNAL 1
#define STATE(code) hip_event_state(code)
#define IS_LOST(code) hip_is_lost(code)
// 1 is CUDA's number for the legacy default stream; HIP's is NULL, and older ones have no other.
#define STREAM(stream) ((uintptr_t)(stream) == 1 ? NULL : (stream))
#include "runtime_capturing.h"

struct hip_functions fletching_hip;
#define hip fletching_hip

static bool check(const char* function, int32_t code, struct failure* failure) {
  if (code == hipSuccess) return true;
  struct answer answer = {TITLE,
                          function,
                          code,
                          hip.hipGetErrorName(code),
                          hip.hipGetErrorString(code),
                          code == hipErrorInvalidHandle};
  if (answer.name == NULL) answer.name = hip_status_name(code);
  return fletching_fail_with(failure, answer);
}

// ROCm 6.4 can record an event of each launch of a graph, and ignores the flag of a wait.
static bool has_external_events(struct failure* failure) {
  const int32_t first = 70000000;  // 7.0
  int32_t version = 0;
  const hipError_t code = hip.hipRuntimeGetVersion(&version);
  if (!check("hipRuntimeGetVersion", code, failure)) return false;
  if (hip.hipEventRecordWithFlags != NULL && version >= first) return true;
  return fletching_fail(
      failure, ENOTSUP,
      "%s: no external events of graphs: expected ROCm 7.0 or later, got version %d", TITLE,
      (int)version);
}

static bool enter_stream(struct scope* scope, const struct request* request,
                         struct failure* failure) {
  if (!check("hipGetDevice", hip.hipGetDevice(&scope->before), failure)) return false;
  // The default streams are those of the thread's device.
  if (request->stream <= (uintptr_t)hipStreamPerThread) return true;
  const hipDevice_t device = hip.hipGetStreamDeviceId(HANDLE(request->stream));
  if (device < 0) {
    return fletching_fail(failure, EINVAL,
                          "%s: hipGetStreamDeviceId failed with %d; hint: check that the stream is "
                          "alive",
                          TITLE, (int)device);
  }
  if (device == scope->before) return true;
  const hipError_t code = hip.hipSetDevice(device);
  scope->is_changed = code == hipSuccess;
  return check("hipSetDevice", code, failure);
}

static bool leave(struct scope* scope, struct failure* failure) {
  if (!scope->is_changed) return true;
  scope->is_changed = false;
  const hipError_t code = hip.hipSetDevice(scope->before);
  if (code != hipSuccess) (void)hip.hipSetDevice(scope->before);  // it may be an earlier error
  return check("hipSetDevice", code, failure);
}

static bool enter_any(struct scope* scope, const struct request* request, struct failure* failure) {
  (void)scope, (void)request, (void)failure;
  return true;
}

static enum event_state enter_origin(struct scope* scope, const struct origin* origin,
                                     struct failure* failure) {
  (void)scope, (void)origin, (void)failure;
  return EVENT_PENDING;
}

static bool get_origin(struct scope* scope, struct origin* origin, struct failure* failure) {
  (void)scope, (void)origin, (void)failure;
  return true;
}

const struct runtime fletching_hip_runtime = {synchronize, wait_on, query,       record,
                                              has_passed,  destroy, run_relaxed, NULL};

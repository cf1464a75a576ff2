// SPDX-License-Identifier: Apache-2.0
//
// HIP. Events can be waited on, queried and destroyed with any current device.
#ifndef FLETCHING_CORE_HIP_H
#define FLETCHING_CORE_HIP_H

#include "graph_runtime.h"
#include "tables/hip.h"

static struct hip_functions hip;
static struct graph_functions hip_graph;

#define HIP_GRAPH_FUNCTIONS(X)                         \
  X(init, hipInit)                                     \
  X(exchange_mode, hipThreadExchangeStreamCaptureMode) \
  X(is_capturing, hipStreamIsCapturing)                \
  X(stream_wait_event, hipStreamWaitEvent)             \
  X(stream_synchronize, hipStreamSynchronize)          \
  X(event_synchronize, hipEventSynchronize)            \
  X(event_query, hipEventQuery)                        \
  X(event_create, hipEventCreateWithFlags)             \
  X(event_record, hipEventRecord)                      \
  X(event_record_with_flags, hipEventRecordWithFlags)  \
  X(event_destroy, hipEventDestroy)

#define BIND(member, function) .member = hip.function,
static void bind_hip(void) { hip_graph = (struct graph_functions){HIP_GRAPH_FUNCTIONS(BIND)}; }
#undef BIND

#define NAME(member, function) .member = #function,
static const struct graph_names hip_names = {HIP_GRAPH_FUNCTIONS(NAME)};
#undef NAME

static struct vendor_library hip_library = {
    .title = HIP_TITLE,
    .names = hip_library_names,
    .functions = hip_function_table,
    .n_functions = sizeof hip_function_table / sizeof hip_function_table[0],
    .table = &hip,
    .bind = bind_hip,
    .lock = LOCK_INIT,
};

static bool hip_check(const char* function, int32_t result, struct failure* failure) {
  if (result == hipSuccess) return true;
  struct answer answer = {.title = HIP_TITLE,
                          .function = function,
                          .result = result,
                          .is_invalid_handle = result == hipErrorInvalidHandle};
  if (hip.hipGetErrorName != NULL) answer.name = hip.hipGetErrorName(result);
  if (hip.hipGetErrorString != NULL) answer.text = hip.hipGetErrorString(result);
  if (answer.name == NULL) answer.name = hip_status_name(result);
  return fail_with(failure, &answer);
}

#define HIP_HAS(function, failure) \
  has_function(&hip_library, hip.function != NULL, #function, failure)
#define HIP_CALL(function, arguments, failure) \
  (HIP_HAS(function, failure) && hip_check(#function, hip.function arguments, failure))

static bool hip_load(struct failure* failure) { return load(&hip_library, failure); }

// leave() restores the thread's device.
static bool hip_enter_device(struct scope* scope, int32_t device, struct failure* failure) {
  if (!HIP_HAS(hipSetDevice, failure) || !HIP_CALL(hipGetDevice, (&scope->device), failure)) {
    return false;
  }
  if (device == scope->device) return true;
  const hipError_t result = hip.hipSetDevice(device);
  scope->is_changed = result == hipSuccess;
  return hip_check("hipSetDevice", result, failure);
}

static bool hip_leave(struct scope* scope, struct failure* failure) {
  if (!scope->is_changed) return true;
  scope->is_changed = false;
  const hipError_t result = hip.hipSetDevice(scope->device);
  if (result != hipSuccess) (void)hip.hipSetDevice(scope->device);  // may be an earlier error
  return hip_check("hipSetDevice", result, failure);
}

static bool hip_is_default(const void* stream) {
  return (uintptr_t)stream <= (uintptr_t)hipStreamPerThread;
}

static bool hip_enter_stream(struct scope* scope, const struct FletchingStream* stream,
                             struct failure* failure) {
  int64_t device = stream->device_id;
  if (!hip_is_default(stream->handle)) {
    if (!HIP_HAS(hipGetStreamDeviceId, failure)) return false;
    device = hip.hipGetStreamDeviceId(stream->handle);
    if (device < 0) {
      return fail(failure, EINVAL,
                  "%s: hipGetStreamDeviceId failed with %d; hint: check that the stream is alive",
                  HIP_TITLE, (int)device);
    }
  }
  if (device < 0) return true;
  if (device > INT32_MAX) {
    return fail(failure, EINVAL, "device_id: not a HIP device: expected 0 to 2147483647, got %lld",
                (long long)device);
  }
  return hip_enter_device(scope, (int32_t)device, failure);
}

static bool hip_enter_any(struct scope* scope, const struct FletchingEvent* event,
                          struct failure* failure) {
  (void)scope, (void)event, (void)failure;
  return true;
}

static enum event_state hip_enter_origin(struct scope* scope, const struct origin* origin,
                                         struct failure* failure) {
  (void)scope, (void)origin, (void)failure;
  return EVENT_PENDING;
}

static enum event_state hip_enter_place(struct scope* scope, const struct origin* origin,
                                        struct failure* failure) {
  return hip_enter_device(scope, origin->device, failure) ? EVENT_PENDING : EVENT_FAILED;
}

static bool hip_get_origin(struct scope* scope, struct origin* origin, struct failure* failure) {
  (void)scope;
  return HIP_CALL(hipGetDevice, (&origin->device), failure);
}

// ROCm 6.4 can record an external event, but ignores the flag of an external wait.
static bool hip_has_external_events(bool is_record, struct failure* failure) {
  const int32_t first = 70000000;  // 7.0
  int32_t version = 0;
  (void)is_record;
  if (!HIP_CALL(hipRuntimeGetVersion, (&version), failure)) return false;
  if (hip.hipEventRecordWithFlags != NULL && version >= first) return true;
  return fail(failure, ENOTSUP,
              "%s: no external events of graphs: expected ROCm 7.0 or later, got version %d",
              HIP_TITLE, (int)version);
}

// 1 is CUDA's handle of the legacy default stream. HIP uses NULL, and older HIP versions only NULL.
static void* hip_stream(void* handle) { return (uintptr_t)handle == 1 ? NULL : handle; }

static const struct graph_runtime hip_parts = {
    .library = &hip_library,
    .functions = &hip_graph,
    .names = &hip_names,
    .not_in_capture = hipErrorStreamCaptureImplicit,
    .relaxed_mode = hipStreamCaptureModeRelaxed,
    .event_flags = hipEventDisableTiming | hipEventBlockingSync,
    // hipEventWaitExternal and hipEventRecordExternal, which are newer than the table.
    .wait_external = 1,
    .record_external = 1,
    .state = hip_event_state,
    .is_lost = hip_is_lost,
    .load = hip_load,
    .check = hip_check,
    .stream = hip_stream,
    .has_external_events = hip_has_external_events,
    .enter_stream = hip_enter_stream,
    .enter_any = hip_enter_any,
    .enter_origin = hip_enter_origin,
    .enter_place = hip_enter_place,
    .get_origin = hip_get_origin,
    .leave = hip_leave,
};

// The per-thread default stream differs between threads. The legacy default stream waits for it.
static bool hip_resolve(const struct runtime* runtime, struct FletchingStream* stream,
                        struct failure* failure) {
  if (!hip_is_default(stream->handle)) return true;
  int32_t device = 0;
  if (!initialize(runtime->graph, failure)) return false;
  if (stream->device_id < 0) {
    if (!HIP_CALL(hipGetDevice, (&device), failure)) return false;
    stream->device_id = device;
  }
  stream->handle = NULL;
  return true;
}

// --- The device report ---

static void set_hip_version(struct found_devices* found) {
  struct failure failure;
  char text[MOST_NAME];
  int32_t version = 0;
  no_failure(&failure);
  (void)HIP_CALL(hipRuntimeGetVersion, (&version), &failure);
  (void)snprintf(text, sizeof text, "HIP %d.%d.%d", version / 10000000, version / 100000 % 100,
                 version % 100000);
  set_text(found->version, text, &failure);
}

static bool add_hip_device(struct found_devices* found, int32_t ordinal) {
  hipDevice_t device = 0;
  char name[MOST_NAME] = "";
  struct failure failure;
  no_failure(&failure);
  if (!HIP_CALL(hipDeviceGet, (&device, ordinal), &found->failure)) return false;
  struct found_device* added = &found->devices[found->n_devices++];
  added->id = ordinal;
  (void)HIP_CALL(hipDeviceGetName, (name, sizeof name - 1, device), &failure);
  set_text(added->name, name, &failure);
  return true;
}

static void find_hip_devices(struct found_devices* found) {
  int32_t count = 0;
  if (!load(&hip_library, &found->failure)) return;
  found->library = hip_library.found;
  if (!HIP_HAS(hipDeviceGetName, &found->failure) || !initialize(&hip_parts, &found->failure)) {
    return;
  }
  set_hip_version(found);
  if (!HIP_CALL(hipGetDeviceCount, (&count), &found->failure) || !make_room(found, count)) return;
  for (int32_t ordinal = 0; ordinal < count && add_hip_device(found, ordinal); ++ordinal) {
  }
}

static const struct runtime hip_runtime = {
    .name = "HIP",
    .title = HIP_TITLE,
    .find_devices = find_hip_devices,
    .graph = &hip_parts,
    .synchronize = graph_synchronize,
    .wait_on = graph_wait_on,
    .ready = graph_ready,
    .record = graph_record,
    .has_passed = graph_has_passed,
    .is_gone = graph_is_gone,
    .is_lost = graph_is_lost,
    .settle = settle_nothing,
    .destroy = graph_destroy,
    .run_at_origin = graph_run_at_origin,
    .finish = graph_finish,
    .resolve = hip_resolve,
    .get_current = NULL,
    .no_record = "",
};

#endif  // FLETCHING_CORE_HIP_H

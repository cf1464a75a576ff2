// SPDX-License-Identifier: Apache-2.0
//
// CUDA events and contexts through the driver API.
#ifndef FLETCHING_CORE_CUDA_H
#define FLETCHING_CORE_CUDA_H

#include "graph_runtime.h"
#include "tables/cuda.h"

static struct cuda_functions cuda;
static struct graph_functions cuda_graph;

#define CUDA_GRAPH_FUNCTIONS(X)                       \
  X(init, cuInit)                                     \
  X(exchange_mode, cuThreadExchangeStreamCaptureMode) \
  X(is_capturing, cuStreamIsCapturing)                \
  X(stream_wait_event, cuStreamWaitEvent)             \
  X(stream_synchronize, cuStreamSynchronize)          \
  X(event_synchronize, cuEventSynchronize)            \
  X(event_query, cuEventQuery)                        \
  X(event_create, cuEventCreate)                      \
  X(event_record, cuEventRecord)                      \
  X(event_record_with_flags, cuEventRecordWithFlags)  \
  X(event_destroy, cuEventDestroy)

#define BIND(member, function) .member = cuda.function,
static void bind_cuda(void) { cuda_graph = (struct graph_functions){CUDA_GRAPH_FUNCTIONS(BIND)}; }
#undef BIND

#define NAME(member, function) .member = #function,
static const struct graph_names cuda_names = {CUDA_GRAPH_FUNCTIONS(NAME)};
#undef NAME

static struct vendor_library cuda_library = {
    .title = CUDA_TITLE,
    .names = cuda_library_names,
    .functions = cuda_function_table,
    .n_functions = sizeof cuda_function_table / sizeof cuda_function_table[0],
    .table = &cuda,
    .bind = bind_cuda,
    .lock = LOCK_INIT,
};

static bool cuda_check(const char* function, int32_t result, struct failure* failure) {
  if (result == CUDA_SUCCESS) return true;
  struct answer answer = {.title = CUDA_TITLE,
                          .function = function,
                          .result = result,
                          .is_invalid_handle = result == CUDA_ERROR_INVALID_HANDLE};
  if (cuda.cuGetErrorName == NULL || cuda.cuGetErrorName(result, &answer.name) != CUDA_SUCCESS) {
    answer.name = NULL;
  }
  if (cuda.cuGetErrorString == NULL ||
      cuda.cuGetErrorString(result, &answer.text) != CUDA_SUCCESS) {
    answer.text = NULL;
  }
  if (answer.name == NULL) answer.name = cuda_status_name(result);
  return fail_with(failure, &answer);
}

#define CUDA_HAS(function, failure) \
  has_function(&cuda_library, cuda.function != NULL, #function, failure)
#define CUDA_CALL(function, arguments, failure) \
  (CUDA_HAS(function, failure) && cuda_check(#function, cuda.function arguments, failure))

// Loads the library and checks the context functions that every operation needs.
static bool cuda_load(struct failure* failure) {
  return load(&cuda_library, failure) && CUDA_HAS(cuCtxGetCurrent, failure) &&
         CUDA_HAS(cuCtxPushCurrent, failure) && CUDA_HAS(cuCtxPopCurrent, failure);
}

// leave() restores the thread's contexts and the primary context's reference count. Never creates a
// context.
static bool cuda_enter(struct scope* scope, void* context, struct failure* failure) {
  CUcontext before = NULL;
  if (!cuda_check("cuCtxGetCurrent", cuda.cuCtxGetCurrent(&before), failure)) return false;
  scope->current = context;
  if (before == context) return true;
  const CUresult result = cuda.cuCtxPushCurrent(context);
  scope->is_pushed = result == CUDA_SUCCESS;
  return cuda_check("cuCtxPushCurrent", result, failure);
}

// If the context is not on top, the code in between has popped or destroyed it. A pop may report an
// earlier error even if it succeeded.
static bool cuda_pop(struct scope* scope, struct failure* failure) {
  if (!scope->is_pushed) return true;
  scope->is_pushed = false;
  CUcontext top = NULL;
  CUcontext popped = NULL;
  const CUresult asked = cuda.cuCtxGetCurrent(&top);
  if (asked == CUDA_SUCCESS && top != scope->current) return true;
  const CUresult result = cuda.cuCtxPopCurrent(&popped);
  if (result != CUDA_SUCCESS && cuda.cuCtxGetCurrent(&top) == CUDA_SUCCESS &&
      top == scope->current) {
    (void)cuda.cuCtxPopCurrent(&popped);
  }
  return cuda_check("cuCtxPopCurrent", result, failure) &&
         cuda_check("cuCtxGetCurrent", asked, failure);
}

static bool cuda_give_back(struct scope* scope, struct failure* failure) {
  if (!scope->is_retained) return true;
  scope->is_retained = false;
  const CUresult result = cuda.cuDevicePrimaryCtxRelease(scope->device);
  return cuda_check("cuDevicePrimaryCtxRelease", result, failure);
}

static bool cuda_leave(struct scope* scope, struct failure* failure) {
  const bool is_popped = cuda_pop(scope, failure);
  return cuda_give_back(scope, failure) && is_popped;
}

static bool cuda_is_active(CUdevice device, bool* is_active, struct failure* failure) {
  uint32_t flags = 0;
  int32_t active = 0;
  if (!CUDA_CALL(cuDevicePrimaryCtxGetState, (device, &flags, &active), failure)) return false;
  *is_active = active != 0;
  return true;
}

// Retains an active primary context until cuda_give_back.
static bool cuda_retain(struct scope* scope, CUdevice device, CUcontext* context,
                        struct failure* failure) {
  if (!CUDA_HAS(cuDevicePrimaryCtxRelease, failure) ||
      !CUDA_CALL(cuDevicePrimaryCtxRetain, (context, device), failure)) {
    return false;
  }
  scope->is_retained = true;
  scope->device = device;
  return true;
}

static bool cuda_enter_primary(struct scope* scope, int64_t device_id, struct failure* failure) {
  CUdevice device = 0;
  CUcontext context = NULL;
  bool is_active = false;
  if (device_id < 0 || device_id > INT32_MAX) {
    return fail(
        failure, EINVAL,
        "device_id: not a CUDA device ordinal: expected 0 to 2147483647, got %lld; hint: name "
        "the device of a default stream, or make its context current",
        (long long)device_id);
  }
  if (!CUDA_CALL(cuDeviceGet, (&device, (int32_t)device_id), failure) ||
      !cuda_is_active(device, &is_active, failure)) {
    return false;
  }
  if (!is_active) {
    return fail(failure, EINVAL,
                "CUDA context: none of device %d is current on this thread, and its primary "
                "context is not active; hint: make the array's context current",
                (int)device);
  }
  return cuda_retain(scope, device, &context, failure) && cuda_enter(scope, context, failure);
}

// Enters `context`, or the current context if it is NULL, if it belongs to the device. Otherwise
// enters the device's primary context. device_id -1 matches any context.
static bool cuda_enter_device(struct scope* scope, void* context, int64_t device_id,
                              struct failure* failure) {
  CUcontext own = context;
  if (own == NULL && !cuda_check("cuCtxGetCurrent", cuda.cuCtxGetCurrent(&own), failure)) {
    return false;
  }
  if (own == NULL) return cuda_enter_primary(scope, device_id, failure);
  CUdevice device = -1;
  if (!cuda_enter(scope, own, failure)) return false;
  if (device_id < 0) return true;
  if (!CUDA_CALL(cuCtxGetDevice, (&device), failure)) return false;
  if (device == device_id) return true;
  return cuda_pop(scope, failure) && cuda_enter_primary(scope, device_id, failure);
}

static bool cuda_is_default(const void* stream) {
  return (uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD;
}

static bool cuda_enter_stream(struct scope* scope, const struct FletchingStream* stream,
                              struct failure* failure) {
  if (cuda_is_default(stream->handle)) {
    return cuda_enter_device(scope, stream->context, stream->device_id, failure);
  }
  CUcontext context = NULL;
  if (!CUDA_HAS(cuStreamGetCtx, failure)) return false;
  const CUresult result = cuda.cuStreamGetCtx(stream->handle, &context);
  if (result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {
    return refuse_capture(&cuda_library, CAPTURE_INVALIDATED, failure);
  }
  return cuda_check("cuStreamGetCtx", result, failure) && cuda_enter(scope, context, failure);
}

// Enters a context in which the thread can wait for any event.
static bool cuda_enter_any(struct scope* scope, const struct FletchingEvent* event,
                           struct failure* failure) {
  if (!cuda_check("cuCtxGetCurrent", cuda.cuCtxGetCurrent(&scope->current), failure)) return false;
  if (scope->current != NULL) return true;
  if (event->context != NULL) return cuda_enter(scope, event->context, failure);
  return cuda_enter_primary(scope, event->device_id, failure);
}

// Finds the device of the current context, and whether the context is its primary one.
static bool cuda_find_device(struct scope* scope, struct origin* origin, struct failure* failure) {
  if (!CUDA_CALL(cuCtxGetDevice, (&origin->device), failure)) return false;
  if (scope->is_retained && scope->device == origin->device) {
    origin->is_primary = true;
    return true;
  }
  bool is_active = false;
  if (!cuda_is_active(origin->device, &is_active, failure)) return false;
  if (!is_active) return true;
  CUcontext primary = NULL;
  if (!cuda_retain(scope, origin->device, &primary, failure)) return false;
  origin->is_primary = primary == scope->current;
  return cuda_give_back(scope, failure);
}

// Context ids are unique, so each thread caches the last origin.
static bool cuda_get_origin(struct scope* scope, struct origin* origin, struct failure* failure) {
  static _Thread_local struct origin known;
  origin->context = scope->current;
  if (cuda.cuCtxGetId != NULL &&
      !cuda_check("cuCtxGetId", cuda.cuCtxGetId(scope->current, &origin->id), failure)) {
    return false;
  }
  if (origin->id != 0 && origin->id == known.id) {
    *origin = known;
    return true;
  }
  if (!cuda_find_device(scope, origin, failure)) return false;
  known = *origin;
  return true;
}

// Whether the event's context, and with it the event, still exists. A primary context stays active
// during this scope unless it is reset.
//
// For a primary context the driver can always report whether one is active and its id. A created
// context can only be queried through its handle. If it is destroyed, the driver returns
// CUDA_ERROR_CONTEXT_IS_DESTROYED but does not guarantee this. Without cuCtxGetId, before CUDA
// 12.0, a primary context that was reset and is active again counts as the same.
static enum event_state cuda_find(struct scope* scope, const struct origin* origin,
                                  struct failure* failure) {
  CUcontext context = origin->context;
  if (origin->is_primary) {
    bool is_active = false;
    if (!cuda_is_active(origin->device, &is_active, failure)) return EVENT_FAILED;
    if (!is_active) return EVENT_DONE;
    if (!cuda_retain(scope, origin->device, &context, failure)) return EVENT_FAILED;
    if (context != origin->context) return EVENT_DONE;
  }
  if (cuda.cuCtxGetId == NULL) return EVENT_PENDING;
  uint64_t id = 0;
  const CUresult result = cuda.cuCtxGetId(context, &id);
  if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT) {
    return EVENT_DONE;
  }
  if (!cuda_check("cuCtxGetId", result, failure)) return EVENT_FAILED;
  return id == origin->id ? EVENT_PENDING : EVENT_DONE;
}

static enum event_state cuda_enter_origin(struct scope* scope, const struct origin* origin,
                                          struct failure* failure) {
  uint64_t id = 0;
  // The driver also answers if the current context was destroyed elsewhere.
  if (origin->id != 0 && cuda.cuCtxGetId(NULL, &id) == CUDA_SUCCESS && id == origin->id) {
    return EVENT_PENDING;
  }
  const enum event_state found = cuda_find(scope, origin, failure);
  if (found != EVENT_PENDING) return found;
  return cuda_enter(scope, origin->context, failure) ? EVENT_PENDING : EVENT_FAILED;
}

// Checks records only: a driver without external waits rejects the wait's flag.
static bool cuda_has_external_events(bool is_record, struct failure* failure) {
  if (!is_record || cuda.cuEventRecordWithFlags != NULL) return true;
  return fail(failure, ENOTSUP,
              "%s: no cuEventRecordWithFlags in this driver: expected CUDA 11.1 or later for an "
              "event of a captured stream",
              CUDA_TITLE);
}

static void* cuda_stream(void* handle) { return handle; }

static const struct graph_runtime cuda_parts = {
    .library = &cuda_library,
    .functions = &cuda_graph,
    .names = &cuda_names,
    .not_in_capture = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
    .relaxed_mode = CU_STREAM_CAPTURE_MODE_RELAXED,
    // A spinning host wait occupies a whole core.
    .event_flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC,
    .wait_external = CU_EVENT_WAIT_EXTERNAL,
    .record_external = CU_EVENT_RECORD_EXTERNAL,
    .state = cuda_event_state,
    .is_lost = cuda_is_lost,
    .load = cuda_load,
    .check = cuda_check,
    .stream = cuda_stream,
    .has_external_events = cuda_has_external_events,
    .enter_stream = cuda_enter_stream,
    .enter_any = cuda_enter_any,
    .enter_origin = cuda_enter_origin,
    .enter_place = cuda_enter_origin,
    .get_origin = cuda_get_origin,
    .leave = cuda_leave,
};

// The per-thread default stream differs between threads. The legacy default stream and all
// per-thread default streams wait for each other (CUDA driver API, "Stream synchronization
// behavior").
static bool cuda_resolve(const struct runtime* runtime, struct FletchingStream* stream,
                         struct failure* failure) {
  if (!cuda_is_default(stream->handle)) return true;
  struct scope scope = {0};
  CUdevice device = -1;
  const bool is_found = initialize(runtime->graph, failure) &&
                        cuda_enter_stream(&scope, stream, failure) &&
                        CUDA_CALL(cuCtxGetDevice, (&device), failure);
  if (is_found) {
    stream->context = scope.current;
    stream->device_id = device;
    stream->handle = CU_STREAM_LEGACY;
  }
  return cuda_leave(&scope, failure) && is_found;
}

static bool cuda_get_current(void** context, struct failure* failure) {
  CUcontext current = NULL;
  const bool is_known =
      cuda_load(failure) && cuda_check("cuCtxGetCurrent", cuda.cuCtxGetCurrent(&current), failure);
  *context = current;
  return is_known;
}

// --- The device report ---

static void set_cuda_version(struct found_devices* found) {
  struct failure failure;
  char text[MOST_NAME];
  int32_t version = 0;
  no_failure(&failure);
  (void)CUDA_CALL(cuDriverGetVersion, (&version), &failure);
  (void)snprintf(text, sizeof text, "CUDA %d.%d", version / 1000, version % 1000 / 10);
  set_text(found->version, text, &failure);
}

static bool add_cuda_device(struct found_devices* found, int32_t ordinal) {
  CUdevice device = 0;
  int32_t has_managed_memory = 0;
  char name[MOST_NAME] = "";
  struct failure failure;
  no_failure(&failure);
  if (!CUDA_CALL(cuDeviceGet, (&device, ordinal), &found->failure) ||
      !CUDA_CALL(cuDeviceGetAttribute,
                 (&has_managed_memory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device),
                 &found->failure)) {
    return false;
  }
  struct found_device* added = &found->devices[found->n_devices++];
  added->id = ordinal;
  added->has_managed_memory = has_managed_memory != 0;
  (void)CUDA_CALL(cuDeviceGetName, (name, sizeof name - 1, device), &failure);
  set_text(added->name, name, &failure);
  return true;
}

static void find_cuda_devices(struct found_devices* found) {
  int32_t count = 0;
  if (!load(&cuda_library, &found->failure)) return;
  found->library = cuda_library.found;
  if (!CUDA_HAS(cuDeviceGetName, &found->failure) ||
      !CUDA_HAS(cuDeviceGetAttribute, &found->failure)) {
    return;
  }
  set_cuda_version(found);
  if (!initialize(&cuda_parts, &found->failure) ||
      !CUDA_CALL(cuDeviceGetCount, (&count), &found->failure) || !make_room(found, count)) {
    return;
  }
  for (int32_t ordinal = 0; ordinal < count && add_cuda_device(found, ordinal); ++ordinal) {
  }
}

static const struct runtime cuda_runtime = {
    .name = "CUDA",
    .title = CUDA_TITLE,
    .find_devices = find_cuda_devices,
    .graph = &cuda_parts,
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
    .resolve = cuda_resolve,
    .get_current = cuda_get_current,
    .no_record = "",
};

#endif  // FLETCHING_CORE_CUDA_H

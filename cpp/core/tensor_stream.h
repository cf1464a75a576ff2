// SPDX-License-Identifier: Apache-2.0
//
// The stream argument of __dlpack__: its meaning for each device, and the waits.
#ifndef FLETCHING_CORE_TENSOR_STREAM_H
#define FLETCHING_CORE_TENSOR_STREAM_H

#include "export_event.h"
#include "fletching/tensor.h"

static bool bad_stream(ArrowDeviceType type, int64_t number, const char* expected,
                       struct failure* failure) {
  return fail(failure, EINVAL, "stream: invalid on %s: expected %s, got %lld", label_of(type).text,
              expected, (long long)number);
}

// Whether __dlpack__ accepts a stream for the device.
static bool has_stream_argument(ArrowDeviceType type) {
  const int32_t runtime = device_runtime(type);
  return runtime == FLETCHING_RUNTIME_CUDA || runtime == FLETCHING_RUNTIME_HIP;
}

static bool read_tensor_stream(ArrowDeviceType type, const int64_t* argument,
                               struct FletchingTensorStream* out, struct failure* failure) {
  const int32_t runtime = device_runtime(type);
  const bool is_cuda = runtime == FLETCHING_RUNTIME_CUDA;
  const bool has_streams = has_stream_argument(type);
  out->stream = FletchingStreamOfArray(NULL);
  out->stream.runtime = runtime;
  out->ordering = FLETCHING_ORDER_HOST;
  if (!has_streams && argument != NULL) {
    return bad_stream(type, *argument, "None, because the device has no streams", failure);
  }
  // A consumer of host-readable memory need not support streams, so it may pass no argument.
  if (argument == NULL && (!has_streams || device_is_host_readable(type))) return true;
  const int64_t number = argument != NULL ? *argument : is_cuda ? 1 : 0;
  out->ordering = number == -1 ? FLETCHING_ORDER_NOTHING : FLETCHING_ORDER_STREAM;
  if (number == -1) return true;
  if (number < -1) {
    return bad_stream(type, number, "-1 for no synchronization, or a stream", failure);
  }
  if (is_cuda && number == 0) {
    return bad_stream(type, number, "1 for the legacy default stream or 2 for the per-thread one",
                      failure);
  }
  if (!is_cuda && (number == 1 || number == 2)) {
    return bad_stream(type, number, "0 for the default stream", failure);
  }
  if ((uint64_t)number > UINTPTR_MAX) {
    return bad_stream(type, number, "a handle of this process", failure);
  }
  out->stream.handle = (void*)(uintptr_t)number;
  return true;
}

int FletchingTensorStreamRead(ArrowDeviceType type, const int64_t* argument,
                              struct FletchingTensorStream* stream,
                              struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  (void)(check_result(stream, &failure) && read_tensor_stream(type, argument, stream, &failure));
  return report(&failure, message);
}

// An unknown ordering must not be treated as no ordering.
static bool check_ordering(const struct FletchingTensorStream* order, struct failure* failure) {
  return order == NULL || order->ordering == FLETCHING_ORDER_NOTHING ||
         order->ordering == FLETCHING_ORDER_HOST || order->ordering == FLETCHING_ORDER_STREAM ||
         fail(failure, EINVAL,
              "stream: unknown ordering: expected nothing, host or stream, got the number %d",
              (int)order->ordering);
}

// Makes the host or the stream wait for the event, as requested.
static bool order_behind(const struct FletchingEvent* event,
                         const struct FletchingTensorStream* order, struct failure* failure) {
  if (order->ordering == FLETCHING_ORDER_HOST) return synchronize_event(event, failure);
  if (order->ordering != FLETCHING_ORDER_STREAM || event->sync_event == NULL) return true;
  struct FletchingStream stream = order->stream;
  return complete_stream(&stream, event->device_type, event->device_id, failure) &&
         wait_on_event(event, stream, FLETCHING_CAPTURE_REFUSE, failure);
}

// For host-readable memory DLPack's device id is 0 and does not identify a GPU. A default stream
// then uses the current device, if there is one.
static bool get_device_of_streams(ArrowDeviceType type, int64_t* device_id,
                                  struct failure* failure) {
  const struct runtime* runtime = runtime_of(type);
  void* context = NULL;
  if (!device_is_host_readable(type)) return true;
  if (runtime->get_current != NULL && !runtime->get_current(&context, failure)) return false;
  if (runtime->get_current == NULL || context != NULL) *device_id = -1;
  return true;
}

// Blocks until all work on the stream so far is done. A GPU may write even to memory whose device
// type has no runtime.
static bool finish_producer(ArrowDeviceType type, int64_t device_id, struct FletchingStream stream,
                            struct failure* failure) {
  struct FletchingRecordedEvent recorded;
  if ((device_runtime(type) != FLETCHING_RUNTIME_NONE &&
       !complete_stream(&stream, type, -1, failure)) ||
      !get_device_of_streams(type, &device_id, failure)) {
    return false;
  }
  if (stream.device_id < 0) stream.device_id = device_id;
  const struct runtime* runtime = recorder_for(type, stream.runtime, failure);
  if (runtime == NULL ||
      !record_event(&recorded, runtime, &stream, FLETCHING_CAPTURE_REFUSE, failure)) {
    if (failure->code == EBUSY) add_hint(failure, "copy before the capture begins");
    return false;
  }
  // The host sleeps while waiting for an event, but may spin on a stream.
  const struct FletchingEvent event = {.sync_event = &recorded.event, .device_id = device_id};
  const bool is_done = runtime->synchronize(runtime, &event, recorded.event, failure);
  end_recorded(&recorded);
  return is_done;
}

// Records the event of an imported array.
static bool record_producer(struct ArrowDeviceArray* array, struct FletchingStream stream,
                            struct failure* failure) {
  const ArrowDeviceType type = array->device_type;
  const int64_t device_id = array->device_id;
  int64_t id = device_id;
  if (recorder_for(type, device_runtime(type), failure) == NULL ||
      !complete_stream(&stream, type, -1, failure) || !get_device_of_streams(type, &id, failure)) {
    return false;
  }
  array->device_id = id;
  const bool is_recorded = export_event_with_hint(array, stream, FLETCHING_CAPTURE_REFUSE, failure);
  array->device_id = device_id;
  return is_recorded;
}

#endif  // FLETCHING_CORE_TENSOR_STREAM_H

// SPDX-License-Identifier: Apache-2.0
//
// Waits for streams, by the host and by other streams.
#ifndef FLETCHING_CORE_STREAMS_H
#define FLETCHING_CORE_STREAMS_H

#include "export_event.h"

static bool finish_stream(const struct FletchingStream* stream, struct failure* failure) {
  const struct runtime* runtime = recorder_of(stream->runtime, failure);
  return runtime != NULL && runtime->finish(runtime, stream, failure);
}

int FletchingStreamSynchronize(struct FletchingStream stream, struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  (void)finish_stream(&stream, &failure);
  return report(&failure, message);
}

static bool is_same_stream(const struct FletchingStream* a, const struct FletchingStream* b) {
  return a->handle == b->handle && a->device_id == b->device_id && a->context == b->context;
}

int FletchingStreamWaitFor(struct FletchingStream stream, struct FletchingStream other,
                           struct FletchingMessage* message) {
  struct failure failure;
  struct FletchingRecordedEvent recorded;
  no_failure(&failure);
  const struct runtime* runtime = recorder_of(other.runtime, &failure);
  if (runtime != NULL && stream.runtime != other.runtime) {
    const struct runtime* own = numbered_runtime(stream.runtime);
    (void)fail(&failure, EINVAL, "expected two streams of one runtime, got %s and %s",
               own != NULL && own->name != NULL ? own->name : "none", runtime->name);
  } else if (runtime != NULL && !is_same_stream(&stream, &other) &&
             record_event(&recorded, runtime, &other, FLETCHING_CAPTURE_REFUSE, &failure)) {
    const struct FletchingEvent event = {.sync_event = &recorded.event,
                                         .device_id = other.device_id};
    (void)runtime->wait_on(runtime, &event, recorded.event, &stream, FLETCHING_CAPTURE_REFUSE,
                           &failure);
    // The enqueued wait does not need the event.
    end_recorded(&recorded);
  }
  return report(&failure, message);
}

#endif  // FLETCHING_CORE_STREAMS_H

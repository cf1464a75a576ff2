// Implements gate.h.
#include "gate.h"

#include "arguments.hpp"
#include "async.hpp"
#include "export.hpp"
#include "reader.hpp"

using namespace fletching::producer;

struct FletchingProducerGate {
  std::shared_ptr<Filler> filler;
};

struct FletchingProducerQueue {
  Reader reader;
  FletchingMessage why_no_handle{};  // empty: there is a handle
};

int FletchingProducerBackendPresence(const char* backend, int32_t* presence,
                                     struct FletchingMessage* description) {
  std::string text;
  const int code = guarded(description, [&] {
    require_pointer("presence", presence);
    const Device device = any_backend_by_name(backend).find();
    *presence = static_cast<int32_t>(device.presence);
    text = device.text;
  });
  if (code == 0) write_message(description, text);
  return code;
}

int FletchingProducerGateCreate(const char* backend, struct FletchingProducerGate** gate,
                                struct FletchingMessage* message) {
  if (gate != nullptr) *gate = nullptr;
  return guarded(message, [&] {
    require_pointer("gate", gate);
    auto made = std::make_unique<FletchingProducerGate>();
    made->filler = std::make_shared<Filler>(backend_by_name(backend), true);
    *gate = made.release();
  });
}

int FletchingProducerGateOpen(struct FletchingProducerGate* gate,
                              struct FletchingMessage* message) {
  return guarded(message, [&] {
    require_pointer("gate", gate);
    gate->filler->open();
  });
}

int FletchingProducerGateWatch(struct FletchingProducerGate* gate,
                               struct FletchingMessage* message) {
  return guarded(message, [&] {
    require_pointer("gate", gate);
    gate->filler->watch();
  });
}

int FletchingProducerGateAccesses(struct FletchingProducerGate* gate, int32_t* before,
                                  int32_t* after, struct FletchingMessage* message) {
  return guarded(message, [&] {
    require_pointer("gate", gate);
    require_pointer("before", before);
    require_pointer("after", after);
    const Accesses accesses = gate->filler->accesses();
    *before = accesses.before;
    *after = accesses.after;
  });
}

int FletchingProducerGateDestroy(struct FletchingProducerGate* gate,
                                 struct FletchingMessage* message) {
  const std::unique_ptr<FletchingProducerGate> owned(gate);
  return guarded(message, [&] {
    if (gate != nullptr) gate->filler->close();
  });
}

int FletchingProducerExportArrayBehind(struct FletchingProducerGate* gate, const char* case_name,
                                       struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                                       struct FletchingMessage* message) {
  zero(schema);
  zero(array);
  return guarded(message, [&] {
    require_pointer("gate", gate);
    require_pointer("schema", schema);
    require_pointer("array", array);
    export_case(gate->filler, case_by_name(case_name), schema, array);
  });
}

int FletchingProducerExportStreamBehind(struct FletchingProducerGate* gate, const char* case_name,
                                        int64_t batches, int64_t fail_at,
                                        struct ArrowDeviceArrayStream* stream,
                                        struct FletchingMessage* message) {
  zero(stream);
  return guarded(message, [&] {
    require_pointer("gate", gate);
    require_pointer("stream", stream);
    check_batches(batches, fail_at);
    export_stream(gate->filler, case_by_name(case_name), batches, fail_at, stream);
  });
}

int FletchingProducerRunAsync(const char* backend, struct FletchingProducerGate* gate,
                              const char* case_name, int64_t batches, int64_t fail_at,
                              struct ArrowAsyncDeviceStreamHandler* handler,
                              struct FletchingMessage* message) {
  return guarded(message, [&] {
    Backend& device = backend_by_name(backend);
    check_batches(batches, fail_at);
    if (gate != nullptr && &gate->filler->backend() != &device) {
      fail(EINVAL, std::string("gate: wrong backend: expected ") + device.name() + ", got " +
                       gate->filler->backend().name());
    }
    run_async(gate != nullptr ? gate->filler : Filler::ungated(device), case_by_name(case_name),
              batches, fail_at, handler);
  });
}

void FletchingProducerAwaitAsync(void) { await_async(); }

int FletchingProducerQueueCreate(const char* backend, struct FletchingProducerQueue** queue,
                                 struct FletchingMessage* message) {
  if (queue != nullptr) *queue = nullptr;
  return guarded(message, [&] {
    require_pointer("queue", queue);
    *queue = new FletchingProducerQueue{Reader(backend_by_name(backend)), {}};
  });
}

void* FletchingProducerQueueHandle(struct FletchingProducerQueue* queue) {
  void* handle = nullptr;
  if (queue == nullptr) return nullptr;
  guarded(&queue->why_no_handle, [&] { handle = queue->reader.handle(); });
  return handle;
}

int FletchingProducerQueueRead(struct FletchingProducerQueue* queue, const char* case_name,
                               const struct ArrowDeviceArray* array,
                               struct FletchingMessage* message) {
  return guarded(message, [&] {
    require_pointer("queue", queue);
    require_pointer("array", array);
    if (queue->why_no_handle.text[0] != '\0') fail(EIO, queue->why_no_handle.text);
    queue->reader.read(case_by_name(case_name), *array);
  });
}

int FletchingProducerQueueIsIdle(struct FletchingProducerQueue* queue, int32_t* idle,
                                 struct FletchingMessage* message) {
  return guarded(message, [&] {
    require_pointer("queue", queue);
    require_pointer("idle", idle);
    *idle = queue->reader.is_idle() ? 1 : 0;
  });
}

int FletchingProducerQueueVerify(struct FletchingProducerQueue* queue, int32_t expected,
                                 int64_t* asserted, struct FletchingMessage* message) {
  if (asserted != nullptr) *asserted = 0;
  return guarded(message, [&] {
    require_pointer("queue", queue);
    if (expected != FLETCHING_PRODUCER_OLD && expected != FLETCHING_PRODUCER_NEW) {
      fail(EINVAL,
           "expected: out of range: expected FLETCHING_PRODUCER_OLD or FLETCHING_PRODUCER_NEW, "
           "got " +
               std::to_string(expected));
    }
    const int64_t compared = queue->reader.verify(expected == FLETCHING_PRODUCER_OLD);
    if (asserted != nullptr) *asserted = compared;
  });
}

int FletchingProducerQueueDestroy(struct FletchingProducerQueue* queue,
                                  struct FletchingMessage* message) {
  const std::unique_ptr<FletchingProducerQueue> owned(queue);
  return guarded(message, [&] {
    if (queue != nullptr) queue->reader.finish();
  });
}

// The C functions of gate.h.
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
  FletchingMessage why_no_handle{};  // empty: there was one
};

int FletchingProducerBackendPresence(const char* backend, int32_t* presence,
                                     struct FletchingMessage* description) {
  std::string text;
  const int code = Guarded(description, [&] {
    RequirePointer("presence", presence);
    const Device device = AnyBackendByName(backend).Find();
    *presence = static_cast<int32_t>(device.presence);
    text = device.text;
  });
  if (code == 0) WriteMessage(description, text);
  return code;
}

int FletchingProducerGateCreate(const char* backend, struct FletchingProducerGate** gate,
                                struct FletchingMessage* message) {
  if (gate != nullptr) *gate = nullptr;
  return Guarded(message, [&] {
    RequirePointer("gate", gate);
    auto made = std::make_unique<FletchingProducerGate>();
    made->filler = std::make_shared<Filler>(BackendByName(backend), true);
    *gate = made.release();
  });
}

int FletchingProducerGateOpen(struct FletchingProducerGate* gate,
                              struct FletchingMessage* message) {
  return Guarded(message, [&] {
    RequirePointer("gate", gate);
    gate->filler->Open();
  });
}

int FletchingProducerGateDestroy(struct FletchingProducerGate* gate,
                                 struct FletchingMessage* message) {
  const std::unique_ptr<FletchingProducerGate> owned(gate);
  return Guarded(message, [&] {
    if (gate != nullptr) gate->filler->Close();
  });
}

int FletchingProducerExportArrayBehind(struct FletchingProducerGate* gate, const char* case_name,
                                       struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                                       struct FletchingMessage* message) {
  Zero(schema);
  Zero(array);
  return Guarded(message, [&] {
    RequirePointer("gate", gate);
    RequirePointer("schema", schema);
    RequirePointer("array", array);
    Export(gate->filler, CaseByName(case_name), schema, array);
  });
}

int FletchingProducerExportStreamBehind(struct FletchingProducerGate* gate, const char* case_name,
                                        int64_t batches, int64_t fail_at,
                                        struct ArrowDeviceArrayStream* stream,
                                        struct FletchingMessage* message) {
  Zero(stream);
  return Guarded(message, [&] {
    RequirePointer("gate", gate);
    RequirePointer("stream", stream);
    CheckBatches(batches, fail_at);
    ExportStream(gate->filler, CaseByName(case_name), batches, fail_at, stream);
  });
}

int FletchingProducerRunAsync(const char* backend, struct FletchingProducerGate* gate,
                              const char* case_name, int64_t batches, int64_t fail_at,
                              struct ArrowAsyncDeviceStreamHandler* handler,
                              struct FletchingMessage* message) {
  return Guarded(message, [&] {
    Backend& device = BackendByName(backend);
    CheckBatches(batches, fail_at);
    if (gate != nullptr && &gate->filler->backend() != &device) {
      Fail(EINVAL, std::string("the gate is one of ") + gate->filler->backend().Name() +
                       ", and the backend is " + device.Name());
    }
    RunAsync(gate != nullptr ? gate->filler : Filler::Ungated(device), CaseByName(case_name),
             batches, fail_at, handler);
  });
}

void FletchingProducerAwaitAsync(void) { AwaitAsync(); }

int FletchingProducerQueueCreate(const char* backend, struct FletchingProducerQueue** queue,
                                 struct FletchingMessage* message) {
  if (queue != nullptr) *queue = nullptr;
  return Guarded(message, [&] {
    RequirePointer("queue", queue);
    *queue = new FletchingProducerQueue{Reader(BackendByName(backend)), {}};
  });
}

void* FletchingProducerQueueHandle(struct FletchingProducerQueue* queue) {
  void* handle = nullptr;
  if (queue == nullptr) return nullptr;
  Guarded(&queue->why_no_handle, [&] { handle = queue->reader.Handle(); });
  return handle;
}

int FletchingProducerQueueRead(struct FletchingProducerQueue* queue, const char* case_name,
                               const struct ArrowDeviceArray* array,
                               struct FletchingMessage* message) {
  return Guarded(message, [&] {
    RequirePointer("queue", queue);
    RequirePointer("array", array);
    if (queue->why_no_handle.text[0] != '\0') Fail(EIO, queue->why_no_handle.text);
    queue->reader.Read(CaseByName(case_name), *array);
  });
}

int FletchingProducerQueueIsIdle(struct FletchingProducerQueue* queue, int32_t* idle,
                                 struct FletchingMessage* message) {
  return Guarded(message, [&] {
    RequirePointer("queue", queue);
    RequirePointer("idle", idle);
    *idle = queue->reader.IsIdle() ? 1 : 0;
  });
}

int FletchingProducerQueueVerify(struct FletchingProducerQueue* queue, int32_t expected,
                                 int64_t* asserted, struct FletchingMessage* message) {
  if (asserted != nullptr) *asserted = 0;
  return Guarded(message, [&] {
    RequirePointer("queue", queue);
    if (expected != FLETCHING_PRODUCER_OLD && expected != FLETCHING_PRODUCER_NEW) {
      Fail(EINVAL, "expected is " + std::to_string(expected) +
                       ", and has to be FLETCHING_PRODUCER_OLD or FLETCHING_PRODUCER_NEW");
    }
    const int64_t compared = queue->reader.Verify(expected == FLETCHING_PRODUCER_OLD);
    if (asserted != nullptr) *asserted = compared;
  });
}

int FletchingProducerQueueDestroy(struct FletchingProducerQueue* queue,
                                  struct FletchingMessage* message) {
  const std::unique_ptr<FletchingProducerQueue> owned(queue);
  return Guarded(message, [&] {
    if (queue != nullptr) queue->reader.Finish();
  });
}

// RAII wrappers of the gate and the queue of gate.h. Errors are exceptions.
#ifndef FLETCHING_TESTS_GPU_GATED_HPP
#define FLETCHING_TESTS_GPU_GATED_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "device.hpp"
#include "error.hpp"
#include "gate.h"

namespace fletching::gpu {

/// Throws Error unless `code` is 0.
inline void require_call(const char* what, int code, const FletchingMessage& message) {
  if (code != 0) fail(code, std::string(what) + ": " + message.text);
}

/// Exports behind a shut gate. The gate is opened at the latest in the destructor, after the
/// destruction of the exported structs.
class GatedProducer {
 public:
  explicit GatedProducer(const Device& device) {
    FletchingProducerGate* gate = nullptr;
    FletchingMessage message{};
    require_call("gate", FletchingProducerGateCreate(device.backend(), &gate, &message), message);
    gate_.reset(gate);
  }

  [[nodiscard]] FletchingProducerGate* get() const { return gate_.get(); }

  void export_array(const char* name, ArrowSchema* schema, ArrowDeviceArray* array) {
    FletchingMessage message{};
    const int code = FletchingProducerExportArrayBehind(gate_.get(), name, schema, array, &message);
    require_call("export", code, message);
  }
  /// `fail_at`: the batch before which get_next fails, or -1.
  void export_stream(const char* name, std::int64_t batches, std::int64_t fail_at,
                     ArrowDeviceArrayStream* stream) {
    FletchingMessage message{};
    const int code =
        FletchingProducerExportStreamBehind(gate_.get(), name, batches, fail_at, stream, &message);
    require_call("export", code, message);
  }
  void open() {
    FletchingMessage message{};
    require_call("opening", FletchingProducerGateOpen(gate_.get(), &message), message);
  }

 private:
  struct Destroy {
    void operator()(FletchingProducerGate* gate) const {
      FletchingProducerGateDestroy(gate, nullptr);
    }
  };

  std::unique_ptr<FletchingProducerGate, Destroy> gate_;
};

/// Opens a gate in its destructor. Declare it after a queue: the queue's destructor waits for its
/// work, which would never complete behind a shut gate.
class ScopedGateOpener {
 public:
  explicit ScopedGateOpener(const GatedProducer& gate) : gate_(gate.get()) {}
  ScopedGateOpener(const ScopedGateOpener&) = delete;
  ScopedGateOpener& operator=(const ScopedGateOpener&) = delete;
  ~ScopedGateOpener() { FletchingProducerGateOpen(gate_, nullptr); }

 private:
  FletchingProducerGate* gate_;
};

/// A consumer's queue. The arrays that it reads must outlive it.
class Queue {
 public:
  explicit Queue(const Device& device) {
    FletchingProducerQueue* queue = nullptr;
    FletchingMessage message{};
    require_call("queue", FletchingProducerQueueCreate(device.backend(), &queue, &message),
                 message);
    queue_.reset(queue);
  }

  /// Valid until the next call.
  [[nodiscard]] void* handle() const { return FletchingProducerQueueHandle(queue_.get()); }

  void read(const char* name, const DeviceArray& array) {
    FletchingMessage message{};
    require_call("read", FletchingProducerQueueRead(queue_.get(), name, array.get(), &message),
                 message);
  }
  [[nodiscard]] bool is_idle() {
    std::int32_t idle = 0;
    FletchingMessage message{};
    require_call("idle", FletchingProducerQueueIsIdle(queue_.get(), &idle, &message), message);
    return idle != 0;
  }
  /// `expected`: FLETCHING_PRODUCER_OLD or _NEW. Returns the number of compared bytes.
  std::int64_t verify(std::int32_t expected) {
    std::int64_t compared = 0;
    FletchingMessage message{};
    require_call("what the queue read",
                 FletchingProducerQueueVerify(queue_.get(), expected, &compared, &message),
                 message);
    return compared;
  }

 private:
  struct Destroy {
    void operator()(FletchingProducerQueue* queue) const {
      FletchingProducerQueueDestroy(queue, nullptr);
    }
  };

  std::unique_ptr<FletchingProducerQueue, Destroy> queue_;
};

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_GATED_HPP

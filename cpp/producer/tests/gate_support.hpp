// Helpers for the gate tests: wrappers of its C functions without error arguments, and an export
// behind a shut gate.
#ifndef FLETCHING_PRODUCER_TESTS_GATE_SUPPORT_HPP
#define FLETCHING_PRODUCER_TESTS_GATE_SUPPORT_HPP

#include "gate.h"

#include <memory>
#include <string>

#include "consumers.hpp"
#include "support.hpp"

struct GateDeleter {
  void operator()(FletchingProducerGate* gate) const {
    FletchingMessage message;
    EXPECT_EQ(FletchingProducerGateDestroy(gate, &message), 0) << message.text;
  }
};
using OwnedGate = std::unique_ptr<FletchingProducerGate, GateDeleter>;

struct QueueDeleter {
  void operator()(FletchingProducerQueue* queue) const {
    FletchingMessage message;
    EXPECT_EQ(FletchingProducerQueueDestroy(queue, &message), 0) << message.text;
  }
};
using OwnedQueue = std::unique_ptr<FletchingProducerQueue, QueueDeleter>;

inline OwnedGate new_gate(const std::string& backend) {
  FletchingProducerGate* gate = nullptr;
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerGateCreate(backend.c_str(), &gate, &message), 0) << message.text;
  return OwnedGate(gate);
}

inline OwnedQueue new_queue(const std::string& backend) {
  FletchingProducerQueue* queue = nullptr;
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerQueueCreate(backend.c_str(), &queue, &message), 0) << message.text;
  return OwnedQueue(queue);
}

inline void open(const OwnedGate& gate) {
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerGateOpen(gate.get(), &message), 0) << message.text;
}

inline bool is_idle(const OwnedQueue& queue) {
  int32_t idle = -1;
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerQueueIsIdle(queue.get(), &idle, &message), 0) << message.text;
  return idle == 1;
}

inline void read(const OwnedQueue& queue, const std::string& name, const ArrowDeviceArray& array) {
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerQueueRead(queue.get(), name.c_str(), &array, &message), 0)
      << message.text;
}

// Returns the number of bytes that match `expected`.
inline int64_t verify(const OwnedQueue& queue, int32_t expected) {
  int64_t asserted = -1;
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerQueueVerify(queue.get(), expected, &asserted, &message), 0)
      << message.text;
  return asserted;
}

// The reason why the device is absent; empty if it is present.
inline std::string why_absent(const std::string& backend) {
  int32_t presence = -1;
  FletchingMessage description;
  EXPECT_EQ(FletchingProducerBackendPresence(backend.c_str(), &presence, &description), 0)
      << description.text;
  return presence == FLETCHING_PRODUCER_ABSENT ? description.text : "";
}

class GateTest : public ProducerTest {
 protected:
  void use(const std::string& backend) {
    const std::string why = why_absent(backend);
    if (!why.empty()) GTEST_SKIP() << backend << " is absent: " << why;
    backend_ = backend;
    for (const Consumer& consumer : consumers()) {
      if (consumer.backend == backend) consumer_ = consumer;
    }
    if (consumer_.backend != backend) {
      GTEST_SKIP() << backend << ": the vendor's header was not found, so there is no consumer";
    }
    gate_ = new_gate(backend);
  }
  void export_array(const std::string& name) {
    FletchingMessage message;
    ASSERT_EQ(
        FletchingProducerExportArrayBehind(gate_.get(), name.c_str(), &schema_, &array_, &message),
        0)
        << message.text;
    ASSERT_NE(array_.sync_event, nullptr);
  }
  void wait_on(const ArrowDeviceArray& array, const OwnedQueue& queue) const {
    consumer_.wait_on(array.sync_event, FletchingProducerQueueHandle(queue.get()));
  }
  bool is_ready(const ArrowDeviceArray& array) const { return consumer_.ready(array.sync_event); }
  void TearDown() override {
    if (array_.array.release != nullptr) release(array_.array);
    if (schema_.release != nullptr) release(schema_);
    gate_.reset();
    ProducerTest::TearDown();
  }

  std::string backend_;
  Consumer consumer_;
  OwnedGate gate_;
  ArrowSchema schema_{};
  ArrowDeviceArray array_{};
};

#endif  // FLETCHING_PRODUCER_TESTS_GATE_SUPPORT_HPP

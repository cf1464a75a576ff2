// The gate, with the consumer's side in raw C calls: what a language's binding does is done here by
// hand.
#include "gate.h"

#include <memory>
#include <regex>
#include "ext_dev.h"

#include "support.hpp"

namespace {

struct GateDeleter {
  void operator()(FletchingProducerGate* gate) const {
    EXPECT_EQ(FletchingProducerGateDestroy(gate, nullptr), 0);
  }
};
using OwnedGate = std::unique_ptr<FletchingProducerGate, GateDeleter>;

struct QueueDeleter {
  void operator()(FletchingProducerQueue* queue) const {
    EXPECT_EQ(FletchingProducerQueueDestroy(queue, nullptr), 0);
  }
};
using OwnedQueue = std::unique_ptr<FletchingProducerQueue, QueueDeleter>;

OwnedGate NewGate() {
  FletchingProducerGate* gate = nullptr;
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerGateCreate("ext_dev", &gate, &message), 0) << message.text;
  return OwnedGate(gate);
}

OwnedQueue NewQueue() {
  FletchingProducerQueue* queue = nullptr;
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerQueueCreate("ext_dev", &queue, &message), 0) << message.text;
  return OwnedQueue(queue);
}

bool IsIdle(const OwnedQueue& queue) {
  int32_t idle = -1;
  EXPECT_EQ(FletchingProducerQueueIsIdle(queue.get(), &idle, nullptr), 0);
  return idle == 1;
}

// Enqueues the read of an array.
void Read(const OwnedQueue& queue, const std::string& name, const ArrowDeviceArray& array) {
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerQueueRead(queue.get(), name.c_str(), &array, &message), 0)
      << message.text;
}

// How many bytes are as expected.
int64_t Verify(const OwnedQueue& queue, int32_t expected) {
  int64_t asserted = -1;
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerQueueVerify(queue.get(), expected, &asserted, &message), 0)
      << message.text;
  return asserted;
}

const FletchingExtDevEvent* EventOf(const ArrowDeviceArray& array) {
  return static_cast<const FletchingExtDevEvent*>(array.sync_event);
}

void WaitOn(const ArrowDeviceArray& array, const OwnedQueue& queue) {
  const FletchingExtDevEvent* event = EventOf(array);
  void* handle = FletchingProducerQueueHandle(queue.get());
  EXPECT_EQ(event->wait_on(event, static_cast<FletchingExtDevQueue*>(handle)), 0);
}

bool IsReady(const ArrowDeviceArray& array) { return EventOf(array)->query(EventOf(array)) == 1; }

class GateTest : public ProducerTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    ProducerTest::SetUp();
    FletchingMessage message;
    ASSERT_EQ(FletchingProducerExportArrayBehind(gate_.get(), GetParam().c_str(), &schema_, &array_,
                                                 &message),
              0)
        << message.text;
    ASSERT_NE(array_.sync_event, nullptr);
  }
  void TearDown() override {
    if (array_.array.release != nullptr) Release(array_.array);
    if (schema_.release != nullptr) Release(schema_);
    gate_.reset();
    ProducerTest::TearDown();
  }

  OwnedGate gate_ = NewGate();
  ArrowSchema schema_{};
  ArrowDeviceArray array_{};
};

TEST_P(GateTest, HoldsBackTheDataUntilItIsOpen) {
  const OwnedQueue careless = NewQueue();
  const OwnedQueue careful = NewQueue();

  EXPECT_FALSE(IsReady(array_));
  Read(careless, GetParam(), array_);
  const int64_t old_bytes = Verify(careless, FLETCHING_PRODUCER_OLD);
  WaitOn(array_, careful);
  Read(careful, GetParam(), array_);
  EXPECT_FALSE(IsIdle(careful));

  EXPECT_EQ(FletchingProducerGateOpen(gate_.get(), nullptr), 0);
  EXPECT_EQ(Verify(careful, FLETCHING_PRODUCER_NEW), old_bytes);
  EventOf(array_)->synchronize(EventOf(array_));
  EXPECT_TRUE(IsReady(array_));
  EXPECT_TRUE(IsIdle(careful));

  FletchingMessage message;
  EXPECT_EQ(
      FletchingProducerVerifyArray("ext_dev", GetParam().c_str(), &schema_, &array_, &message), 0)
      << message.text;
}

// The kernel has yet to write there.
TEST_P(GateTest, KeepsTheMemoryOfWhatIsReleasedWhileShut) {
  const int64_t alive = Counters().live_allocations;
  Release(array_.array);
  Release(schema_);
  EXPECT_EQ(Counters().live_allocations, alive);
  gate_.reset();
  EXPECT_EQ(Counters().live_allocations, 0);
}

// Every case but those without a byte on the device, which have no old data to see.
std::vector<std::string> CasesWithData() {
  std::vector<std::string> names = CaseNames();
  std::erase_if(names, [](const std::string& name) {
    const std::string text = FletchingProducerDescribe(name.c_str());
    static const std::regex data("buffer \\d+ [1-9]");
    return !std::regex_search(text, data);
  });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, GateTest, testing::ValuesIn(CasesWithData()),
                         [](const auto& info) { return info.param; });

class GateStreamTest : public ProducerTest {};

TEST_F(GateStreamTest, EveryBatchHasItsEvent) {
  OwnedGate gate = NewGate();
  const OwnedQueue queue = NewQueue();
  ArrowDeviceArrayStream stream;
  FletchingMessage message;
  ASSERT_EQ(
      FletchingProducerExportStreamBehind(gate.get(), "record_batch", 3, -1, &stream, &message), 0)
      << message.text;
  EXPECT_EQ(stream.device_type, ARROW_DEVICE_EXT_DEV);
  std::vector<ArrowDeviceArray> batches(3);
  for (ArrowDeviceArray& batch : batches) {
    ASSERT_EQ(stream.get_next(&stream, &batch), 0);
    EXPECT_FALSE(IsReady(batch));
    WaitOn(batch, queue);
    Read(queue, "record_batch", batch);
  }
  stream.release(&stream);
  EXPECT_FALSE(IsIdle(queue));
  EXPECT_EQ(FletchingProducerGateOpen(gate.get(), nullptr), 0);
  EXPECT_GT(Verify(queue, FLETCHING_PRODUCER_NEW), 0);
  for (ArrowDeviceArray& batch : batches) Release(batch.array);
  gate.reset();
}

// The read of the negative control is judged: a reader that sees the wrong data is told so.
TEST_F(GateStreamTest, VerifyNoticesTheOtherData) {
  OwnedGate gate = NewGate();
  const OwnedQueue queue = NewQueue();
  ArrowSchema schema;
  ArrowDeviceArray array;
  ASSERT_EQ(FletchingProducerExportArrayBehind(gate.get(), "int32", &schema, &array, nullptr), 0);
  FletchingMessage message;
  Read(queue, "int32", array);
  EXPECT_EQ(FletchingProducerQueueVerify(queue.get(), FLETCHING_PRODUCER_NEW, nullptr, &message),
            EBADMSG);
  EXPECT_STREQ(message.text, "case int32: / buffer 1: byte 0 is old, expected new");
  EXPECT_EQ(FletchingProducerGateOpen(gate.get(), nullptr), 0);
  WaitOn(array, queue);
  Read(queue, "int32", array);
  EXPECT_EQ(FletchingProducerQueueVerify(queue.get(), FLETCHING_PRODUCER_OLD, nullptr, &message),
            EBADMSG);
  EXPECT_STREQ(message.text, "case int32: / buffer 1: byte 0 is new, expected old");
  Release(array.array);
  Release(schema);
  gate.reset();
}

TEST_F(GateStreamTest, RefusesBadArguments) {
  FletchingMessage message;
  FletchingProducerGate* gate = nullptr;
  EXPECT_EQ(FletchingProducerGateCreate("cpu", &gate, &message), ENOTSUP);
  EXPECT_STREQ(message.text, "backend cpu has no queue: its data is there when the struct is");
  EXPECT_EQ(gate, nullptr);
  EXPECT_EQ(FletchingProducerGateCreate("ext_dev", nullptr, &message), EINVAL);
  EXPECT_STREQ(message.text, "gate is NULL");
  EXPECT_EQ(FletchingProducerGateOpen(nullptr, &message), EINVAL);
  EXPECT_EQ(FletchingProducerGateDestroy(nullptr, &message), 0);
  EXPECT_EQ(FletchingProducerQueueDestroy(nullptr, &message), 0);
  EXPECT_EQ(FletchingProducerQueueHandle(nullptr), nullptr);

  const OwnedQueue queue = NewQueue();
  EXPECT_EQ(FletchingProducerQueueVerify(queue.get(), 2, nullptr, &message), EINVAL);
  EXPECT_STREQ(message.text,
               "expected is 2, and has to be FLETCHING_PRODUCER_OLD or FLETCHING_PRODUCER_NEW");
  Exported foreign("int32");
  EXPECT_EQ(FletchingProducerQueueRead(queue.get(), "int64", &foreign.array, &message), EBADMSG);
  EXPECT_STREQ(message.text, "case int64: / buffer 1 is not the memory that was exported");
}

TEST_F(GateStreamTest, SaysWhatIsThere) {
  int32_t presence = -1;
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerBackendPresence("ext_dev", &presence, &message), 0);
  EXPECT_EQ(presence, FLETCHING_PRODUCER_REAL);
  EXPECT_STREQ(message.text, "threads of this process");
  EXPECT_EQ(FletchingProducerBackendPresence("npu", &presence, &message), EINVAL);
}

}  // namespace

// The gate, on every backend with queues.
#include <array>
#include <cstdint>
#include <regex>
#include <tuple>

#include "catalogue_text.hpp"
#include "gate_support.hpp"

namespace {

using fletching::producer::case_text;

// --- Every case

// All cases with bytes on the device; the others have no old data.
std::vector<std::string> cases_with_data() {
  std::vector<std::string> names = case_names();
  std::erase_if(names, [](const std::string& name) {
    static const std::regex data("buffer \\d+ [1-9]");
    return !std::regex_search(case_text(name), data);
  });
  return names;
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Consumer& consumer : consumers()) names.push_back(consumer.backend);
  return names;
}

class GateCaseTest : public GateTest,
                     public testing::WithParamInterface<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    GateTest::SetUp();
    use(std::get<0>(GetParam()));
    if (!IsSkipped()) export_array(name_);
  }

  std::string name_ = std::get<1>(GetParam());
};

TEST_P(GateCaseTest, DelaysDataUntilOpen) {
  const OwnedQueue careless = new_queue(backend_);
  const OwnedQueue careful = new_queue(backend_);

  EXPECT_FALSE(is_ready(array_));
  read(careless, name_, array_);
  const int64_t old_bytes = verify(careless, FLETCHING_PRODUCER_OLD);
  EXPECT_GT(old_bytes, 0);
  wait_on(array_, careful);
  read(careful, name_, array_);
  EXPECT_FALSE(is_idle(careful));

  open(gate_);
  EXPECT_EQ(verify(careful, FLETCHING_PRODUCER_NEW), old_bytes);
  consumer_.synchronize(array_.sync_event);
  EXPECT_TRUE(is_ready(array_));
  EXPECT_TRUE(is_idle(careful));

  FletchingMessage message;
  EXPECT_EQ(
      FletchingProducerVerifyArray(backend_.c_str(), name_.c_str(), &schema_, &array_, &message), 0)
      << message.text;
}

INSTANTIATE_TEST_SUITE_P(All, GateCaseTest,
                         testing::Combine(testing::ValuesIn(backend_names()),
                                          testing::ValuesIn(cases_with_data())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param);
                         });

// --- Every backend

class GateBackendTest : public GateTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    GateTest::SetUp();
    use(GetParam());
  }
};

// The pending kernel still writes to that memory.
TEST_P(GateBackendTest, ShutGateKeepsReleasedMemory) {
  export_array("record_batch");
  const int64_t alive = counters_now().live_allocations;
  release(array_.array);
  release(schema_);
  EXPECT_EQ(counters_now().live_allocations, alive);
  gate_.reset();
  EXPECT_EQ(counters_now().live_allocations, 0);
}

// The event belongs to all structs exported with it.
TEST_P(GateBackendTest, EventOutlivesParentOfMovedChild) {
  export_array("record_batch");
  ArrowArray child = move(*array_.array.children[0]);
  void* event = array_.sync_event;
  release(array_.array);
  EXPECT_FALSE(consumer_.ready(event));
  open(gate_);
  consumer_.synchronize(event);
  EXPECT_TRUE(consumer_.ready(event));
  release(child);
}

TEST_P(GateBackendTest, EachBatchHasEvent) {
  const OwnedQueue queue = new_queue(backend_);
  ArrowDeviceArrayStream stream;
  FletchingMessage message;
  ASSERT_EQ(
      FletchingProducerExportStreamBehind(gate_.get(), "record_batch", 3, -1, &stream, &message), 0)
      << message.text;
  std::vector<ArrowDeviceArray> batches(3);
  for (ArrowDeviceArray& batch : batches) {
    ASSERT_EQ(stream.get_next(&stream, &batch), 0) << stream.get_last_error(&stream);
    EXPECT_EQ(batch.device_type, stream.device_type);
    EXPECT_FALSE(is_ready(batch));
    wait_on(batch, queue);
    read(queue, "record_batch", batch);
  }
  stream.release(&stream);
  EXPECT_FALSE(is_idle(queue));
  open(gate_);
  EXPECT_GT(verify(queue, FLETCHING_PRODUCER_NEW), 0);
  for (ArrowDeviceArray& batch : batches) release(batch.array);
}

// The first gate to be shut reserves memory for all backends.
TEST_P(GateBackendTest, OtherBackendsHaveGatesMeanwhile) {
  export_array("record_batch");
  for (const std::string& other : backend_names()) {
    if (other == backend_ || !why_absent(other).empty()) continue;
    const OwnedGate gate = new_gate(other);
    ArrowSchema schema;
    ArrowDeviceArray array;
    FletchingMessage message;
    ASSERT_EQ(
        FletchingProducerExportArrayBehind(gate.get(), "record_batch", &schema, &array, &message),
        0)
        << other << ": " << message.text;
    open(gate);
    release(array.array);
    release(schema);
  }
}

// The gates of a vendor share the words that streams wait on.
TEST_P(GateBackendTest, RejectsFifthShutGatePerVendor) {
  if (!backend_.starts_with("cuda") && !backend_.starts_with("rocm")) {
    GTEST_SKIP() << backend_ << ": no limit";
  }
  const std::array<OwnedGate, 3> gates{new_gate(backend_), new_gate(backend_), new_gate(backend_)};
  FletchingProducerGate* fifth = nullptr;
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerGateCreate(backend_.c_str(), &fifth, &message), ENOMEM);
  EXPECT_STREQ(message.text, "gate: too many are shut: expected at most 4");
  EXPECT_EQ(fifth, nullptr);
}

// Without a gate the work finishes soon, and not before its event reports that.
TEST_P(GateBackendTest, ExportWithoutGateHasEvent) {
  FletchingMessage message;
  ASSERT_EQ(
      FletchingProducerExportArray(backend_.c_str(), "record_batch", &schema_, &array_, &message),
      0)
      << message.text;
  const OwnedQueue queue = new_queue(backend_);
  wait_on(array_, queue);
  read(queue, "record_batch", array_);
  EXPECT_GT(verify(queue, FLETCHING_PRODUCER_NEW), 0);
}

// A reader that gets wrong data returns an error.
TEST_P(GateBackendTest, VerifyRejectsOtherData) {
  export_array("int32");
  const OwnedQueue queue = new_queue(backend_);
  FletchingMessage message;
  read(queue, "int32", array_);
  EXPECT_EQ(FletchingProducerQueueVerify(queue.get(), FLETCHING_PRODUCER_NEW, nullptr, &message),
            EBADMSG);
  EXPECT_STREQ(message.text, "case int32: / buffer 1: byte 0 is old, expected new");
  open(gate_);
  wait_on(array_, queue);
  read(queue, "int32", array_);
  EXPECT_EQ(FletchingProducerQueueVerify(queue.get(), FLETCHING_PRODUCER_OLD, nullptr, &message),
            EBADMSG);
  EXPECT_STREQ(message.text, "case int32: / buffer 1: byte 0 is new, expected old");
}

// Watched data is there from the start, and a read counts once, before or after.
TEST_P(GateBackendTest, WatchCountsReadsBeforeAndAfterOpening) {
  FletchingMessage message;
  int32_t before = -1;
  int32_t after = -1;
  EXPECT_EQ(FletchingProducerGateAccesses(gate_.get(), &before, &after, &message), ENOENT);
  const int code = FletchingProducerGateWatch(gate_.get(), &message);
  if (backend_ == "vulkan" || backend_ == "ext_dev") {
    EXPECT_EQ(code, ENOTSUP);
    EXPECT_EQ(std::string(message.text),
              backend_ + ": the device's reads of its memory cannot be watched");
    return;
  }
  ASSERT_EQ(code, 0) << message.text;
  export_array("int32");
  ArrowSchema schema;
  ArrowDeviceArray late;
  ASSERT_EQ(FletchingProducerExportArrayBehind(gate_.get(), "int32", &schema, &late, &message), 0);
  const OwnedQueue queue = new_queue(backend_);
  for (int i = 0; i < 2; ++i) read(queue, "int32", array_);
  EXPECT_GT(verify(queue, FLETCHING_PRODUCER_NEW), 0);
  wait_on(late, queue);
  read(queue, "int32", late);
  open(gate_);
  EXPECT_GT(verify(queue, FLETCHING_PRODUCER_NEW), 0);
  open(gate_);
  ASSERT_EQ(FletchingProducerGateAccesses(gate_.get(), &before, &after, &message), 0);
  EXPECT_EQ(before, 1);
  EXPECT_EQ(after, 1);
  release(late.array);
  release(schema);
}

INSTANTIATE_TEST_SUITE_P(All, GateBackendTest, testing::ValuesIn(backend_names()),
                         [](const auto& info) { return info.param; });

// --- Arguments

class GateArgumentTest : public ProducerTest {};

TEST_F(GateArgumentTest, ErrorsNameBadArguments) {
  FletchingMessage message;
  FletchingProducerGate* gate = nullptr;
  EXPECT_EQ(FletchingProducerGateCreate("cpu", &gate, &message), ENOTSUP);
  EXPECT_STREQ(
      message.text,
      "backend cpu: no queues: expected a device backend, because its data is ready at once");
  EXPECT_EQ(gate, nullptr);
  EXPECT_EQ(FletchingProducerGateCreate("ext_dev", nullptr, &message), EINVAL);
  EXPECT_STREQ(message.text, "gate: NULL: expected an address");
  EXPECT_EQ(FletchingProducerGateOpen(nullptr, &message), EINVAL);
  EXPECT_EQ(FletchingProducerGateDestroy(nullptr, &message), 0);
  EXPECT_EQ(FletchingProducerQueueDestroy(nullptr, &message), 0);
  EXPECT_EQ(FletchingProducerQueueHandle(nullptr), nullptr);

  const OwnedQueue queue = new_queue("ext_dev");
  EXPECT_EQ(FletchingProducerQueueVerify(queue.get(), 2, nullptr, &message), EINVAL);
  EXPECT_STREQ(
      message.text,
      "expected: out of range: expected FLETCHING_PRODUCER_OLD or FLETCHING_PRODUCER_NEW, got 2");
  Exported foreign("int32");
  EXPECT_EQ(FletchingProducerQueueRead(queue.get(), "int64", &foreign.array, &message), EBADMSG);
  EXPECT_STREQ(message.text, "case int64: / buffer 1 is not the memory that was exported");
}

TEST_F(GateArgumentTest, BackendPresenceReportsDevice) {
  int32_t presence = -1;
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerBackendPresence("ext_dev", &presence, &message), 0);
  EXPECT_EQ(presence, FLETCHING_PRODUCER_REAL);
  EXPECT_STREQ(message.text, "threads of this process");
  EXPECT_EQ(FletchingProducerBackendPresence("npu", &presence, &message), EINVAL);
}

}  // namespace

// Streams for an async handler, read by the C++ library and by a hand-written handler.
#include <atomic>
#include <thread>

#include "fletching/async_adapters.hpp"
#include "gate_support.hpp"

namespace {

using fletching::AsyncReader;
using fletching::DeviceArray;
using fletching::Result;
using Reader = fletching::StreamReader<ArrowDeviceArrayStream>;

constexpr const char* kCase = "record_batch";

// Reads the producer's stream batch by batch.
Result<Reader> read_stream(const std::string& backend, FletchingProducerGate* gate, int64_t batches,
                           int64_t fail_at, int64_t window) {
  auto async = AsyncReader::create(window);
  if (!async) return std::move(async).error();
  ArrowAsyncDeviceStreamHandler* handler = async->handler();
  FletchingMessage message;
  const int code =
      FletchingProducerRunAsync(backend.c_str(), gate, kCase, batches, fail_at, handler, &message);
  if (code != 0) {
    handler->release(handler);
    return fletching::Error(code, message.text);
  }
  auto stream = std::move(*async).open();
  if (!stream) return std::move(stream).error();
  return Reader(std::move(*stream));
}

std::vector<std::string> every_backend() {
  std::vector<std::string> names(static_cast<size_t>(FletchingProducerBackendCount()));
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = FletchingProducerBackendName(static_cast<int32_t>(i));
  }
  return names;
}

class AsyncBackendTest : public GateTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    GateTest::SetUp();
    const std::string why = why_absent(GetParam());
    if (!why.empty()) GTEST_SKIP() << GetParam() << " is absent: " << why;
  }
  void TearDown() override {
    FletchingProducerAwaitAsync();
    GateTest::TearDown();
  }
  void verify_batch(const fletching::Schema& schema, const DeviceArray& batch) {
    FletchingMessage message;
    EXPECT_EQ(FletchingProducerVerifyArray(GetParam().c_str(), kCase, schema.get(), batch.get(),
                                           &message),
              0)
        << message.text;
  }
};

TEST_P(AsyncBackendTest, SendsSchemaBatchesAndEnd) {
  for (const int64_t window : {1, 3, 16}) {
    auto reader = read_stream(GetParam(), nullptr, 3, -1, window);
    ASSERT_TRUE(reader.ok()) << reader.error().message();
    auto schema = reader->schema();
    ASSERT_TRUE(schema.ok()) << schema.error().message();
    int batches = 0;
    for (auto& batch : *reader) {
      ASSERT_TRUE(batch.ok()) << batch.error().message();
      verify_batch(*schema, *batch);
      EXPECT_EQ((*batch)->sync_event != nullptr, GetParam() != "cpu");
      ++batches;
    }
    EXPECT_EQ(batches, 3);
  }
}

TEST_P(AsyncBackendTest, FailsAtGivenBatch) {
  for (const int64_t fail_at : {0, 2, 3}) {
    // A reader drops unread batches when an error arrives, so the window is 1.
    auto reader = read_stream(GetParam(), nullptr, 3, fail_at, 1);
    ASSERT_TRUE(reader.ok()) << reader.error().message();
    for (int64_t i = 0; i < fail_at; ++i) {
      auto batch = reader->next();
      ASSERT_TRUE(batch.has_value());
      ASSERT_TRUE(batch->ok()) << batch->error().message();
    }
    auto failure = reader->next();
    ASSERT_TRUE(failure.has_value());
    ASSERT_FALSE(failure->ok());
    EXPECT_EQ(failure->error().code(), EIO);
    EXPECT_EQ(
        failure->error().message(),
        "case record_batch: the stream fails on purpose before batch " + std::to_string(fail_at));
  }
}

TEST_P(AsyncBackendTest, GateDelaysEveryBatch) {
  if (GetParam() == "cpu") return;  // no queues: AsyncTest.RejectsBadArguments
  use(GetParam());
  if (IsSkipped()) return;
  std::vector<DeviceArray> batches;
  const OwnedQueue careful = new_queue(GetParam());
  auto reader = read_stream(GetParam(), gate_.get(), 3, -1, 2);
  ASSERT_TRUE(reader.ok()) << reader.error().message();
  for (auto& batch : *reader) {
    ASSERT_TRUE(batch.ok()) << batch.error().message();
    EXPECT_FALSE(is_ready(**batch));
    wait_on(**batch, careful);
    read(careful, kCase, **batch);
    batches.push_back(std::move(*batch));
  }
  EXPECT_EQ(batches.size(), 3U);
  EXPECT_FALSE(is_idle(careful));
  open(gate_);
  EXPECT_GT(verify(careful, FLETCHING_PRODUCER_NEW), 0);
}

TEST_P(AsyncBackendTest, CancelFreesStreamAndArrays) {
  {
    auto reader = read_stream(GetParam(), nullptr, 1000, -1, 4);
    ASSERT_TRUE(reader.ok()) << reader.error().message();
    auto batch = reader->next();
    ASSERT_TRUE(batch.has_value());
    ASSERT_TRUE(batch->ok()) << batch->error().message();
  }
  FletchingProducerAwaitAsync();
  EXPECT_EQ(counters_now().live_streams, 0);
  EXPECT_EQ(counters_now().live_arrays, 0);
}

INSTANTIATE_TEST_SUITE_P(All, AsyncBackendTest, testing::ValuesIn(every_backend()),
                         [](const auto& info) { return info.param; });

// --- Hand-written

// A minimal C consumer.
struct Handler : ArrowAsyncDeviceStreamHandler {
  explicit Handler(int64_t request)
      : ArrowAsyncDeviceStreamHandler{handle_schema,  handle_task, handle_error,
                                      handle_release, nullptr,     this},
        requested(request) {}

  static Handler& of(ArrowAsyncDeviceStreamHandler* self) {
    return *static_cast<Handler*>(self->private_data);
  }
  static int handle_schema(ArrowAsyncDeviceStreamHandler* self, ArrowSchema* schema) {
    Handler& handler = of(self);
    EXPECT_FALSE(handler.has_schema);
    handler.has_schema = true;
    schema->release(schema);
    self->producer->request(self->producer, handler.requested);
    return 0;
  }
  static int handle_task(ArrowAsyncDeviceStreamHandler* self, ArrowAsyncTask* task, const char*) {
    Handler& handler = of(self);
    EXPECT_TRUE(handler.has_schema);
    if (task == nullptr) {
      ++handler.ends;
      return 0;
    }
    ArrowDeviceArray array{};
    EXPECT_EQ(task->extract_data(task, &array), 0);
    ++handler.batches;
    array.array.release(&array.array);
    return 0;
  }
  static void handle_error(ArrowAsyncDeviceStreamHandler* self, int, const char*, const char*) {
    ++of(self).errors;
  }
  static void handle_release(ArrowAsyncDeviceStreamHandler* self) {
    of(self).released = true;
    self->release = nullptr;
  }

  int64_t requested;
  bool has_schema = false;
  int batches = 0;
  int ends = 0;
  int errors = 0;
  std::atomic<bool> released{false};
};

class AsyncTest : public GateTest {};

int give(Handler& handler, const char* backend, FletchingProducerGate* gate, int64_t batches,
         int64_t fail_at, FletchingMessage* message) {
  return FletchingProducerRunAsync(backend, gate, "int32", batches, fail_at, &handler, message);
}

// The stream ends without demand beyond its batches.
TEST_F(AsyncTest, SendsEndWithoutDemand) {
  Handler handler(3);
  FletchingMessage message;
  ASSERT_EQ(give(handler, "ext_dev", nullptr, 3, -1, &message), 0) << message.text;
  FletchingProducerAwaitAsync();
  EXPECT_TRUE(handler.released);
  EXPECT_EQ(handler.batches, 3);
  EXPECT_EQ(handler.ends, 1);
  EXPECT_EQ(handler.errors, 0);
}

// The consumer may request a batch before or after the end was reported.
TEST_F(AsyncTest, EmptyStreamEndsImmediately) {
  for (int i = 0; i < 200; ++i) {
    Handler handler(1);
    FletchingMessage message;
    ASSERT_EQ(give(handler, "cpu", nullptr, 0, -1, &message), 0) << message.text;
    FletchingProducerAwaitAsync();
    EXPECT_TRUE(handler.has_schema);
    EXPECT_EQ(handler.batches, 0);
    EXPECT_EQ(handler.ends, 1);
  }
}

// Batches delivered before a failure remain valid.
TEST_F(AsyncTest, DeliversBatchesBeforeFailure) {
  for (int i = 0; i < 50; ++i) {
    Handler handler(100);
    FletchingMessage message;
    ASSERT_EQ(give(handler, "cpu", nullptr, 5, 3, &message), 0) << message.text;
    FletchingProducerAwaitAsync();
    EXPECT_EQ(handler.batches, 3);
    EXPECT_EQ(handler.ends, 0);
    EXPECT_EQ(handler.errors, 1);
  }
}

TEST_F(AsyncTest, RunsStreamsConcurrently) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int j = 0; j < 25; ++j) {
        const bool fails = j % 2 == 1;
        auto reader = read_stream("ext_dev", nullptr, 3, fails ? 2 : -1, fails ? 1 : 1 + j % 4);
        ASSERT_TRUE(reader.ok()) << reader.error().message();
        int batches = 0;
        for (auto& batch : *reader) batches += batch.ok() ? 1 : 0;
        EXPECT_EQ(batches, fails ? 2 : 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  FletchingProducerAwaitAsync();
}

TEST_F(AsyncTest, RejectsBadArguments) {
  FletchingMessage message;
  Handler handler(1);
  const auto expect = [&](int code, const std::string& text, const char* backend,
                          FletchingProducerGate* gate, int64_t fail_at) {
    EXPECT_EQ(give(handler, backend, gate, 1, fail_at, &message), code);
    EXPECT_NE(std::string(message.text).find(text), std::string::npos) << message.text;
    EXPECT_EQ(handler.producer, nullptr);
    EXPECT_FALSE(handler.released);
  };
  gate_ = new_gate("ext_dev");
  expect(EINVAL, "gate: wrong backend: expected cpu, got ext_dev", "cpu", gate_.get(), -1);
  expect(EINVAL, "backend: unknown: expected one of ", "npu", nullptr, -1);
  expect(EINVAL, "fail_at: out of range: expected -1 to 1 (batches), got 2", "cpu", nullptr, 2);
  handler.on_error = nullptr;
  expect(EINVAL, "handler.on_error: NULL: expected a callback", "cpu", nullptr, -1);
  EXPECT_EQ(FletchingProducerRunAsync("cpu", nullptr, "int32", 1, -1, nullptr, &message), EINVAL);
  EXPECT_STREQ(message.text, "handler: NULL: expected an ArrowAsyncDeviceStreamHandler");
  FletchingProducerAwaitAsync();
  EXPECT_EQ(counters_now().live_streams, 0);
}

}  // namespace

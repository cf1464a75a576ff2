// SPDX-License-Identifier: Apache-2.0
//
// Async streams: Fletching to libarrow's consumer, and libarrow's producer to Fletching.

#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/util/async_generator.h>
#include <arrow/util/future.h>
#include <arrow/util/thread_pool.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fletching/async_adapters.hpp"
#include "fletching/async_producer.hpp"
#include "fletching/metadata.hpp"
#include "support.hpp"

namespace fletching::peers {
namespace {

constexpr int kQueueSize = 3;     // batches that libarrow requests in advance
constexpr double kPatience = 60;  // seconds until a future counts as hung

using Batches = std::vector<std::shared_ptr<arrow::RecordBatch>>;

Batches some_batches(int count) {
  Batches batches;
  for (int i = 0; i < count; ++i) batches.push_back(int32_batch({i, i + 1, i + 2}));
  return batches;
}

std::shared_ptr<arrow::Schema> the_schema() { return int32_batch({0})->schema(); }

DeviceArray exported(const arrow::RecordBatch& batch) {
  DeviceArray array;
  EXPECT_TRUE(arrow::ExportDeviceRecordBatch(batch, nullptr, array.out()).ok());
  return array;
}

Schema exported_schema() {
  Schema schema;
  EXPECT_TRUE(arrow::ExportSchema(*the_schema(), schema.out()).ok());
  return schema;
}

template <class T>
T wait_for(const arrow::Future<T>& future) {
  EXPECT_TRUE(future.Wait(kPatience)) << "libarrow hangs";
  return value_of(future.result());
}

/// Reports requests of libarrow, and the release of its handler.
struct Watch final : AsyncSource {
  void on_demand(std::int64_t /*n*/) noexcept override {
    const std::lock_guard lock(mutex);
    requested.notify_all();
  }
  void on_release() noexcept override { released.set_value(); }

  std::mutex mutex;
  std::condition_variable requested;
  std::promise<void> released;
};

/// Fletching's producer with libarrow's consumer.
class ToLibarrow : public ::testing::Test {
 protected:
  ~ToLibarrow() override {
    std::future<void> released = watch_->released.get_future();
    EXPECT_EQ(released.wait_for(std::chrono::seconds(60)), std::future_status::ready)
        << "the handler is not released";
  }

  std::unique_ptr<WorkerThread> worker_ = WorkerThread::start().value();
  ArrowAsyncDeviceStreamHandler handler_{};
  arrow::Future<arrow::AsyncRecordBatchGenerator> opened_ = arrow::CreateAsyncDeviceStreamHandler(
      &handler_, arrow::internal::GetCpuThreadPool(), kQueueSize);
  std::shared_ptr<Watch> watch_ = std::make_shared<Watch>();
  AsyncProducer producer_ =
      AsyncProducer::start(&handler_, *worker_, {ARROW_DEVICE_CPU, {}, watch_}).value();
};

TEST_F(ToLibarrow, SendsBatchesAndEnd) {
  const Batches batches = some_batches(20);
  ASSERT_TRUE(producer_.schema(exported_schema()).ok());
  for (const auto& batch : batches) ASSERT_TRUE(producer_.push(exported(*batch)).ok());
  ASSERT_TRUE(producer_.end().ok());
  arrow::AsyncRecordBatchGenerator stream = wait_for(opened_);
  EXPECT_TRUE(stream.schema->Equals(*the_schema()));
  EXPECT_EQ(stream.device_type, arrow::DeviceAllocationType::kCPU);
  for (const auto& batch : batches) {
    const arrow::RecordBatchWithMetadata read = wait_for(stream.generator());
    ASSERT_NE(read.batch, nullptr);
    EXPECT_TRUE(read.batch->Equals(*batch));
  }
  EXPECT_EQ(wait_for(stream.generator()).batch, nullptr);
}

TEST_F(ToLibarrow, SendsEndWithoutBatches) {
  ASSERT_TRUE(producer_.schema(exported_schema()).ok());
  ASSERT_TRUE(producer_.end().ok());
  EXPECT_EQ(wait_for(wait_for(opened_).generator()).batch, nullptr);
}

TEST_F(ToLibarrow, SendsMetadataOfBatch) {
  std::string metadata = encode_metadata({{"origin", "test"}}).value();
  ASSERT_TRUE(producer_.schema(exported_schema()).ok());
  ASSERT_TRUE(producer_.push(exported(*int32_batch({7})), std::move(metadata)).ok());
  ASSERT_TRUE(producer_.end().ok());
  const arrow::RecordBatchWithMetadata read = wait_for(wait_for(opened_).generator());
  ASSERT_NE(read.custom_metadata, nullptr);
  EXPECT_EQ(value_of(read.custom_metadata->Get("origin")), "test");
}

TEST_F(ToLibarrow, ReceivesRequestForEachBatch) {
  ASSERT_TRUE(producer_.schema(exported_schema()).ok());
  arrow::AsyncRecordBatchGenerator stream = wait_for(opened_);
  for (int turn = 0; turn < 3; ++turn) {
    std::unique_lock lock(watch_->mutex);
    ASSERT_TRUE(watch_->requested.wait_for(lock, std::chrono::seconds(60), [&] {
      return producer_.demand() == kQueueSize;
    })) << producer_.demand();
    lock.unlock();
    for (int i = 0; i < kQueueSize; ++i) {
      ASSERT_TRUE(producer_.push(exported(*int32_batch({i}))).ok());
    }
    for (int i = 0; i < kQueueSize; ++i) {
      ASSERT_NE(wait_for(stream.generator()).batch, nullptr);
    }
  }
  ASSERT_TRUE(producer_.end().ok());
}

TEST_F(ToLibarrow, SendsErrorBeforeSchema) {
  producer_.fail(Error(EACCES, "not for you"));
  ASSERT_TRUE(opened_.Wait(kPatience));
  EXPECT_NE(opened_.status().ToString().find("not for you"), std::string::npos)
      << opened_.status().ToString();
}

TEST_F(ToLibarrow, SendsErrorAfterBatch) {
  ASSERT_TRUE(producer_.schema(exported_schema()).ok());
  ASSERT_TRUE(producer_.push(exported(*int32_batch({7}))).ok());
  arrow::AsyncRecordBatchGenerator stream = wait_for(opened_);
  EXPECT_TRUE(wait_for(stream.generator()).batch->Equals(*int32_batch({7})));
  const auto next = stream.generator();
  producer_.fail(Error(ENOSPC, "the disk is full"));
  ASSERT_TRUE(next.Wait(kPatience));
  EXPECT_NE(next.status().ToString().find("the disk is full"), std::string::npos)
      << next.status().ToString();
}

/// libarrow's producer with Fletching's consumer. It runs on a separate thread, because libarrow
/// makes the handler calls on the thread that starts the export while there are batches, and waits
/// for demand on that thread.
class Sender {
 public:
  using Generator = arrow::AsyncGenerator<std::shared_ptr<arrow::RecordBatch>>;

  Sender(AsyncReader& reader, const Generator& batches)
      : status_(std::async(std::launch::async, [handler = reader.handler(), batches] {
          const arrow::Future<> sent = arrow::ExportAsyncRecordBatchReader(
              the_schema(), batches, arrow::DeviceAllocationType::kCPU, handler);
          return sent.Wait(kPatience) ? sent.status() : arrow::Status::Cancelled("it hangs");
        })) {}

  arrow::Status status() { return status_.get(); }

 private:
  std::future<arrow::Status> status_;
};

TEST(FromLibarrow, ReceivesBatchesAndEnd) {
  for (const std::int64_t window : {1, 4, 64}) {
    const Batches batches = some_batches(20);
    AsyncReader reader = AsyncReader::create(window).value();
    Sender sent(reader, arrow::MakeVectorGenerator(batches));
    const auto stream =
        value_of(arrow::ImportDeviceRecordBatchReader(std::move(reader).open().value().get()));
    EXPECT_TRUE(stream->schema()->Equals(*the_schema()));
    for (const auto& batch : batches) {
      const auto read = value_of(stream->Next());
      ASSERT_NE(read, nullptr);
      EXPECT_TRUE(read->Equals(*batch));
    }
    EXPECT_EQ(value_of(stream->Next()), nullptr);
    const arrow::Status status = sent.status();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
}

TEST(FromLibarrow, ReceivesEndWithoutBatches) {
  AsyncReader reader = AsyncReader::create(1).value();
  Sender sent(reader, arrow::MakeVectorGenerator(Batches{}));
  StreamReader<ArrowDeviceArrayStream> stream(std::move(reader).open().value());
  EXPECT_FALSE(stream.next().has_value());
  EXPECT_TRUE(sent.status().ok());
}

TEST(FromLibarrow, ReceivesErrorAfterBatch) {
  AsyncReader reader = AsyncReader::create(4).value();
  int given = 0;
  Sender sent(reader, [given]() mutable {
    using Next = arrow::Future<std::shared_ptr<arrow::RecordBatch>>;
    if (given++ == 0) return Next::MakeFinished(int32_batch({7}));
    return Next::MakeFinished(arrow::Status::IOError("the disk is full"));
  });
  StreamReader<ArrowDeviceArrayStream> stream(std::move(reader).open().value());
  std::optional<Result<DeviceArray>> batch = stream.next();
  // The error overtakes unextracted tasks, so the batch may be dropped.
  if (batch && batch->ok()) batch = stream.next();
  ASSERT_TRUE(batch.has_value());
  ASSERT_FALSE(batch->ok());
  EXPECT_NE(batch->error().message().find("the disk is full"), std::string::npos)
      << batch->error().message();
  EXPECT_NE(sent.status().ToString().find("the disk is full"), std::string::npos);
}

TEST(FromLibarrow, CancelEndsStream) {
  AsyncReader reader = AsyncReader::create(2).value();
  Sender sent(reader, arrow::MakeVectorGenerator(some_batches(50)));
  {
    StreamReader<ArrowDeviceArrayStream> stream(std::move(reader).open().value());
    EXPECT_TRUE(stream.next()->ok());
  }
  EXPECT_TRUE(sent.status().IsCancelled());
}

}  // namespace
}  // namespace fletching::peers

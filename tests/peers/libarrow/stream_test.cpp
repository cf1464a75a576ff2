// SPDX-License-Identifier: Apache-2.0
//
// Streams and device streams between libarrow and the library, on the CPU and on the fake device.
#include <arrow/c/bridge.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fletching/stream.hpp"
#include "fletching/stream_adapters.hpp"
#include "fletching/stream_producer.hpp"
#include "support.hpp"

namespace fletching::peers {
namespace {

using Batches = std::vector<std::shared_ptr<arrow::RecordBatch>>;

const std::shared_ptr<arrow::Schema> kSchema =
    arrow::schema({arrow::field("values", arrow::int32())});

Schema our_schema() {
  Schema schema;
  EXPECT_TRUE(arrow::ExportSchema(*kSchema, schema.out()).ok());
  return schema;
}

DeviceArray our_batch(const arrow::RecordBatch& batch, FakeEvent* event = nullptr) {
  DeviceArray array;
  std::shared_ptr<FakeSyncEvent> sync;
  if (event != nullptr) sync = std::make_shared<FakeSyncEvent>(event, nullptr);
  EXPECT_TRUE(arrow::ExportDeviceRecordBatch(batch, sync, array.out()).ok());
  return array;
}

/// A libarrow reader that fails after its batches.
class FailingReader : public arrow::RecordBatchReader {
 public:
  explicit FailingReader(Batches batches) : batches_(std::move(batches)) {}

  [[nodiscard]] std::shared_ptr<arrow::Schema> schema() const override { return kSchema; }
  arrow::Status ReadNext(std::shared_ptr<arrow::RecordBatch>* out) override {
    if (at_ == batches_.size()) return arrow::Status::IOError("libarrow's disk is gone");
    *out = batches_[at_++];
    return arrow::Status::OK();
  }

 private:
  Batches batches_;
  std::size_t at_ = 0;
};

std::int32_t first_value(const DeviceArray& batch) {
  const auto address = reinterpret_cast<std::uint64_t>(batch->array.children[0]->buffers[1]);
  const void* host = batch->device_type == ARROW_DEVICE_CPU ? reinterpret_cast<void*>(address)
                                                            : host_address(address);
  return *static_cast<const std::int32_t*>(host);
}

// --- libarrow produces ---

TEST(LibarrowStream, ReadsLibarrowStreamAsRange) {
  const Batches batches{int32_batch({1, 2}), int32_batch({3})};
  ArrayStream stream;
  const auto reader = value_of(arrow::RecordBatchReader::Make(batches, kSchema));
  ASSERT_TRUE(arrow::ExportRecordBatchReader(reader, stream.out()).ok());

  ArrayStreamReader ours(std::move(stream));
  EXPECT_STREQ(ours.schema().value()->children[0]->name, "values");
  std::vector<Array> kept;
  for (auto& batch : ours) kept.push_back(std::move(batch).value());
  ours.release();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0]->length, 2);
  EXPECT_EQ(*static_cast<const std::int32_t*>(kept[1]->children[0]->buffers[1]), 3);
}

TEST(LibarrowStream, PropagatesErrnoAndText) {
  ArrayStream stream;
  const auto reader = std::make_shared<FailingReader>(Batches{int32_batch({1})});
  ASSERT_TRUE(arrow::ExportRecordBatchReader(reader, stream.out()).ok());
  ArrayStreamReader ours(std::move(stream));
  EXPECT_TRUE(ours.next()->ok());
  const auto failure = ours.next().value();
  ASSERT_FALSE(failure.ok());
  EXPECT_EQ(failure.error().code(), EIO);
  EXPECT_NE(failure.error().message().find("libarrow's disk is gone"), std::string::npos);
}

TEST(LibarrowStream, StrictReadsFakeDeviceStream) {
  const Batches batches{on_fake_device(*int32_batch({1, 2}), 0),
                        on_fake_device(*int32_batch({3}), 1)};
  DeviceArrayStream stream;
  const auto reader = value_of(
      arrow::RecordBatchReader::Make(batches, kSchema, arrow::DeviceAllocationType::kEXT_DEV));
  ASSERT_TRUE(arrow::ExportDeviceRecordBatchReader(reader, stream.out()).ok());

  DeviceArrayStreamReader ours(std::move(stream), {.strict = true});
  EXPECT_EQ(ours.device_type(), ARROW_DEVICE_EXT_DEV);
  std::vector<DeviceArray> kept;
  for (auto& batch : ours) kept.push_back(std::move(batch).value());
  ASSERT_EQ(kept.size(), 2U);
  for (std::int64_t id = 0; id < 2; ++id) {
    const DeviceArray& batch = kept[static_cast<std::size_t>(id)];
    EXPECT_EQ(batch->device_type, ARROW_DEVICE_EXT_DEV);
    EXPECT_EQ(batch->device_id, id);
  }
  EXPECT_EQ(first_value(kept[1]), 3);
}

// libarrow lets a reader promise one device and return another. Fletching reports it.
TEST(LibarrowStream, RejectsBatchOnOtherDevice) {
  DeviceArrayStream stream;
  const auto reader = value_of(arrow::RecordBatchReader::Make({int32_batch({1})}, kSchema));
  ASSERT_TRUE(arrow::ExportDeviceRecordBatchReader(reader, stream.out()).ok());
  stream->device_type = ARROW_DEVICE_CUDA;
  DeviceArrayStreamReader ours(std::move(stream));
  EXPECT_EQ(ours.next()->error().code(), EINVAL);
}

// The reason why a consumer zeroes the slot, and why reserved != 0 is only a warning.
TEST(LibarrowStream, LibarrowKeepsReservedField) {
  DeviceArray array;
  array.out()->reserved[0] = 7;
  ASSERT_TRUE(arrow::ExportDeviceRecordBatch(*int32_batch({1}), nullptr, array.get()).ok());
  EXPECT_EQ(array->reserved[0], 7);
}

// --- libarrow consumes ---

TEST(LibarrowStream, LibarrowReadsFletchingStream) {
  const Batches batches{int32_batch({1, 2}), int32_batch({3})};
  std::vector<Array> arrays;
  for (const auto& batch : batches) {
    ASSERT_TRUE(arrow::ExportRecordBatch(*batch, arrays.emplace_back().out()).ok());
  }
  auto stream = make_array_stream(our_schema(), std::move(arrays)).value();
  const auto reader = value_of(arrow::ImportRecordBatchReader(stream.get()));
  EXPECT_TRUE(stream.is_released());
  const auto read = value_of(reader->ToRecordBatches());
  ASSERT_EQ(read.size(), 2U);
  EXPECT_TRUE(read[0]->Equals(*batches[0]));
  EXPECT_TRUE(read[1]->Equals(*batches[1]));
}

TEST(LibarrowStream, LibarrowReportsFletchingError) {
  const auto fails = [] { return Result<Array>(Error(ENOSPC, "our disk is full")); };
  auto stream = make_array_stream(our_schema(), fails).value();
  const auto reader = value_of(arrow::ImportRecordBatchReader(stream.get()));
  const auto read = reader->ToRecordBatches();
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.status().message().find("our disk is full"), std::string::npos);
}

TEST(LibarrowStream, RoundTripsFakeDeviceStream) {
  ASSERT_TRUE(register_fake_device().ok());
  const auto cpu = int32_batch({1, 2, 3});
  FakeEvent event;
  std::vector<DeviceArray> arrays;
  arrays.push_back(our_batch(*on_fake_device(*cpu, 0), &event));
  arrays.push_back(our_batch(*on_fake_device(*cpu, 1), &event));
  auto stream =
      make_device_stream(our_schema(), ARROW_DEVICE_EXT_DEV, std::move(arrays), {.strict = true})
          .value();
  const auto reader = value_of(arrow::ImportDeviceRecordBatchReader(stream.get()));
  EXPECT_EQ(reader->device_type(), arrow::DeviceAllocationType::kEXT_DEV);
  const auto read = value_of(reader->ToRecordBatches());
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[1]->column(0)->data()->buffers[1]->device()->device_id(), 1);
  EXPECT_EQ(event.waits, 0);
  for (const auto& batch : read) {
    const auto copy = value_of(batch->CopyTo(arrow::default_cpu_memory_manager()));
    EXPECT_TRUE(copy->Equals(*cpu));
  }
  EXPECT_EQ(event.waits, 2);
}

// --- The adapters with libarrow on both sides ---

TEST(LibarrowStream, RoundTripsPlainStreamAsDeviceStream) {
  const Batches batches{int32_batch({1, 2}), int32_batch({3})};
  ArrayStream plain;
  const auto reader = value_of(arrow::RecordBatchReader::Make(batches, kSchema));
  ASSERT_TRUE(arrow::ExportRecordBatchReader(reader, plain.out()).ok());
  auto device = to_device_stream(std::move(plain)).value();
  const auto imported = value_of(arrow::ImportDeviceRecordBatchReader(device.get()));

  DeviceArrayStream again;
  ASSERT_TRUE(arrow::ExportDeviceRecordBatchReader(imported, again.out()).ok());
  auto back = to_array_stream(std::move(again), {.strict = true}).value();
  const auto read =
      value_of(value_of(arrow::ImportRecordBatchReader(back.get()))->ToRecordBatches());
  ASSERT_EQ(read.size(), 2U);
  EXPECT_TRUE(read[0]->Equals(*batches[0]));
  EXPECT_TRUE(read[1]->Equals(*batches[1]));
}

TEST(LibarrowStream, RejectsFakeDeviceStreamAsPlainStream) {
  DeviceArrayStream stream;
  const auto reader = value_of(arrow::RecordBatchReader::Make(
      {on_fake_device(*int32_batch({1}), 0)}, kSchema, arrow::DeviceAllocationType::kEXT_DEV));
  ASSERT_TRUE(arrow::ExportDeviceRecordBatchReader(reader, stream.out()).ok());
  EXPECT_EQ(to_array_stream(std::move(stream)).error().code(), EINVAL);
}

}  // namespace
}  // namespace fletching::peers

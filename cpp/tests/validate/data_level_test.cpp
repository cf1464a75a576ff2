// SPDX-License-Identifier: Apache-2.0
//
// Level DATA: valid arrays have no findings, device memory is not read, and the layer waits for the
// event of a batch before it reads the buffers. The corpus has a case for each check.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "findings.hpp"
#include "fletching/check_data.hpp"
#include "fletching/events.h"
#include "fletching/owner.hpp"
#include "fletching/validate.h"
#include "fletching/waiter.h"
#include "producer.h"

namespace fletching::testing {
namespace {

/// Checks an array, slices of it, and all its descendants.
void expect_sound(const ArrowSchema& schema, const ArrowArray& array) {
  const std::int64_t length = array.length;
  for (const std::int64_t begin : {std::int64_t{0}, std::int64_t{1}, length / 2, length}) {
    for (const std::int64_t end : {length, length - 1, length / 2 + 1}) {
      if (begin > end || end > length) continue;
      ArrowArray slice = array;
      slice.offset += begin;
      slice.length = end - begin;
      if (slice.length != length) slice.null_count = -1;
      const Status status = check_data(schema, slice).value().status();
      EXPECT_TRUE(status) << schema.format << " from " << begin << " to " << end << ": "
                          << status.error().message();
    }
  }
  for (std::int64_t i = 0; i < array.n_children; ++i) {
    expect_sound(*schema.children[i], *array.children[i]);
  }
  if (array.dictionary != nullptr) expect_sound(*schema.dictionary, *array.dictionary);
}

TEST(DataLevelTest, AcceptsSlicesOfCatalogue) {
  for (std::int32_t i = 0; i < FletchingProducerCaseCount(); ++i) {
    const char* const name = FletchingProducerCaseName(i);
    SCOPED_TRACE(name);
    Schema schema;
    DeviceArray array;
    FletchingMessage message{};
    ASSERT_EQ(FletchingProducerExportArray("cpu", name, schema.out(), array.out(), &message), 0)
        << message.text;
    expect_sound(*schema, array->array);
  }
}

/// An array of one string that is invalid UTF-8 until its event completes.
class EventTest : public ::testing::Test {
 public:
  [[nodiscard]] const ArrowSchema& schema() const { return schema_; }
  [[nodiscard]] const ArrowDeviceArray& array() const { return array_; }

 protected:
  void SetUp() override {
    schema_.format = "u";
    schema_.release = [](ArrowSchema* self) { self->release = nullptr; };
    array_.array.length = 1;
    array_.array.n_buffers = 3;
    array_.array.buffers = buffers_.data();
    array_.array.release = [](ArrowArray* self) { self->release = nullptr; };
    array_.device_type = ARROW_DEVICE_CPU;
    array_.device_id = -1;
    array_.sync_event = &data_;
    const FletchingWaiter waiter{&wait, nullptr, nullptr, this};
    ASSERT_EQ(FletchingRegisterWaiter(ARROW_DEVICE_CPU, &waiter, nullptr), 0);
  }
  void TearDown() override { FletchingUnregisterWaiter(ARROW_DEVICE_CPU); }

  static int wait(void* context, void* event, std::int64_t /*device_id*/,
                  FletchingMessage* message) {
    auto& self = *static_cast<EventTest*>(context);
    ++self.waits_;
    *static_cast<char*>(event) = 'a';
    std::ranges::copy(std::string_view("the event is lost"), message->text);
    return self.result_;
  }

  std::vector<std::string> check(std::int32_t level = FLETCHING_VALIDATE_DATA) {
    Findings findings;
    const FletchingValidateOptions options = findings.options(level);
    std::int64_t count = -1;
    EXPECT_EQ(FletchingCheckDeviceArray(&schema_, &array_, &options, &count, nullptr), 0);
    EXPECT_EQ(count, std::ssize(findings.list));
    messages_ = findings.messages;
    return findings.list;
  }

  ArrowSchema schema_{};
  ArrowDeviceArray array_{};
  std::array<std::int32_t, 2> offsets_{0, 1};
  char data_ = '\xff';
  std::array<const void*, 3> buffers_{nullptr, offsets_.data(), &data_};
  int waits_ = 0;
  int result_ = 0;
  std::vector<std::string> messages_;
};

const std::vector<std::string> kNotUtf8{"layout.utf8 error producer array"};
const std::vector<std::string> kLostEvent{"limit.event note both array.sync_event"};

TEST_F(EventTest, WaitsBeforeReading) {
  EXPECT_EQ(check(), std::vector<std::string>{});
  EXPECT_EQ(waits_, 1);
}

TEST_F(EventTest, ReadsWithoutEvent) {
  array_.sync_event = nullptr;
  EXPECT_EQ(check(), kNotUtf8);
  EXPECT_EQ(waits_, 0);
}

TEST_F(EventTest, ReportsFailedWaitWithoutReading) {
  result_ = EIO;
  const void* const nowhere = reinterpret_cast<const void*>(std::uintptr_t{1});
  buffers_ = {nullptr, nowhere, nowhere};
  EXPECT_EQ(check(), kLostEvent);
  ASSERT_FALSE(messages_.empty());
  EXPECT_NE(messages_[0].find("the event is lost"), std::string::npos) << messages_[0];
  array_.array.null_count = -2;
  EXPECT_EQ(check().size(), 2U) << "the structs are compared all the same";
}

TEST_F(EventTest, DoesNotReadBelowLevelData) {
  EXPECT_EQ(check(FLETCHING_VALIDATE_SHAPE), std::vector<std::string>{});
  EXPECT_EQ(waits_, 0);
}

TEST_F(EventTest, DoesNotReadDeviceMemory) {
  const void* const nowhere = reinterpret_cast<const void*>(std::uintptr_t{1});
  buffers_ = {nullptr, nowhere, nowhere};
  for (const ArrowDeviceType type : {ARROW_DEVICE_CUDA, ARROW_DEVICE_ROCM, ARROW_DEVICE_OPENCL,
                                     ARROW_DEVICE_VULKAN, ARROW_DEVICE_EXT_DEV, 9999}) {
    array_.device_type = type;
    EXPECT_EQ(check(), std::vector<std::string>{}) << type;
  }
  EXPECT_EQ(waits_, 0);
}

TEST_F(EventTest, ReadsPinnedAndManagedMemory) {
  array_.sync_event = nullptr;
  for (const ArrowDeviceType type :
       {ARROW_DEVICE_CUDA_HOST, ARROW_DEVICE_ROCM_HOST, ARROW_DEVICE_CUDA_MANAGED}) {
    array_.device_type = type;
    EXPECT_EQ(check(), kNotUtf8) << type;
  }
}

TEST_F(EventTest, ReadsPlainArray) {
  Findings findings;
  const FletchingValidateOptions options = findings.options(FLETCHING_VALIDATE_DATA);
  EXPECT_EQ(FletchingCheckArray(&schema_, &array_.array, &options, nullptr, nullptr), 0);
  EXPECT_EQ(findings.list, kNotUtf8);
}

/// A stream with the test's array as its only batch.
int get_schema(ArrowDeviceArrayStream* self, ArrowSchema* out) {
  *out = static_cast<EventTest*>(self->private_data)->schema();
  return 0;
}
int get_next(ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
  *out = static_cast<EventTest*>(self->private_data)->array();
  return 0;
}

TEST_F(EventTest, ReportsBatchOfStream) {
  array_.sync_event = nullptr;
  Findings findings;
  const FletchingValidateOptions options = findings.options(FLETCHING_VALIDATE_DATA);
  ArrowDeviceArrayStream stream{ARROW_DEVICE_CPU,
                                &get_schema,
                                &get_next,
                                [](ArrowDeviceArrayStream*) -> const char* { return nullptr; },
                                [](ArrowDeviceArrayStream* self) { self->release = nullptr; },
                                this};
  ASSERT_EQ(FletchingValidateDeviceStream(&stream, &options, nullptr), 0);
  Schema schema;
  ASSERT_EQ(stream.get_schema(&stream, schema.out()), 0);
  DeviceArray batch;
  ASSERT_EQ(stream.get_next(&stream, batch.out()), 0);
  EXPECT_EQ(findings.list,
            std::vector<std::string>{"layout.utf8 error producer get_next[0].array"});
  array_.sync_event = &data_;
  ASSERT_EQ(stream.get_next(&stream, batch.out()), 0);
  EXPECT_EQ(findings.list.size(), 2U) << "the layer waits for the event of the second batch";
  EXPECT_EQ(findings.list.back(), "sync-event.null-where-none error producer get_next[1].array");
  EXPECT_EQ(waits_, 1);
  stream.release(&stream);
}

}  // namespace
}  // namespace fletching::testing

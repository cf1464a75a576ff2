// The owners around what another library made: the reference producer, which counts what is alive
// and compares what is returned with its catalogue.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fletching/owner.hpp"
#include "fletching/shared.hpp"
#include "producer.h"

namespace fletching {
namespace {

constexpr const char* kBackend = "cpu";

struct Exported {
  Schema schema;
  DeviceArray array;
};

Exported exported(const char* case_name) {
  Exported result;
  FletchingMessage message;
  EXPECT_EQ(FletchingProducerExportArray(kBackend, case_name, result.schema.out(),
                                         result.array.out(), &message),
            0)
      << message.text;
  return result;
}

std::string difference(const char* case_name, const Schema& schema, const DeviceArray& array) {
  FletchingMessage message;
  FletchingProducerVerifyArray(kBackend, case_name, schema.get(), array.get(), &message);
  return message.text;
}

// Live structs, and errors.
std::vector<int64_t> alive() {
  FletchingProducerCounters counters;
  FletchingProducerReadCounters(&counters);
  return {counters.live_allocations, counters.live_schemas, counters.live_arrays,
          counters.double_released};
}

const std::vector<int64_t> kNothing{0, 0, 0, 0};

// One test per case of the catalogue.
class ForeignProducer : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { FletchingProducerResetCounters(); }
  void TearDown() override { EXPECT_EQ(alive(), kNothing); }
};

TEST_P(ForeignProducer, MovesKeepTheData) {
  Exported source = exported(GetParam());
  const Schema schema = std::move(source.schema);
  const DeviceArray array = std::move(source.array);
  EXPECT_EQ(difference(GetParam(), schema, array), "");
}

TEST_P(ForeignProducer, ViewsHaveTheDataAndKeepIt) {
  Exported source = exported(GetParam());
  Schema schema;
  DeviceArray array;
  {
    const SharedSchema shared_schema = share(std::move(source.schema)).value();
    const SharedDeviceArray shared_array = share(std::move(source.array)).value();
    schema = shared_schema.view().value();
    array = shared_array.view().value();
  }
  EXPECT_EQ(difference(GetParam(), schema, array), "");
}

TEST_P(ForeignProducer, ChildrenOutliveTheirParent) {
  Exported source = exported(GetParam());
  const auto n = static_cast<int64_t>(source.array.children().size());
  std::vector<DeviceArray> children;
  std::vector<Schema> schemas;
  for (int64_t i = 0; i < n; ++i) {
    children.push_back(source.array.take_child(i).value());
    schemas.push_back(source.schema.take_child(i).value());
  }
  source.array.release();
  source.schema.release();
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_GE(children[i].length(), 0);
    EXPECT_NE(schemas[i].format(), "");
  }
  EXPECT_EQ(alive()[2] == 0, n == 0);
}

TEST_P(ForeignProducer, AnObjectIsAttached) {
  Exported source = exported(GetParam());
  const auto object = std::make_shared<int>(0);
  ASSERT_TRUE(attach(source.array, object));
  ASSERT_TRUE(attach(source.schema, object));
  EXPECT_EQ(difference(GetParam(), source.schema, source.array), "");
  EXPECT_EQ(object.use_count(), 3);
  source.array.release();
  source.schema.release();
  EXPECT_EQ(object.use_count(), 1);
}

std::vector<const char*> cases() {
  std::vector<const char*> names(static_cast<size_t>(FletchingProducerCaseCount()));
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = FletchingProducerCaseName(static_cast<int32_t>(i));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, ForeignProducer, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace fletching

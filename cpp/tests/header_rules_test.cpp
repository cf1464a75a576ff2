// Rules about the declarations of the async interface on which the published page and upstream's
// header differ: the types of fields and arguments, which a layout does not show. For wrong copies
// of the other declarations see tests/abi_header.
#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>

#include "fletching/abi.h"

namespace {

template <class Expected, class Struct, class Field>
constexpr bool is_declared_as(Field Struct::* /*field*/) {
  return std::is_same_v<Field, Expected>;
}

TEST(Rules, AsyncHeaderProducerFields) {
  // Exactly five members, so there is no release.
  const auto [device_type, request, cancel, additional_metadata, private_data] =
      ArrowAsyncProducer{};
  EXPECT_EQ(offsetof(ArrowAsyncProducer, private_data) + sizeof private_data,
            sizeof(ArrowAsyncProducer));
  EXPECT_EQ(sizeof(ArrowAsyncProducer), 5 * sizeof(void*));
  EXPECT_EQ(device_type, 0);
  EXPECT_TRUE(request == nullptr && cancel == nullptr && additional_metadata == nullptr);
}

TEST(Rules, AsyncHeaderTaskSelf) {
  using Extract = int (*)(ArrowAsyncTask*, ArrowDeviceArray*);
  EXPECT_TRUE(is_declared_as<Extract>(&ArrowAsyncTask::extract_data));
}

TEST(Rules, AsyncHeaderRequestSigned) {
  using Request = void (*)(ArrowAsyncProducer*, std::int64_t);
  EXPECT_TRUE(is_declared_as<Request>(&ArrowAsyncProducer::request));
}

TEST(Rules, AsyncHeaderOnErrorPointer) {
  using OnError = void (*)(ArrowAsyncDeviceStreamHandler*, int, const char*, const char*);
  EXPECT_TRUE(is_declared_as<OnError>(&ArrowAsyncDeviceStreamHandler::on_error));
}

TEST(Rules, AsyncHeaderProducerPointer) {
  EXPECT_TRUE(is_declared_as<ArrowAsyncProducer*>(&ArrowAsyncDeviceStreamHandler::producer));
}

TEST(Rules, DeviceHeaderTypeIsInt32) {
  EXPECT_TRUE((std::is_same_v<ArrowDeviceType, std::int32_t>));
#if !defined(ARROW_DEVICE_CPU) || !defined(ARROW_DEVICE_EXT_DEV)
  ADD_FAILURE() << "the values are not macros";
#endif
}

}  // namespace

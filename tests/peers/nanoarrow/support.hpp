// SPDX-License-Identifier: Apache-2.0
//
// Arrays made and read by nanoarrow.
#ifndef FLETCHING_PEERS_NANOARROW_SUPPORT_HPP
#define FLETCHING_PEERS_NANOARROW_SUPPORT_HPP

#include <gtest/gtest.h>
#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_device.h>

#include <cstdint>
#include <vector>

#include "fletching/owner.hpp"

namespace fletching::peers {

using Values = std::vector<std::int64_t>;

inline Schema int32_schema() {
  Schema schema;
  EXPECT_EQ(ArrowSchemaInitFromType(schema.out(), NANOARROW_TYPE_INT32), NANOARROW_OK);
  EXPECT_EQ(ArrowSchemaSetName(schema.get(), "values"), NANOARROW_OK);
  return schema;
}

inline Array int32_array(const Values& values) {
  Array array;
  EXPECT_EQ(ArrowArrayInitFromType(array.out(), NANOARROW_TYPE_INT32), NANOARROW_OK);
  EXPECT_EQ(ArrowArrayStartAppending(array.get()), NANOARROW_OK);
  for (const std::int64_t value : values) {
    EXPECT_EQ(ArrowArrayAppendInt(array.get(), value), NANOARROW_OK);
  }
  EXPECT_EQ(ArrowArrayFinishBuildingDefault(array.get(), nullptr), NANOARROW_OK);
  return array;
}

/// The values that nanoarrow reads from an array after a full validation.
inline Values read_int32(const ArrowArray* array) {
  ArrowArrayView view;
  ArrowArrayViewInitFromType(&view, NANOARROW_TYPE_INT32);
  ArrowError error{};
  EXPECT_EQ(ArrowArrayViewSetArray(&view, array, &error), NANOARROW_OK) << error.message;
  EXPECT_EQ(ArrowArrayViewValidate(&view, NANOARROW_VALIDATION_LEVEL_FULL, &error), NANOARROW_OK)
      << error.message;
  Values values;
  for (std::int64_t i = 0; i < view.length; ++i) {
    values.push_back(ArrowArrayViewGetIntUnsafe(&view, i));
  }
  ArrowArrayViewReset(&view);
  return values;
}

/// A nanoarrow device that is not the CPU; valid for the lifetime of the program.
inline ArrowDevice* fake_device(ArrowDeviceType type, std::int64_t id) {
  static std::vector<ArrowDevice> devices(8);
  ArrowDevice& device = devices.at(static_cast<std::size_t>(id));
  device = {};
  device.device_type = type;
  device.device_id = id;
  return &device;
}

/// A nanoarrow stream of these batches.
inline ArrowArrayStream* basic_stream(ArrayStream& stream, const std::vector<Values>& batches) {
  Schema schema = int32_schema();
  EXPECT_EQ(ArrowBasicArrayStreamInit(stream.out(), schema.get(),
                                      static_cast<std::int64_t>(batches.size())),
            NANOARROW_OK);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    Array array = int32_array(batches[i]);
    ArrowBasicArrayStreamSetArray(stream.get(), static_cast<std::int64_t>(i), array.get());
  }
  return stream.get();
}

}  // namespace fletching::peers

#endif  // FLETCHING_PEERS_NANOARROW_SUPPORT_HPP

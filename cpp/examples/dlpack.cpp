// SPDX-License-Identifier: Apache-2.0
//
// Exports an array as a DLPack tensor, as for __dlpack__, and imports a tensor as an array.
#include <cstdint>
#include <iostream>
#include <utility>
#include <vector>

#include "fletching/array_builder.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/schema_builder.hpp"

using namespace fletching;

static Result<DeviceArray> array_of(std::vector<float> values) {
  auto builder = build_array({.buffers = 2}, std::move(values));
  if (!builder) return std::move(builder).error();
  const auto length = static_cast<std::int64_t>(builder->object().size());
  builder->set(builder->root(), {.length = length}, {nullptr, builder->object().data()});
  return builder->finish_cpu();
}

int main() try {  // value() throws if there is an error
  const Schema schema = make_schema({.format = "f"}).value();
  DeviceArray array = array_of({1.5F, 2.5F, 3.5F}).value();
  DlpackTensor tensor = to_dlpack(*schema, array).value();  // the array has moved into it
  std::cout << "a tensor of " << tensor->dl_tensor.shape[0] << ", read-only "
            << ((tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) << '\n';

  const ImportedTensor imported = from_dlpack(std::move(tensor)).value();
  const auto* values = static_cast<const float*>(imported.array->array.buffers[1]);
  std::cout << "format " << imported.schema->format << ", last value " << values[2] << '\n';
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

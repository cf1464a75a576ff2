// SPDX-License-Identifier: Apache-2.0
//
// Makes a stream of batches from a callable, and reads it. The two sides share only the C struct.
#include <cstdint>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "fletching/array_builder.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/stream.hpp"
#include "fletching/stream_producer.hpp"

using namespace fletching;

static Result<DeviceArray> batch_of(std::vector<std::int32_t> values) {
  auto builder = build_array({.buffers = 2}, std::move(values));
  if (!builder) return std::move(builder).error();
  const std::vector<std::int32_t>& kept = builder->object();
  const auto length = static_cast<std::int64_t>(kept.size());
  builder->set(builder->root(), {.length = length}, {nullptr, kept.data()});
  return builder->finish_cpu();
}

int main() try {  // value() throws if there is an error
  Schema schema = make_schema({.format = "i", .name = "values"}).value();
  auto next = [n = 0]() mutable -> std::optional<Result<DeviceArray>> {
    if (n == 3) return std::nullopt;  // the end
    ++n;
    return batch_of(std::vector<std::int32_t>(static_cast<std::size_t>(n), n));
  };
  auto stream = make_device_stream(std::move(schema), ARROW_DEVICE_CPU, next).value();

  DeviceArrayStreamReader reader(std::move(stream));
  while (std::optional<Result<DeviceArray>> batch = reader.next()) {
    if (!batch->ok()) return std::cerr << batch->error().message() << '\n', 1;
    std::cout << "a batch of " << batch->value().length() << '\n';
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

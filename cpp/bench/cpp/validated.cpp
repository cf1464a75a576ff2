// SPDX-License-Identifier: Apache-2.0
//
// A stream of 100 batches, read to the end, with each level of the validation layer and without it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

#include "batch.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/stream_producer.hpp"
#include "fletching/validate.h"
#include "peer.h"

namespace fletching {
namespace {

DeviceArrayStream batches() {
  const SchemaNode column{.format = "l"};
  Result<Schema> schema =
      make_schema({.format = "+s", .children = {static_cast<std::size_t>(peer_size), column}});
  if (!schema) std::abort();
  Result<DeviceArrayStream> stream =
      make_device_stream(*std::move(schema), ARROW_DEVICE_CPU,
                         [left = 100]() mutable -> std::optional<Result<DeviceArray>> {
                           if (left-- == 0) return std::nullopt;
                           return produce_batch();
                         });
  if (!stream) std::abort();
  return *std::move(stream);
}

void read_all(DeviceArrayStream stream) {
  Schema schema;  // the layer compares each batch with it
  if (stream->get_schema(stream.get(), schema.out()) != 0) std::abort();
  for (;;) {
    DeviceArray batch;
    if (stream->get_next(stream.get(), batch.out()) != 0) std::abort();
    if (batch.is_released()) return;
    read_batch(batch);
  }
}

void plain() { read_all(batches()); }

template <std::int32_t level>
void validated() {
  const FletchingValidateOptions options = {
      .size = sizeof options, .level = level, .report = nullptr, .context = nullptr, .stress = 0};
  DeviceArrayStream stream = batches();
  if (FletchingValidateDeviceStream(stream.get(), &options, nullptr) != 0) std::abort();
  read_all(std::move(stream));
}

}  // namespace
}  // namespace fletching

int main(int argc, char** argv) {
  static const Case cases[] = {{"plain", &fletching::plain},
                               {"protocol", &fletching::validated<FLETCHING_VALIDATE_PROTOCOL>},
                               {"shape", &fletching::validated<FLETCHING_VALIDATE_SHAPE>},
                               {"data", &fletching::validated<FLETCHING_VALIDATE_DATA>}};
  return peer_main(argc, argv, cases, static_cast<int>(std::size(cases)));
}

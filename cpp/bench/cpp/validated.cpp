// SPDX-License-Identifier: Apache-2.0
//
// A stream of one batch, read to the end, with and without the validation layer.
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

DeviceArrayStream one_batch() {
  Result<Schema> schema = make_schema({.format = "+s"});
  if (!schema) std::abort();
  Result<DeviceArrayStream> stream =
      make_device_stream(*std::move(schema), ARROW_DEVICE_CPU,
                         [left = 1]() mutable -> std::optional<Result<DeviceArray>> {
                           if (left-- == 0) return std::nullopt;
                           return produce_batch();
                         });
  if (!stream) std::abort();
  return *std::move(stream);
}

void read_all(DeviceArrayStream stream) {
  for (;;) {
    DeviceArray batch;
    if (stream->get_next(stream.get(), batch.out()) != 0) std::abort();
    if (batch.is_released()) return;
    read_batch(batch);
  }
}

void plain() { read_all(one_batch()); }

void validated() {
  DeviceArrayStream stream = one_batch();
  if (FletchingValidateDeviceStream(stream.get(), nullptr, nullptr) != 0) std::abort();
  read_all(std::move(stream));
}

}  // namespace
}  // namespace fletching

int main(int argc, char** argv) {
  static const Case cases[] = {{"plain", &fletching::plain}, {"validated", &fletching::validated}};
  return peer_main(argc, argv, cases, static_cast<int>(std::size(cases)));
}

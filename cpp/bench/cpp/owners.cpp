// SPDX-License-Identifier: Apache-2.0
//
// The cases of ../c/raw.c, written as a user of the library would.
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

#include "batch.hpp"
#include "fletching/dlpack.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/stream_producer.hpp"
#include "peer.h"

namespace fletching {
namespace {

void move_release() {
  ArrowDeviceArray source;
  peer_produce(&source);

  const DeviceArray array(&source);
}

Result<DeviceArray> produce_leaf() noexcept {
  Data data;
  const void* values = data.addresses()[0];
  return make_device_array({.length = kRows}, {nullptr, values}, std::move(data), ARROW_DEVICE_CPU,
                           -1);
}

void leaf() {
  Result<DeviceArray> source = produce_leaf();
  if (!source) std::abort();
  const DeviceArray array = *std::move(source);
}

void handoff() {
  Result<DeviceArray> source = produce_batch();
  if (!source) std::abort();
  const DeviceArray array = *std::move(source);
  read_batch(array);
}

/// The type of the leaf; a user already has it.
const Schema& int64_schema() {
  static const Schema schema = make_schema({.format = "l"}).value();
  return schema;
}

void tensor() {
  Result<DeviceArray> source = produce_leaf();
  if (!source) std::abort();
  Result<DlpackTensor> tensor = to_dlpack(*int64_schema(), *source);
  if (!tensor || !from_dlpack(*std::move(tensor))) std::abort();
}

void stream() {
  Result<Schema> type = make_schema({.format = "l"});
  if (!type) std::abort();
  Result<DeviceArrayStream> made =
      make_device_stream(*std::move(type), ARROW_DEVICE_CPU,
                         [left = peer_size]() mutable -> std::optional<Result<DeviceArray>> {
                           if (left-- == 0) return std::nullopt;
                           return produce_leaf();
                         });
  if (!made) std::abort();
  ArrowDeviceArrayStream out;
  made->move_to(&out);
  peer_read(&out);
}

void hold(Result<DeviceArray> source) {
  if (!source) std::abort();
  source->move_to(peer_keep());
}

void hold_leaf() { hold(produce_leaf()); }
void hold_batch() { hold(produce_batch()); }

}  // namespace
}  // namespace fletching

int main(int argc, char** argv) {
  static const Case cases[] = {{"move_release", &fletching::move_release},
                               {"leaf", &fletching::leaf},
                               {"handoff", &fletching::handoff},
                               {"tensor", &fletching::tensor},
                               {"stream", &fletching::stream},
                               {"hold_leaf", &fletching::hold_leaf},
                               {"hold_batch", &fletching::hold_batch}};
  return peer_main(argc, argv, cases, static_cast<int>(std::size(cases)));
}

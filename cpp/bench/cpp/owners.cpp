// SPDX-License-Identifier: Apache-2.0
//
// The cases of ../c/raw.c with the library, as its users write them.
#include <cstdlib>
#include <iterator>
#include <utility>

#include "batch.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
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

}  // namespace
}  // namespace fletching

int main(int argc, char** argv) {
  static const Case cases[] = {{"move_release", &fletching::move_release},
                               {"leaf", &fletching::leaf},
                               {"handoff", &fletching::handoff}};
  return peer_main(argc, argv, cases, static_cast<int>(std::size(cases)));
}

// SPDX-License-Identifier: Apache-2.0
//
// The cases of ../c/raw.c with the library, as its users write them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "fletching/array_builder.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "peer.h"

namespace fletching {
namespace {

// What owns the data of an array.
class Data {
 public:
  Data() noexcept : addresses_(peer_data()) {}
  Data(Data&& other) noexcept : addresses_(std::exchange(other.addresses_, nullptr)) {}
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  Data& operator=(Data&&) = delete;
  ~Data() {
    if (addresses_ != nullptr) peer_drop(addresses_);
  }

  const void* const* addresses() const noexcept { return addresses_; }

 private:
  const void* const* addresses_;
};

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

Result<DeviceArray> produce_batch() noexcept {
  auto builder = build_array({.arrays = kColumns, .buffers = 1 + (2 * kColumns)}, Data());
  if (!builder) return std::move(builder).error();
  builder->set(builder->root(), {.length = kRows}, {nullptr});
  const void* const* values = builder->object().addresses();
  for (ArrowArray& column : builder->add_children(builder->root(), kColumns)) {
    builder->set(column, {.length = kRows}, {nullptr, *values++});
  }
  return builder->finish_cpu();
}

void handoff() {
  Result<DeviceArray> source = produce_batch();
  if (!source) std::abort();
  const DeviceArray array = *std::move(source);
  int64_t read = 0;
  for (const ArrowArray* child : array.children()) {
    read += child->length + child->null_count + *static_cast<const int64_t*>(child->buffers[1]);
  }
  peer_use(read);
}

}  // namespace
}  // namespace fletching

int main(int argc, char** argv) {
  static const Case cases[] = {{"move_release", &fletching::move_release},
                               {"leaf", &fletching::leaf},
                               {"handoff", &fletching::handoff}};
  return peer_main(argc, argv, cases, static_cast<int>(std::size(cases)));
}

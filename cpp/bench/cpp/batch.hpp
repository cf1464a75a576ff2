// SPDX-License-Identifier: Apache-2.0
//
// The batch of 1,000 columns used by the handoff cases.
#ifndef FLETCHING_BENCHMARKS_BATCH_HPP
#define FLETCHING_BENCHMARKS_BATCH_HPP

#include <cstdint>
#include <utility>

#include "fletching/array_builder.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "peer.h"

namespace fletching {

/// Owner of an array's data.
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

inline Result<DeviceArray> produce_batch() noexcept {
  const std::int64_t columns = peer_size;
  auto builder = build_array({.arrays = columns, .buffers = 1 + (2 * columns)}, Data());
  if (!builder) return std::move(builder).error();
  builder->set(builder->root(), {.length = kRows}, {nullptr});
  const void* const* values = builder->object().addresses();
  for (ArrowArray& column : builder->add_children(builder->root(), columns)) {
    builder->set(column, {.length = kRows}, {nullptr, *values++});
  }
  return builder->finish_cpu();
}

inline void read_batch(const DeviceArray& array) {
  int64_t read = 0;
  for (const ArrowArray* child : array.children()) {
    read += child->length + child->null_count + *static_cast<const int64_t*>(child->buffers[1]);
  }
  peer_use(read);
}

}  // namespace fletching

#endif  // FLETCHING_BENCHMARKS_BATCH_HPP

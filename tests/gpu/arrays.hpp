// SPDX-License-Identifier: Apache-2.0
//
// Device arrays for the checks, and streams with a gate.
#ifndef FLETCHING_TESTS_GPU_ARRAYS_HPP
#define FLETCHING_TESTS_GPU_ARRAYS_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "../../cpp/tests/released_array.hpp"
#include "asserter.hpp"
#include "cuda.hpp"
#include "fletching/array_builder.hpp"
#include "fletching/export_event.hpp"
#include "fletching/owner.hpp"
#include "fletching/release_after.hpp"
#include "fletching/schema_builder.hpp"
#include "fletching/sync_event.hpp"

namespace fletching::gpu {

using testing::Releases;

inline constexpr std::size_t kBytes = 4096;
inline constexpr std::uint8_t kOld = 0x11;
inline constexpr std::uint8_t kNew = 0x22;

struct AddRelease {
  void operator()(Releases* releases) const { releases->add(); }
};
/// Counts in the destructor. Declare it before its owner's other members, so that it is destroyed
/// last.
using Counted = std::unique_ptr<Releases, AddRelease>;

inline Schema int32_schema() {
  Result<Schema> schema = make_schema({.format = "i"});
  if (!schema) fail(schema.error().code(), schema.error().message());
  return *std::move(schema);
}

/// int32 values in device memory. The array's release destroys `owner`.
template <class Owner>
DeviceArray make_array(const void* data, std::size_t bytes, Owner owner) {
  Result<DeviceArray> array =
      make_device_array({.length = static_cast<std::int64_t>(bytes / sizeof(std::int32_t))},
                        {nullptr, data}, std::move(owner), ARROW_DEVICE_CUDA, 0);
  if (!array) fail(array.error().code(), array.error().message());
  return *std::move(array);
}

/// Memory with old data, and a producer whose new data is behind a shut gate. Everything that may
/// make a driver wait, such as memory, is allocated before the gate is shut and freed after it. The
/// caller's context stays current: it need not be the memory's.
class Gated {
 public:
  Gated() : memory_(kBytes), seen_(kBytes) {
    producer_.fill(memory_, kOld);
    producer_.synchronize();
    // The first read makes the driver load what it needs.
    consumer_.read(seen_, memory_);
    consumer_.synchronize();
    gate_.shut(producer_);
    producer_.fill(memory_, kNew);
    outside_.emplace();
  }

  [[nodiscard]] const Stream& producer() const { return producer_; }
  [[nodiscard]] const Stream& consumer() const { return consumer_; }
  [[nodiscard]] const DeviceMemory& memory() const { return memory_; }
  Releases& releases() { return releases_; }

  /// An array over the memory, which it does not own.
  DeviceArray array() { return make_array(memory_.data(), kBytes, Counted(&releases_)); }
  DeviceArray array_with_event(Asserter& asserter) {
    DeviceArray made = array();
    asserter.require_success("export_with_event",
                             export_with_event(made, {ARROW_DEVICE_CUDA, producer_.get()}));
    return made;
  }

  /// Negative control: a stream that does not wait reads the old data.
  void require_old_data(Asserter& asserter) {
    const Current current;
    careless_.read(seen_, memory_);
    careless_.synchronize();
    asserter.require(seen_.holds(kOld), "a stream that has not waited does not see the old data");
  }
  /// Checks that a read on `stream` blocks until the gate is opened, and then sees the new data.
  void require_waits(Asserter& asserter, const Stream& stream) {
    require_waits(asserter, static_cast<cuda::CUstream>(stream.get()));
  }
  void require_waits(Asserter& asserter, void* handle) {
    const Current current;
    auto* stream = static_cast<cuda::CUstream>(handle);
    require_call("cuMemcpyDtoHAsync",
                 cu().cu_memcpy_dtoh_async(seen_.get(), memory_.address(), kBytes, stream));
    settle();
    asserter.require(cu().cu_stream_query(stream) == cuda::kCudaErrorNotReady,
                     "a read on a stream that waits is done, and the gate is shut");
    gate_.open();
    require_call("cuStreamSynchronize", cu().cu_stream_synchronize(stream));
    asserter.require(seen_.holds(kNew), "a stream that has waited does not see the new data");
  }
  void open() { gate_.open(); }

 private:
  const Current current_;
  Releases releases_;
  DeviceMemory memory_;
  PinnedMemory seen_;
  Stream producer_;
  Stream consumer_;
  Stream careless_;
  Gate gate_;
  std::optional<Outside> outside_;
};

}  // namespace fletching::gpu

#endif  // FLETCHING_TESTS_GPU_ARRAYS_HPP

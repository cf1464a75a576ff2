// SPDX-License-Identifier: Apache-2.0
//
// The stream argument of __dlpack__: what the integer means on which device. Array API,
// "__dlpack__".
#ifndef FLETCHING_DLPACK_STREAM_HPP
#define FLETCHING_DLPACK_STREAM_HPP

#include <cstdint>
#include <optional>
#include <utility>

#include "fletching/abi.h"
#include "fletching/detail/core.hpp"
#include "fletching/device_stream.hpp"
#include "fletching/result.hpp"
#include "fletching/tensor.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// What has to be ordered after the producer's work.
enum class Ordering : std::uint8_t {
  kNone = FLETCHING_ORDER_NOTHING,   ///< nothing: the consumer synchronizes itself, or has waited
  kHost = FLETCHING_ORDER_HOST,      ///< the host: the work has to be done on return
  kStream = FLETCHING_ORDER_STREAM,  ///< a stream of the device
};

/// A stream argument, read.
struct ConsumerStream {
  Ordering ordering{};  ///< has to be set: 0 is EINVAL
  /// The stream of Ordering::kStream, of CUDA or HIP.
  Stream stream{0, nullptr};
};

namespace detail {

/// The stream for data of this device.
constexpr FletchingTensorStream core_order(const ConsumerStream& order, DeviceType type,
                                           std::int64_t device_id) noexcept {
  return {core_stream(order.stream, type, device_id), static_cast<std::int32_t>(order.ordering)};
}

inline Result<ConsumerStream> read_stream(ArrowDeviceType device,
                                          std::optional<std::int64_t> argument) {
  FletchingTensorStream read{};
  const std::int64_t* const number = argument ? &*argument : nullptr;
  Status status = in_core(&FletchingTensorStreamRead, device, number, &read);
  if (!status) return std::move(status).error();
  return ConsumerStream{static_cast<Ordering>(read.ordering), {device, read.stream.handle}};
}

}  // namespace detail

/// The stream argument of __dlpack__ for data on `device`; an empty optional means None.
///
/// CUDA: None or 1 is the legacy default stream, 2 the per-thread one, -1 none, 0 is refused. ROCm:
/// None or 0 is the default stream, -1 none, 1 and 2 are refused. Every other number from there on
/// is a handle. With None and memory that the host reads too, pinned or managed, it is the host
/// that is ordered, which includes the default stream. Elsewhere only None is accepted, and it is
/// the host that is ordered too. Errors are EINVAL.
inline Result<ConsumerStream> read_dlpack_stream(ArrowDeviceType device,
                                                 std::optional<std::int64_t> stream) noexcept {
  return detail::guarded([&] { return detail::read_stream(device, stream); });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_STREAM_HPP

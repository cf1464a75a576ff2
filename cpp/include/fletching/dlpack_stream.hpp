// SPDX-License-Identifier: Apache-2.0
//
// The stream argument of __dlpack__ and its meaning for each device. Array API, "__dlpack__".
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

/// The side that must be ordered after the producer's work.
enum class Ordering : std::uint8_t {
  kNone = FLETCHING_ORDER_NOTHING,   ///< none: the consumer synchronizes itself, or has waited
  kHost = FLETCHING_ORDER_HOST,      ///< the host: the work must be done on return
  kStream = FLETCHING_ORDER_STREAM,  ///< a stream of the device
};

/// A parsed stream argument.
struct ConsumerStream {
  Ordering ordering{};  ///< must be set: 0 is EINVAL
  /// The CUDA or HIP stream of Ordering::kStream.
  Stream stream{0, nullptr};
};

namespace detail {

/// Returns the core's form of `order` for data on this device.
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

/// Parses the stream argument of __dlpack__ for data on `device`; an empty optional means None.
///
/// CUDA: None and 1 are the legacy default stream, 2 is the per-thread default stream, -1 means no
/// synchronization, and 0 is rejected. ROCm: None and 0 are the default stream, -1 means no
/// synchronization, and 1 and 2 are rejected. Every larger number is a handle. None with pinned or
/// managed memory, which the host can read too, orders the host, which includes the default stream.
/// Other devices accept only None, which orders the host. Errors: EINVAL.
inline Result<ConsumerStream> read_dlpack_stream(ArrowDeviceType device,
                                                 std::optional<std::int64_t> stream) noexcept {
  return detail::in_operation("read_dlpack_stream",
                              [&] { return detail::read_stream(device, stream); });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DLPACK_STREAM_HPP

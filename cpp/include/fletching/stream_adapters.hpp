// SPDX-License-Identifier: Apache-2.0
//
// Adapters from a stream of arrays to a device stream on the CPU and back.
#ifndef FLETCHING_STREAM_ADAPTERS_HPP
#define FLETCHING_STREAM_ADAPTERS_HPP

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "fletching/options.hpp"
#include "fletching/owner.hpp"
#include "fletching/result.hpp"
#include "fletching/stream.hpp"
#include "fletching/stream_producer.hpp"
#include "fletching/sync_event.hpp"
#include "fletching/tables.hpp"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// Converts an array to a device array on the CPU, with device id -1 and no event. Consumes its
/// argument.
inline DeviceArray to_device_array(Array array) noexcept {
  DeviceArray device;
  ArrowDeviceArray* raw = device.out();
  raw->device_type = ARROW_DEVICE_CPU;
  raw->device_id = -1;
  detail::move_struct(array.get(), &raw->array);
  return device;
}

/// Converts a device array to an array, for a reader on the CPU. Blocks until its event has
/// completed.
///
/// Errors: EINVAL if the array is released, or if the CPU cannot read memory of its device type;
/// and the errors of SyncEvent::synchronize, for example if the event cannot be waited on. On error
/// the array is released.
inline Result<Array> to_array(DeviceArray device) noexcept {
  return detail::guarded([&]() -> Result<Array> {
    if (device.is_released())
      return Error(EINVAL, "to_array: array is released: expected a live array");
    if (!is_accessible(device->device_type, ARROW_DEVICE_CPU)) {
      return Error(EINVAL, "to_array: device_type: expected memory that the CPU can read, got " +
                               device_name(device->device_type) + "; hint: copy the array");
    }
    Status waited = SyncEvent(device).synchronize();
    if (!waited) return std::move(waited).error();
    Array array;
    detail::move_struct(&device->array, array.get());
    return array;
  });
}

namespace detail {

struct CpuSource {
  ArrayStreamReader reader;

  Result<Schema> schema() noexcept { return reader.schema(); }
  Next<DeviceArray> next() noexcept {
    Next<Array> array = reader.next();
    if (!array) return std::nullopt;
    if (!array->ok()) return std::move(*array).error();
    return to_device_array(**std::move(array));
  }
};

struct HostSource {
  DeviceArrayStreamReader reader;

  Result<Schema> schema() noexcept { return reader.schema(); }
  Next<Array> next() noexcept {
    Next<DeviceArray> array = reader.next();
    if (!array) return std::nullopt;
    if (!array->ok()) return std::move(*array).error();
    return to_array(**std::move(array));
  }
};

}  // namespace detail

/// Converts a stream to a device stream on the CPU, without a copy. Consumes its argument. The
/// stream's errors keep their errno value and message.
///
/// Errors: EINVAL if `stream` is released; ENOMEM. On error the stream is released.
inline Result<DeviceArrayStream> to_device_stream(ArrayStream stream) noexcept {
  return detail::guarded([&]() -> Result<DeviceArrayStream> {
    if (stream.is_released()) return Error(EINVAL, "stream: released: expected a live stream");
    return detail::export_stream<ArrowDeviceArrayStream>(
        detail::CpuSource{ArrayStreamReader(std::move(stream))}, ARROW_DEVICE_CPU, {});
  });
}

/// Converts a device stream to a plain stream, for a reader on the CPU, without a copy. get_next
/// blocks until the event of the batch has completed. Consumes its argument.
///
/// Errors: EINVAL if `stream` is released, or if the CPU cannot read memory of its device type;
/// ENOMEM. On error the stream is released. get_next also returns the errors of to_array.
inline Result<ArrayStream> to_array_stream(DeviceArrayStream stream,
                                           Options options = {}) noexcept {
  return detail::guarded([&]() -> Result<ArrayStream> {
    if (stream.is_released()) return Error(EINVAL, "stream: released: expected a live stream");
    if (!is_accessible(stream->device_type, ARROW_DEVICE_CPU)) {
      return Error(EINVAL, "stream: device_type: expected memory that the CPU can read, got " +
                               device_name(stream->device_type) + "; hint: copy the arrays");
    }
    DeviceArrayStreamReader reader(std::move(stream), std::move(options));
    return detail::export_stream<ArrowArrayStream>(detail::HostSource{std::move(reader)},
                                                   ARROW_DEVICE_CPU, {});
  });
}

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_STREAM_ADAPTERS_HPP

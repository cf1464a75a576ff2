// SPDX-License-Identifier: Apache-2.0
//
// A stream or queue of a device as an argument: its handle, its runtime and its device.
#ifndef FLETCHING_DEVICE_STREAM_HPP
#define FLETCHING_DEVICE_STREAM_HPP

#include <cstdint>

#include "fletching/device_type.hpp"
#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// A stream or queue with its runtime and device. The caller owns it, and keeps it alive while this
/// value or a copy of it is used.
class Stream {
 public:
  /// `handle` is a CUstream, cudaStream_t, hipStream_t or cl_command_queue, or a stream that the
  /// waiter of another device type accepts; `type` is any device type of that runtime.
  ///
  /// CUDA and HIP have default streams, once for each device: NULL and 1 are the legacy stream, 2
  /// is the per-thread stream of the calling thread. They are those of the array's device, whatever
  /// device is current, unless on_device names another one. NULL is the legacy stream also where
  /// CUDA_API_PER_THREAD_DEFAULT_STREAM is defined. OpenCL has no default queue.
  constexpr Stream(DeviceType type, void* handle) noexcept : type_(type), handle_(handle) {}

  /// The address of a handle is not a handle.
  template <class Pointee>
  Stream(DeviceType type, Pointee** address) = delete;

  /// The legacy default stream of CUDA or HIP.
  static Stream legacy(DeviceType type) noexcept {
    return {type, reinterpret_cast<void*>(std::uintptr_t{1})};
  }
  /// The calling thread's default stream of CUDA or HIP.
  static Stream per_thread(DeviceType type) noexcept {
    return {type, reinterpret_cast<void*>(std::uintptr_t{2})};
  }

  /// The same stream, of this device if it is a default stream. The driver knows the device of
  /// every other stream.
  [[nodiscard]] constexpr Stream on_device(std::int64_t device_id) const noexcept {
    Stream stream = *this;
    stream.device_id_ = device_id;
    return stream;
  }

  [[nodiscard]] constexpr DeviceType device_type() const noexcept { return type_; }
  [[nodiscard]] constexpr void* handle() const noexcept { return handle_; }
  /// The device of a default stream; -1 for the array's.
  [[nodiscard]] constexpr std::int64_t device_id() const noexcept { return device_id_; }

 private:
  DeviceType type_;
  std::int64_t device_id_ = -1;
  void* handle_;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DEVICE_STREAM_HPP

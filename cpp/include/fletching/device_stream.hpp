// SPDX-License-Identifier: Apache-2.0
//
// A device stream or queue as an argument: handle, runtime and device.
#ifndef FLETCHING_DEVICE_STREAM_HPP
#define FLETCHING_DEVICE_STREAM_HPP

#include <cstdint>

#include "fletching/device_type.hpp"
#include "fletching/version.h"

namespace fletching::inline FLETCHING_VERSION_NAMESPACE {

/// A stream or queue with its runtime and device. The caller owns the handle and must keep it alive
/// while this value or a copy is used.
class Stream {
 public:
  /// `handle` is a CUstream, cudaStream_t, hipStream_t or cl_command_queue, or the stream of a
  /// waiter for another device type. `type` is any device type of that runtime.
  ///
  /// CUDA and HIP have default streams per device: NULL and 1 are the legacy stream, 2 is the
  /// calling thread's per-thread stream. They belong to the array's device, regardless of the
  /// current device, unless on_device sets another. NULL is the legacy stream even if
  /// CUDA_API_PER_THREAD_DEFAULT_STREAM is defined. OpenCL has no default queue.
  constexpr Stream(DeviceType type, void* handle) noexcept : type_(type), handle_(handle) {}

  /// Rejects the address of a handle at compile time.
  template <class Pointee>
  Stream(DeviceType type, Pointee** address) = delete;

  /// The CUDA or HIP legacy default stream.
  static Stream legacy(DeviceType type) noexcept {
    return {type, reinterpret_cast<void*>(std::uintptr_t{1})};
  }
  /// The CUDA or HIP default stream of the calling thread.
  static Stream per_thread(DeviceType type) noexcept {
    return {type, reinterpret_cast<void*>(std::uintptr_t{2})};
  }

  /// Returns the stream with a device id, which applies to default streams only. The driver knows
  /// the device of every other stream.
  [[nodiscard]] constexpr Stream on_device(std::int64_t device_id) const noexcept {
    Stream stream = *this;
    stream.device_id_ = device_id;
    return stream;
  }

  [[nodiscard]] constexpr DeviceType device_type() const noexcept { return type_; }
  [[nodiscard]] constexpr void* handle() const noexcept { return handle_; }
  /// The device of a default stream; -1 for the device of the array.
  [[nodiscard]] constexpr std::int64_t device_id() const noexcept { return device_id_; }

 private:
  DeviceType type_;
  std::int64_t device_id_ = -1;
  void* handle_;
};

}  // namespace fletching::inline FLETCHING_VERSION_NAMESPACE

#endif  // FLETCHING_DEVICE_STREAM_HPP

// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the HIP stand-in. HIP has a current device per thread instead
// of a current context; its primary context is created on first use.
#ifndef FLETCHING_STANDIN_HIP_FACE_HPP
#define FLETCHING_STANDIN_HIP_FACE_HPP

#include <hip/hip_runtime_api.h>

#include <cstdint>
#include <memory>

#include "../engine/engine.hpp"

// Exports a vendor function. The version script hides everything else.
#define FLETCHING_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace fletching::standin::hip {

// The calling thread's device.
int& current_device();
std::shared_ptr<Context> current();

// NULL and hipStreamPerThread are default streams; unlike CUDA, HIP has no handle for the legacy
// one.
std::shared_ptr<Stream> find(hipStream_t stream, DefaultStream null_means);

// The reported version: the first one with all functions of the table, under the table's name.
inline constexpr int kVersion = 70000000;

// hipEventRecordExternal and hipEventWaitExternal, which ROCm 5.2.3 does not declare.
inline constexpr unsigned int kExternal = 1;

inline std::uintptr_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// Without a device nearly every function returns hipErrorInvalidDevice, as in ROCm 5.2.3.
inline void require_device() { require(engine().device_count() > 0, Status::kInvalidDevice); }

template <class Work>
hipError_t runtime(const char* function, Work work) noexcept {
  return static_cast<hipError_t>(call(function, [&] {
    require_device();
    work();
  }));
}

template <class Work>
hipError_t runtime_freeing(const char* function, Work work) noexcept {
  return static_cast<hipError_t>(call_freeing(function, [&] {
    require_device();
    work();
  }));
}

template <class T>
void store(T* into, T value) {
  require(into != nullptr, Status::kInvalidValue);
  *into = value;
}

}  // namespace fletching::standin::hip

#endif  // FLETCHING_STANDIN_HIP_FACE_HPP

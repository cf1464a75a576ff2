// SPDX-License-Identifier: Apache-2.0
// What the files of the HIP face share. HIP has a device for each thread in place of a context: the
// primary context of that device, made when it is first needed.
#ifndef FLETCHING_STANDIN_HIP_FACE_HPP
#define FLETCHING_STANDIN_HIP_FACE_HPP

#include <hip/hip_runtime_api.h>

#include <cstdint>
#include <memory>

#include "../engine/engine.hpp"

// The vendor's functions are all that the version script lets out.
#define FLETCHING_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace fletching::standin::hip {

// The device that the calling thread uses.
int& current_device();
std::shared_ptr<Context> current();

// NULL and hipStreamPerThread are default streams; unlike CUDA, HIP has no handle for the legacy
// one.
std::shared_ptr<Stream> find(hipStream_t stream, DefaultStream null_means);

// What it says that it is: the first version that has all of the table, and whose name it has.
inline constexpr int kVersion = 70000000;

// hipEventRecordExternal and hipEventWaitExternal, which ROCm 5.2.3 does not declare.
inline constexpr unsigned int kExternal = 1;

inline std::uintptr_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// Without a device nearly every function says hipErrorInvalidDevice, which is what ROCm 5.2.3 does.
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

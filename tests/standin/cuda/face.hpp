// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the CUDA stand-in.
#ifndef FLETCHING_STANDIN_CUDA_FACE_HPP
#define FLETCHING_STANDIN_CUDA_FACE_HPP

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "../engine/engine.hpp"

// Exports a vendor function. The version script hides everything else.
#define FLETCHING_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace fletching::standin::cuda {

// The thread's current context, or NULL.
std::shared_ptr<Context> current();

// The current context. Throws kInvalidContext without one, and the context's error if it is broken.
std::shared_ptr<Context> require_current();

// For functions whose handle already names a context, but whose documentation also demands a
// current one. Real drivers do not check this, and neither does `driver` mode.
void require_some_context();

void require_initialized();

// Returns the stream of a handle, for a call that needs a current context.
std::shared_ptr<Stream> find(CUstream stream, DefaultStream null_means);

// Wrap a vendor function; the second is for functions that free something (call_freeing).
template <class Work>
CUresult driver(const char* function, Work work) noexcept {
  return static_cast<CUresult>(call(function, [&] {
    require_initialized();
    work();
  }));
}

template <class Work>
CUresult driver_freeing(const char* function, Work work) noexcept {
  return static_cast<CUresult>(call_freeing(function, [&] {
    require_initialized();
    work();
  }));
}

template <class T>
void store(T* into, T value) {
  require(into != nullptr, Status::kInvalidValue);
  *into = value;
}

}  // namespace fletching::standin::cuda

#endif  // FLETCHING_STANDIN_CUDA_FACE_HPP

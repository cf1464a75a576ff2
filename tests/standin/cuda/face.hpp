// SPDX-License-Identifier: Apache-2.0
// What the files of the CUDA face share.
#ifndef FLETCHING_STANDIN_CUDA_FACE_HPP
#define FLETCHING_STANDIN_CUDA_FACE_HPP

#include <cuda.h>

#include <cstdint>
#include <memory>

#include "../engine/engine.hpp"

// The vendor's functions are all that the version script lets out.
#define FLETCHING_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace fletching::standin::cuda {

// NULL when the thread has none.
std::shared_ptr<Context> current();

// The current context; kInvalidContext without one, its own error when it is broken.
std::shared_ptr<Context> require_current();

// For functions that take a handle with a context of its own: their text asks for a current context
// all the same. A real driver does without, and so does the mode `driver`.
void require_some_context();

void require_initialized();

// A stream by its handle, for a call that needs a current context.
std::shared_ptr<Stream> find(CUstream stream, DefaultStream null_means);

// The two kinds of functions, and those that free something (call_freeing).
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

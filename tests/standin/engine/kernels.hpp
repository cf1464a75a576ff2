// SPDX-License-Identifier: Apache-2.0
// Modules and the built-in kernels. An image is a NUL-terminated string:
//
//     FLETCHING-STANDIN-IMAGE 1
//     kernel add
//     kernel fill
//
// It names the kernels of the module, each one of
//
//     add(int32* data, int64 n, int32 value)          data[i] += value
//     fill(int32* data, int64 n, int32 value)         data[i] = value
//     copy(int32* to, const int32* from, int64 n)     to[i] = from[i]
//     fletching_invert(Ranges ranges)                 to[i] = ~from[i]
//     fletching_copy(Ranges ranges)                   to[i] = from[i]
//
// A thread does one element, so elements beyond grid * block stay unchanged. The last two belong to
// the reference producer (cpp/producer/kernels/ranges.h).
#ifndef FLETCHING_STANDIN_KERNELS_HPP
#define FLETCHING_STANDIN_KERNELS_HPP

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "context.hpp"

namespace fletching::standin {

class Memory;
struct Kernel;

struct Module {
  std::shared_ptr<Context> context;
  std::vector<const Kernel*> kernels;
};

struct Function {
  Function(std::weak_ptr<Module> of, const Kernel* which) : module(std::move(of)), kernel(which) {}

  std::weak_ptr<Module> module;
  const Kernel* kernel;
  std::atomic<bool> launched = false;
};

// Throws kNoBinaryForGpu for code that a real device could run, and kInvalidImage for anything else
// that is not a stand-in image.
std::shared_ptr<Module> load_image(const void* image, std::shared_ptr<Context> context);

// NULL if the module does not name the kernel.
const Kernel* find_kernel(const Module& module, std::string_view name);

// Throws kInvalidValue for an extent of 0 or a block of more than 1024 threads.
std::uint64_t threads_of(const std::array<unsigned int, 3>& grid,
                         const std::array<unsigned int, 3>& block);

// Reads the arguments immediately; the returned work runs the kernel with that many threads.
std::function<void(Context&)> launch(const Kernel& kernel, std::uint64_t threads, void** arguments,
                                     Memory& memory);

}  // namespace fletching::standin

#endif  // FLETCHING_STANDIN_KERNELS_HPP

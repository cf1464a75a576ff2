// The kernels of the CUDA and ROCm backends.
#ifdef __HIP__
#include <hip/hip_runtime.h>
#endif

#include "ranges.h"

// Writes every bit of `from` inverted; source and target may be the same.
extern "C" __global__ void fletching_invert(Ranges ranges) {
  const auto range = ranges.entries[blockIdx.x];
  for (uint64_t i = threadIdx.x; i < range.bytes; i += blockDim.x) range.to[i] = ~range.from[i];
}

extern "C" __global__ void fletching_copy(Ranges ranges) {
  const auto range = ranges.entries[blockIdx.x];
  for (uint64_t i = threadIdx.x; i < range.bytes; i += blockDim.x) range.to[i] = range.from[i];
}

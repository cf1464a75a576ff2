// The kernels of the CUDA and the ROCm backend.
#ifdef __HIP__
#include <hip/hip_runtime.h>
#endif

// Inverts every bit of `bytes` bytes.
extern "C" __global__ void fletching_invert(unsigned char* buffer, unsigned long long bytes) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < bytes; i += step) buffer[i] = ~buffer[i];
}

extern "C" __global__ void fletching_copy(unsigned char* to, const unsigned char* from,
                                          unsigned long long bytes) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < bytes; i += step) to[i] = from[i];
}

// The compiled device code.
#ifndef FLETCHING_PRODUCER_KERNELS_KERNELS_HPP
#define FLETCHING_PRODUCER_KERNELS_KERNELS_HPP

#include <cstddef>

namespace fletching::producer {

// Empty if the compiler was not found.
struct Image {
  const unsigned char* data;
  size_t size;
};

extern const Image kCudaImage;    // a fatbin with the kernels of kernels.cu
extern const Image kHipImage;     // a code object with the kernels of kernels.cu
extern const Image kVulkanImage;  // SPIR-V with `main`

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_KERNELS_KERNELS_HPP

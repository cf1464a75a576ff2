// The compiled device code.
#pragma once

#include <cstddef>

namespace fletching::producer {

// Empty when its compiler was not there.
struct Image {
  const unsigned char* data;
  size_t size;
};

extern const Image kCudaImage;    // a fatbin with the kernels of kernels.cu
extern const Image kHipImage;     // a code object with the kernels of kernels.cu
extern const Image kVulkanImage;  // SPIR-V with `main`

}  // namespace fletching::producer

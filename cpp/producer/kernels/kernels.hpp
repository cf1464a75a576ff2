// The compiled device code.
#pragma once

#include <cstddef>

namespace fletching::producer {

// Empty when its compiler was not there.
struct Image {
  const unsigned char* data;
  size_t size;
};

extern const Image kCudaImage;    // a fatbin with `fletching_invert`
extern const Image kHipImage;     // a code object with `fletching_invert`
extern const Image kVulkanImage;  // SPIR-V with `main`

}  // namespace fletching::producer

// The real vendor headers, all in one translation unit.
#ifndef FLETCHING_TESTS_VENDOR_HEADERS_HPP
#define FLETCHING_TESTS_VENDOR_HEADERS_HPP

#include <CL/cl.h>
#include <cuda.h>
#include <hip/hip_runtime_api.h>
#include <vulkan/vulkan.h>

#endif  // FLETCHING_TESTS_VENDOR_HEADERS_HPP

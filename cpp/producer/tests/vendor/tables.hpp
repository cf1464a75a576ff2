// The generated tables of all vendors.
#ifndef FLETCHING_TESTS_VENDOR_TABLES_HPP
#define FLETCHING_TESTS_VENDOR_TABLES_HPP

#include "../../../core/vulkan_structs.h"
#include "runtimes/cuda.hpp"
#include "runtimes/hip.hpp"
#include "runtimes/opencl.hpp"
#include "runtimes/vulkan.hpp"

#endif  // FLETCHING_TESTS_VENDOR_TABLES_HPP

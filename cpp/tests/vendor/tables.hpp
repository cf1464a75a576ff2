// The generated tables of all vendors.
#ifndef FLETCHING_TESTS_VENDOR_TABLES_HPP
#define FLETCHING_TESTS_VENDOR_TABLES_HPP

#include "../../core/devices/vulkan_structs.h"
#include "fletching/runtimes/cuda.hpp"
#include "fletching/runtimes/hip.hpp"
#include "fletching/runtimes/opencl.hpp"
#include "fletching/runtimes/vulkan.hpp"

#endif  // FLETCHING_TESTS_VENDOR_TABLES_HPP

// SPDX-License-Identifier: Apache-2.0
//
// The CUDA Array Interface to and from device arrays.
#ifndef FLETCHING_CUDA_ARRAY_HPP
#define FLETCHING_CUDA_ARRAY_HPP

#include "fletching/cuda_array_export.hpp"
#include "fletching/cuda_array_import.hpp"
#include "fletching/cuda_streams.hpp"

#endif  // FLETCHING_CUDA_ARRAY_HPP

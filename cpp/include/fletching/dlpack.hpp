// SPDX-License-Identifier: Apache-2.0
//
// DLPack import and export of device arrays.
#ifndef FLETCHING_DLPACK_HPP
#define FLETCHING_DLPACK_HPP

#include "fletching/dlpack_export.hpp"
#include "fletching/dlpack_import.hpp"
#include "fletching/dlpack_stream.hpp"
#include "fletching/dlpack_tensor.hpp"
#include "fletching/dlpack_types.hpp"

#endif  // FLETCHING_DLPACK_HPP

// SPDX-License-Identifier: Apache-2.0
//
// DLPack to and from device arrays: the types and both directions. The stream argument of
// __dlpack__ needs the runtimes, and so a header of its own: fletching/dlpack_stream.hpp.
#ifndef FLETCHING_DLPACK_HPP
#define FLETCHING_DLPACK_HPP

#include "fletching/dlpack_export.hpp"
#include "fletching/dlpack_import.hpp"
#include "fletching/dlpack_types.hpp"

#endif  // FLETCHING_DLPACK_HPP

// SPDX-License-Identifier: Apache-2.0
//
// The umbrella header, on its own and after the macros of platform headers. Compiling is the test.
#include "platform_macros.h"

#include "fletching/fletching.hpp"

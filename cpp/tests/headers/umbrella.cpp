// SPDX-License-Identifier: Apache-2.0
//
// Compiles the umbrella header alone, after the macros of platform headers. Compiling is the test.
#include "platform_macros.h"

#include "fletching/fletching.hpp"

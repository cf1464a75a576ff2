// SPDX-License-Identifier: Apache-2.0
//
// Every header after the macros of platform headers. Compiling is the test.
#include "platform_macros.h"

#include "all_headers.inc"

// SPDX-License-Identifier: Apache-2.0
//
// Compiles every header after the macros of platform headers. Compiling is the test.
#include "platform_macros.h"

#include "all_headers.inc"

// Instantiated to trigger warnings in members of templates.
template class fletching::Owner<ArrowDeviceArray>;
template class fletching::Owner<ArrowSchema>;
template class fletching::Shared<ArrowArray>;
template class fletching::Shared<ArrowDeviceArray>;
template class fletching::Shared<ArrowSchema>;

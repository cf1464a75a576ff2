// SPDX-License-Identifier: Apache-2.0
//
// Every header after the macros of platform headers. Compiling is the test.
#include "platform_macros.h"

#include "all_headers.inc"

// What warns in a member of a template does so when the member is made.
template class fletching::Owner<ArrowDeviceArray>;
template class fletching::Owner<ArrowSchema>;
template class fletching::Shared<ArrowArray>;
template class fletching::Shared<ArrowDeviceArray>;
template class fletching::Shared<ArrowSchema>;

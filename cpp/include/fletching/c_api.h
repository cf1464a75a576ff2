// SPDX-License-Identifier: Apache-2.0
//
// All of the C ABI of libfletching except for `cuda.h`. C99 and C++.
//
// Names: the object, then the verb. Every symbol of the library begins with Fletching, so that this
// header can be included together with arrow/c/helpers.h and nanoarrow.h, which both define
// ArrowArrayMove.
//
// Threads: any thread may call every function; use one struct from one thread at a time.
//
// Errors: a function that can fail returns 0 or an errno value and writes a FletchingMessage.
// Nothing throws.
#ifndef FLETCHING_C_API_H
#define FLETCHING_C_API_H

#include "fletching/abi.h"
#include "fletching/devices.h"
#include "fletching/events.h"
#include "fletching/export.h"
#include "fletching/handover.h"
#include "fletching/layout.h"
#include "fletching/message.h"
#include "fletching/structs.h"
#include "fletching/tensor.h"
#include "fletching/waiter.h"

#endif  // FLETCHING_C_API_H

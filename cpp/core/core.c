// SPDX-License-Identifier: Apache-2.0
//
// The event core. It is one translation unit, so that a program can compile it as a single file and
// only its public functions have external linkage. C11, libc and threads only.
//
// In dependency order: platform, failure, library; runtime and the runtimes; waiter, events;
// export_event, streams, cuda_exchange; releaser, reaper, release_after; handover; fork;
// device_report; structs; then DLPack: tensor_types, tensor_extension, tensor_walk, tensor_layout,
// tensor_build, tensor_stream; tensor_import, tensor_export, tensor_exchange.
#if !defined(_GNU_SOURCE) && !defined(_WIN32)
#define _GNU_SOURCE  // dladdr, RTLD_NODELETE, clock_gettime
#endif

#define FLETCHING_BUILDING_CORE

#include "cuda_exchange.h"
#include "device_report.h"
#include "fork.h"
#include "handover.h"
#include "structs.h"
#include "tensor_exchange.h"
#include "tensor_import.h"

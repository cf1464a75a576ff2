// SPDX-License-Identifier: Apache-2.0
//
// SYCL: events are C++ objects, so that only a registered waiter can wait on them.
#ifndef FLETCHING_CORE_SYCL_H
#define FLETCHING_CORE_SYCL_H

#include "runtime.h"

static const struct runtime sycl_runtime = {
    .name = "SYCL",
    .title = "SYCL",
    .no_devices =
        "a sycl::event is a C++ object of the SYCL implementation; hint: register the "
        "waiter of fletching/sycl.hpp",
    .no_record = "not supported for SYCL: a sycl::event is a C++ object of the SYCL implementation",
};

#endif  // FLETCHING_CORE_SYCL_H

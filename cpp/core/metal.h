// SPDX-License-Identifier: Apache-2.0
//
// Metal: the host cannot wait on an MTLEvent, so that only a registered waiter can.
#ifndef FLETCHING_CORE_METAL_H
#define FLETCHING_CORE_METAL_H

#include "runtime.h"

static const struct runtime metal_runtime = {
    .name = "Metal",
    .title = "Metal",
    .no_devices =
        "an MTLEvent is an Objective-C object; hint: register the waiter of "
        "fletching/metal.hpp",
    .no_record =
        "not supported by Metal: an MTLEvent is signaled by a command buffer, which the caller "
        "encodes",
};

#endif  // FLETCHING_CORE_METAL_H

/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment variable FLETCHING_VALIDATE in a binding. C99 and C++. */
#ifndef FLETCHING_HANDOVER_H
#define FLETCHING_HANDOVER_H

#include <stdint.h>

#include "fletching/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a program takes a struct or hands it out. */
#define FLETCHING_HANDOVER_IMPORT 0
#define FLETCHING_HANDOVER_EXPORT 1

/* The struct at an address. */
#define FLETCHING_HANDOVER_SCHEMA 0        /* struct ArrowSchema */
#define FLETCHING_HANDOVER_ARRAY 1         /* struct ArrowArray */
#define FLETCHING_HANDOVER_DEVICE_ARRAY 2  /* struct ArrowDeviceArray */
#define FLETCHING_HANDOVER_STREAM 3        /* struct ArrowArrayStream */
#define FLETCHING_HANDOVER_DEVICE_STREAM 4 /* struct ArrowDeviceArrayStream */
#define FLETCHING_HANDOVER_TENSOR 5        /* DLManagedTensorVersioned* */
#define FLETCHING_HANDOVER_LEGACY_TENSOR 6 /* DLManagedTensor* */
#define FLETCHING_HANDOVER_HANDLER 7       /* struct ArrowAsyncDeviceStreamHandler* */

/** Wraps a struct in place with FletchingValidateHandover of libfletching. The first call loads the
 * library, from the path in FLETCHING_LIBRARY or by name. If that fails, it writes one line to
 * stderr, and calls abort() if FLETCHING_VALIDATE begins with "abort"; later calls then have no
 * effect. A binding calls it for the structs that it imports and exports if FLETCHING_VALIDATE is
 * set. Any thread. */
FLETCHING_EXPORT void FletchingHandOver(int32_t direction, int32_t kind, void* address);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_HANDOVER_H */

/* SPDX-License-Identifier: Apache-2.0
 *
 * What block.c calls of Go, for releases.c. */
#include "block.h"

struct FletchingShare* FLETCHING_PREFIXED(DropValue)(uintptr_t handle);

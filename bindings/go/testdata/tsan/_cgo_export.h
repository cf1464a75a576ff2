/* SPDX-License-Identifier: Apache-2.0
 *
 * The Go functions called by block.c, for releases.c. */
#include "block.h"

struct FletchingShare* FLETCHING_PREFIXED(DropValue)(uintptr_t handle);

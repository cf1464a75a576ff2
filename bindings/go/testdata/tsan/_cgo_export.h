/* SPDX-License-Identifier: Apache-2.0
 *
 * What block.c calls of Go, for releases.c. */
#include "block.h"

struct FletchingShare* fletching_go_drop(uintptr_t handle);

// SPDX-License-Identifier: Apache-2.0

#include "../../core/fletching_core.h"

uint64_t FLETCHING_PREFIXED(Layout)(void);

uint64_t FLETCHING_PREFIXED(Layout)(void) { return FLETCHING_LAYOUT; }

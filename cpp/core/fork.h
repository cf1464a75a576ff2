// SPDX-License-Identifier: Apache-2.0
//
// Resets the core's locks, which a child of fork inherits in any state.
#ifndef FLETCHING_CORE_FORK_H
#define FLETCHING_CORE_FORK_H

#include "handover.h"
#include "release_after.h"

#if !defined(_WIN32) && !defined(__wasi__)
static void reset_locks(void) {
  lock_type* const locks[] = {
      &waiter_lock,       &starting,         &reaper.lock,         &releaser.lock,
      &cuda_library.lock, &hip_library.lock, &opencl_library.lock, &vulkan_library.lock,
      &handover_lock,
  };
  for (size_t i = 0; i < sizeof locks / sizeof locks[0]; ++i) reset_lock(locks[i]);
}
#endif

#endif  // FLETCHING_CORE_FORK_H

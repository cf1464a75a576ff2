/* SPDX-License-Identifier: Apache-2.0
 *
 * Includes the core and makes its allocations fail. */
#ifndef FLETCHING_TESTS_CORE_MEMORY_H
#define FLETCHING_TESTS_CORE_MEMORY_H

#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/* --- Memory: the nth next allocation of this thread fails. --- */

static _Thread_local int allocations_left = -1;

static void fail_allocation(int nth) { allocations_left = nth; }

/* Returns whether the allocation has failed, and disables further failures. */
static bool has_failed_allocation(void) {
  const bool has_failed = allocations_left == -2;
  allocations_left = -1;
  return has_failed;
}

static bool is_out_of_memory(void) {
  if (allocations_left < 0) return false;
  if (allocations_left-- > 0) return false;
  allocations_left = -2;
  return true;
}

static void* test_malloc(size_t size) { return is_out_of_memory() ? NULL : malloc(size); }
static void* test_calloc(size_t count, size_t size) {
  return is_out_of_memory() ? NULL : calloc(count, size);
}

#define malloc test_malloc
#define calloc test_calloc
#include "../../core/core.c" /* NOLINT(bugprone-suspicious-include) */
#undef malloc
#undef calloc

#include "../check.h" /* NOLINT(misc-include-cleaner): for its users */

#endif /* FLETCHING_TESTS_CORE_MEMORY_H */

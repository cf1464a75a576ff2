/* SPDX-License-Identifier: Apache-2.0
 *
 * A check for C tests that prints its location on failure and continues. */
#ifndef FLETCHING_TESTS_CHECK_H
#define FLETCHING_TESTS_CHECK_H

#include <stdio.h>

static int checks = 0;
static int failures = 0;
static const char* first_failure = "";

#define CHECK(condition)                                              \
  do {                                                                \
    ++checks;                                                         \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      if (failures++ == 0) first_failure = #condition;                \
    }                                                                 \
  } while (0)

#endif /* FLETCHING_TESTS_CHECK_H */

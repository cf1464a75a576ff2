/* Selects a mutant of C or C++ at run time. The compiler includes this file first (-include).
 *
 * FLETCHING_MUTANT is the number of the selected mutant. FLETCHING_MUTANTS_SEEN names a file that
 * gets the number of each mutant that is reached. This allocates no memory, because tests make
 * allocations fail.
 */
#ifndef FLETCHING_MUTANT_H
#define FLETCHING_MUTANT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* no later header can ask for it */
#endif

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Weak, so that all files of a program or library share them. */
__attribute__((weak)) int fletching_mutant_chosen = -1;
__attribute__((weak)) int fletching_mutants_file = -1;
__attribute__((weak)) unsigned char fletching_mutants_seen[16384];

/* Runs before C++ constructors. */
__attribute__((constructor(101))) static void fletching_mutants_start(void) {
  const char* number = getenv("FLETCHING_MUTANT");
  const char* path = getenv("FLETCHING_MUTANTS_SEEN");
  if (number != NULL) fletching_mutant_chosen = atoi(number);
  if (path != NULL && fletching_mutants_file < 0) {
    fletching_mutants_file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  }
}

static inline bool fletching_mutant_at_run_time(int number) {
  if (fletching_mutants_file >= 0 && number < (int)sizeof fletching_mutants_seen &&
      !__atomic_exchange_n(&fletching_mutants_seen[number], 1, __ATOMIC_RELAXED)) {
    char line[16];
    const int length = snprintf(line, sizeof line, "%d\n", number);
    /* O_APPEND makes this one atomic write. */
    const ssize_t written = write(fletching_mutants_file, line, (size_t)length);
    (void)written;
  }
  return number == fletching_mutant_chosen;
}

#ifdef __cplusplus
/* Never mutates a constant expression. Must be C++14, because CMake's compiler checks include it.
 */
constexpr bool fletching_mutant(int number) noexcept {
  return !__builtin_is_constant_evaluated() && fletching_mutant_at_run_time(number);
}
#else
static inline bool fletching_mutant(int number) { return fletching_mutant_at_run_time(number); }
#endif

#endif /* FLETCHING_MUTANT_H */

/* What fletching_mutant.hpp is, for C. */
#ifndef FLETCHING_MUTANT_H
#define FLETCHING_MUTANT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* comes before every other header, so that none can ask for it later */
#endif

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int fletching_mutant_chosen = -1;
static int fletching_mutants_file = -1;
static unsigned char fletching_mutants_seen[16384];

__attribute__((constructor(101))) static void fletching_mutants_start(void) {
  const char* number = getenv("FLETCHING_MUTANT");
  const char* path = getenv("FLETCHING_MUTANTS_SEEN");
  if (number != NULL) fletching_mutant_chosen = atoi(number);
  if (path != NULL) {
    fletching_mutants_file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  }
}

/* No memory is allocated: tests let it run out. */
static inline bool fletching_mutant(int number) {
  if (fletching_mutants_file >= 0 && number < (int)sizeof fletching_mutants_seen &&
      !__atomic_exchange_n(&fletching_mutants_seen[number], 1, __ATOMIC_RELAXED)) {
    char line[16];
    const int length = snprintf(line, sizeof line, "%d\n", number);
    const ssize_t written = write(fletching_mutants_file, line, (size_t)length);
    (void)written;
  }
  return number == fletching_mutant_chosen;
}

#endif /* FLETCHING_MUTANT_H */

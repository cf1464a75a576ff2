/* One-line messages and comma-joined name lists. Internal to the oracle. */
#ifndef FLETCHING_TESTS_ORACLE_MESSAGE_H
#define FLETCHING_TESTS_ORACLE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

/* Writes one printable line, truncated to `capacity`; `message` may be NULL. Returns 1, so that a
 * check can end with `return Fail(...)`. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int Fail(char* message, size_t capacity, const char* format, ...);

/* A name from the code under test, for use in a message. */
const char* Printable(const char* name);

/* One name in "a,b,c", not NUL-terminated. */
typedef struct {
  const char* text;
  int length;
} Name;

/* Advances to the next name of the list at `*rest`. Returns 0 at the end. `*rest` must start at the
 * beginning of the list. */
int NextName(const char** rest, Name* name);

int NameIs(Name name, const char* text);

/* The number of occurrences of `name` in the list. */
int32_t CountName(const char* names, const char* name);

#endif /* FLETCHING_TESTS_ORACLE_MESSAGE_H */

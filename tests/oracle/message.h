/* One-line messages and comma-joined name lists. Internal to the oracle. */
#ifndef FLETCHING_TESTS_ORACLE_MESSAGE_H
#define FLETCHING_TESTS_ORACLE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

/* Writes one printable line, cut to `capacity`; `message` may be NULL. Returns 1, so that a check
 * ends with `return Fail(...)`. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int Fail(char* message, size_t capacity, const char* format, ...);

/* A foreign name in a message. */
const char* Printable(const char* name);

/* One name of "a,b,c": not terminated. */
typedef struct {
  const char* text;
  int length;
} Name;

/* Moves to the next name of the list at `*rest`; 0 at the end. Start with `*rest` at the list's
 * beginning. */
int NextName(const char** rest, Name* name);

int NameIs(Name name, const char* text);

/* How often `name` is in the list. */
int32_t CountName(const char* names, const char* name);

#endif /* FLETCHING_TESTS_ORACLE_MESSAGE_H */

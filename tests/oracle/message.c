#include "message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int Fail(char* message, size_t capacity, const char* format, ...) {
  if (message == NULL || capacity == 0) return 1;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, capacity, format, arguments);
  va_end(arguments);
  /* Names come from the code under test, so keep the message one line of ASCII. */
  for (char* c = message; *c != '\0'; ++c) {
    if (*c < ' ' || *c > '~') *c = '?';
  }
  return 1;
}

const char* Printable(const char* name) { return name != NULL ? name : "(NULL)"; }

int NextName(const char** rest, Name* name) {
  if (*rest == NULL || **rest == '\0') return 0;
  name->text = *rest;
  name->length = (int)strcspn(*rest, ",");
  *rest += name->length;
  if (**rest == ',') ++*rest;
  return 1;
}

int NameIs(Name name, const char* text) {
  const size_t length = (size_t)name.length;
  return strlen(text) == length && memcmp(name.text, text, length) == 0;
}

int32_t CountName(const char* names, const char* name) {
  int32_t count = 0;
  Name next;
  while (NextName(&names, &next)) {
    if (NameIs(next, name)) ++count;
  }
  return count;
}

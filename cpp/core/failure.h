// SPDX-License-Identifier: Apache-2.0
//
// Errors inside the core: a code and a message for the caller's FletchingMessage.
#ifndef FLETCHING_CORE_FAILURE_H
#define FLETCHING_CORE_FAILURE_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fletching/message.h"

struct failure {
  int code;        // an errno value; 0: no error
  int32_t result;  // returned by the vendor's function
  struct FletchingMessage message;
};

// Used instead of an initializer, which would write the whole text.
static void no_failure(struct failure* failure) {
  failure->code = 0;
  failure->result = 0;
  failure->message.text[0] = '\0';
}

// Length of the UTF-8 character at `text`; 0 if it is invalid. Stops at NUL.
static size_t utf8_length(const char* text) {
  const unsigned char* byte = (const unsigned char*)text;
  const unsigned char first = byte[0];
  if (first == 0) return 0;
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  for (size_t i = 1; i < length; ++i) {
    if ((byte[i] & 0xC0) != 0x80) return 0;
  }
  const bool is_overlong = (first == 0xE0 && byte[1] < 0xA0) || (first == 0xF0 && byte[1] < 0x90);
  const bool is_surrogate = first == 0xED && byte[1] > 0x9F;
  const bool is_too_high = first == 0xF4 && byte[1] > 0x8F;
  return is_overlong || is_surrogate || is_too_high ? 0 : length;
}

// Copies foreign text as one line: replaces line feeds and tabs by spaces, other control characters
// and invalid UTF-8 by "\xNN". Truncates at a character boundary.
static void copy_printable(char* to, size_t size, const char* text) {
  char* const end = to + size - 1;
  while (*text != '\0') {
    const unsigned char first = (unsigned char)*text;
    const bool is_space = first == '\n' || first == '\t';
    const bool is_control = (first < 0x20 || first == 0x7F) && !is_space;
    const size_t length = is_control ? 0 : utf8_length(text);
    const size_t needed = length > 0 ? length : 4;
    if ((size_t)(end - to) < needed) break;
    if (is_space) {
      *to = ' ';
    } else if (length > 0) {
      memcpy(to, text, length);
    } else {
      static const char digits[] = "0123456789abcdef";
      const char escaped[4] = {'\\', 'x', digits[first >> 4], digits[first & 15]};
      memcpy(to, escaped, sizeof escaped);
    }
    to += needed;
    text += length > 0 ? length : 1;
  }
  *to = '\0';
}

// Removes an incomplete character at the end.
static void end_at_character(char* text) {
  size_t length = strlen(text);
  size_t start = length;
  while (start > 0 && length - start < 3 && ((unsigned char)text[start - 1] & 0xC0) == 0x80) {
    --start;
  }
  if (start > 0 && utf8_length(text + start - 1) == 0) text[start - 1] = '\0';
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 0)))
#endif
static void
set_failure(struct failure* failure, int code, const char* format, va_list arguments) {
  failure->code = code;
  (void)vsnprintf(failure->message.text, sizeof failure->message.text, format, arguments);
  end_at_character(failure->message.text);
}

// Sets the failure unless it is already set, so that the first error is kept. Returns false, which
// callers pass on.
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static bool
fail(struct failure* failure, int code, const char* format, ...) {
  if (failure->code != 0) return false;
  va_list arguments;
  va_start(arguments, format);
  set_failure(failure, code, format, arguments);
  va_end(arguments);
  return false;
}

// Fails if `out`, the caller's pointer for the result, is NULL.
static bool check_result(const void* out, struct failure* failure) {
  return out != NULL || fail(failure, EINVAL, "result: NULL: expected an address for it");
}

// A failed call of a vendor's function.
struct answer {
  const char* title;  // the runtime's title
  const char* function;
  int32_t result;
  const char* name;  // the result's name; NULL or "" if unknown
  const char* text;  // describes the result; NULL or "" if unknown
  bool is_invalid_handle;
};

static bool fail_with(struct failure* failure, const struct answer* answer) {
  char name[80] = "";
  char text[400] = "";
  char number[16];
  if (failure->code != 0) return false;
  if (answer->name != NULL) copy_printable(name, sizeof name, answer->name);
  if (answer->text != NULL) copy_printable(text, sizeof text, answer->text);
  (void)snprintf(number, sizeof number, name[0] != '\0' ? " (%d)" : "%d", (int)answer->result);
  failure->result = answer->result;
  return fail(failure, answer->is_invalid_handle ? EINVAL : EIO, "%s: %s failed with %s%s%s%s%s",
              answer->title, answer->function, name, number, text[0] != '\0' ? ": " : "", text,
              answer->is_invalid_handle
                  ? "; hint: check that stream and event are alive, and that sync_event is the "
                    "address of the event's handle, not the handle"
                  : "");
}

// Appends "; hint: hint" to the failure's text.
static void add_hint(struct failure* failure, const char* hint) {
  struct failure made;
  no_failure(&made);
  (void)fail(&made, failure->code, "%s; hint: %s", failure->message.text, hint);
  made.result = failure->result;
  *failure = made;
}

// Writes the message and returns the error number.
static int report(const struct failure* failure, struct FletchingMessage* message) {
  if (message == NULL) return failure->code;
  message->text[0] = '\0';
  if (failure->code != 0) *message = failure->message;
  return failure->code;
}

#endif  // FLETCHING_CORE_FAILURE_H

// SPDX-License-Identifier: Apache-2.0
//
// Loads the validation layer for FLETCHING_VALIDATE.
#ifndef FLETCHING_CORE_HANDOVER_H
#define FLETCHING_CORE_HANDOVER_H

#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "fletching/handover.h"
#include "fletching/layout.h"
#include "fletching/version.h"
#include "library.h"

#define VERSION_TEXT_OF(number) #number
#define VERSION_TEXT(number) VERSION_TEXT_OF(number)
#define LIBRARY_VERSION \
  VERSION_TEXT(FLETCHING_VERSION_MAJOR) "." VERSION_TEXT(FLETCHING_VERSION_MINOR)

static const char* const validation_names[] = {
#if defined(_WIN32)
    "fletching.dll",
#elif defined(__APPLE__)
    "libfletching." LIBRARY_VERSION ".dylib", "libfletching.dylib",
#else
    "libfletching.so." LIBRARY_VERSION, "libfletching.so",
#endif
    NULL};

// Returns NULL in a program with more rights than its caller, who may not choose its code.
static const char* library_path(void) {
  static const char kVariable[] = "FLETCHING_LIBRARY";
#ifdef __linux__
  const char* const path = secure_getenv(kVariable);
#else
  const char* const path = getenv(kVariable);
#endif
  return path == NULL || path[0] == '\0' ? NULL : path;
}

static lock_type handover_lock = LOCK_INIT;  // protects the following two
static bool is_validation_sought;
static void (*validate_handover)(int32_t direction, int32_t kind, void* address);

static bool find_validation(struct failure* failure) {
  static const char kCheck[] = "FletchingCheckLayout";
  static const char kValidate[] = "FletchingValidateHandover";
  const char* const path[] = {library_path(), NULL};
  struct vendor_library library = {.title = "FLETCHING_VALIDATE",
                                   .names = path[0] != NULL ? path : validation_names};
  void* const handle = find_library(&library, &library.found);
  if (handle == NULL) return no_library(&library, failure);
  int (*check_layout)(uint64_t layout, struct FletchingMessage* message);
  const any_function check = find_symbol(handle, kCheck);
  const any_function validate = find_symbol(handle, kValidate);
  if (!has_function(&library, check != NULL, kCheck, failure)) return false;
  if (!has_function(&library, validate != NULL, kValidate, failure)) return false;
  memcpy(&check_layout, &check, sizeof check);
  struct FletchingMessage message;
  if (check_layout(FLETCHING_LAYOUT, &message) != 0) {
    return fail(failure, EINVAL, "%s: %s: %s", library.title, library.found, message.text);
  }
  memcpy(&validate_handover, &validate, sizeof validate);
  return true;
}

static bool aborts_at_findings(void) {
  const char* const value = getenv("FLETCHING_VALIDATE");
  if (value == NULL || strncmp(value, "abort", sizeof "abort" - 1) != 0) return false;
  const char end = value[sizeof "abort" - 1];
  return end == '\0' || end == ':';
}

void FletchingHandOver(int32_t direction, int32_t kind, void* address) {
  struct failure failure;
  no_failure(&failure);
  lock(&handover_lock);
  const bool is_found = is_validation_sought || find_validation(&failure);
  is_validation_sought = true;
  unlock(&handover_lock);
  if (!is_found) {
    (void)fprintf(stderr, "fletching: %s, or set FLETCHING_LIBRARY to its path\n",
                  failure.message.text);
    if (aborts_at_findings()) abort();
  }
  if (validate_handover != NULL) validate_handover(direction, kind, address);
}

#endif  // FLETCHING_CORE_HANDOVER_H
